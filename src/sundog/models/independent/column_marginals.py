"""The one-way marginal of a column: what is counted, how counts become probabilities, and how values are drawn."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.data.bins import Bins, make_bins
from sundog.data.code_set import CodeSet
from sundog.data.columns import AnyColumn, Column, Form, SetColumn
from sundog.models.systematic_sampling import draw_cells

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_LARGEST = 1 - 1e-12  # probability of an item whose absence is not impossible


class Marginal(ABC):
    """The one-way marginal of a column."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """The number of cells at each position, by which the noise is chosen."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the probabilities."""

    @property
    @abstractmethod
    def touched(self) -> int:
        """The number of counts that one record changes."""

    @abstractmethod
    def is_possible(self, p: Floats) -> bool:
        """Return whether numbers between 0 and 1 are probabilities of this column."""

    @abstractmethod
    def count(self, codes: Any) -> Integers:
        """Return exact counts."""

    @abstractmethod
    def compute_totals(self, counts: Integers) -> tuple[Integers, int]:
        """Return estimates of the number of records, and the number of noisy counts in each of them."""

    @abstractmethod
    def to_probabilities(self, counts: Floats | Integers, total: int) -> Floats:
        """Return the probabilities nearest to noisy counts of `total` records."""

    @abstractmethod
    def compute_log_density(self, p: Floats, codes: Any) -> Floats:
        """Return the log-probability of the codes of each record; −∞ for what is impossible."""

    @abstractmethod
    def draw(self, p: Floats, n: int, rng: np.random.Generator, within: CodeSet | None = None) -> Any:
        """Draw the codes of n records in proportion to the probabilities; only codes in `within`, if it is given."""


def get_marginal(column: AnyColumn) -> Marginal:
    """Return the marginal of a column: over items for sets, over bins for all others."""
    return ItemMarginal(column) if column.form is Form.SET else CellMarginal(column)


@dataclass(frozen=True)
class Sampler:
    """Draws the codes of one column, by its probabilities."""

    marginal: Marginal
    p: Floats

    def draw(self, n: int, rng: np.random.Generator, within: CodeSet | None = None) -> Any:
        """Draw the codes of n records; only codes in `within`, if it is given."""
        return self.marginal.draw(self.p, n, rng, within)


class CellMarginal(Marginal):
    """The bins of a scalar column, (bins,), or those at each position of an array: (positions, bins)."""

    def __init__(self, column: Column) -> None:
        self.column = column

    @cached_property
    def _bins(self) -> Bins:
        return make_bins(self.column)

    @property
    def cells(self) -> int:
        """The number of bins."""
        return self.column.bin_count

    @property
    def shape(self) -> tuple[int, ...]:
        """(bins,) or (positions, bins)."""
        return (*((self.touched,) if self.column.shape else ()), self.cells)

    @property
    def touched(self) -> int:
        """One at each position."""
        return math.prod(self.column.shape)

    def is_possible(self, p: Floats) -> bool:
        """Return whether all add up to one, at each position."""
        return bool(np.allclose(p.sum(axis=-1), 1))

    def count(self, codes: Any) -> Integers:
        """Return how many records are in each bin, at each position."""
        bins, positions = self._bins, self.touched
        if not self.column.shape:
            return np.bincount(bins.to_bins(codes), minlength=bins.count).astype(np.int64)
        counts = np.zeros(positions * bins.count, np.int64)
        offsets = np.arange(positions) * bins.count
        rows = max(1, 2**22 // positions)  # a few MB at a time
        for start in range(0, len(codes), rows):
            flat = bins.to_bins(codes[start : start + rows].reshape(-1, positions)).astype(np.int64) + offsets
            counts += np.bincount(flat.ravel(), minlength=len(counts))
        return counts.reshape(positions, bins.count)

    def compute_totals(self, counts: Integers) -> tuple[Integers, int]:
        """Return the sum of the bins at each position, and the number of bins."""
        return np.atleast_1d(counts.sum(axis=-1)), counts.shape[-1]

    def to_probabilities(self, counts: Floats | Integers, total: int) -> Floats:
        """Return the nearest point of the simplex."""
        return to_simplex(counts / total)

    def compute_log_density(self, p: Floats, codes: Any) -> Floats:
        """Return the log-probability of the bins, and of each code in its bin, summed over all positions."""
        bins, positions = self._bins, self.touched
        with np.errstate(divide="ignore"):
            logs = np.log(p.reshape(positions, bins.count)) - np.log(bins.widths)
        found, rows = np.zeros(len(codes)), max(1, 2**22 // positions)
        for start in range(0, len(codes), rows):
            own = bins.to_bins(codes[start : start + rows].reshape(-1, positions))
            found[start : start + rows] = logs[np.arange(positions), own].sum(axis=1)
        return found

    def draw(self, p: Floats, n: int, rng: np.random.Generator, within: CodeSet | None = None) -> Any:
        """Draw a bin for each record and position, and a code inside it."""
        p = p if within is None else _restrict(p, self._bins.compute_shares(within))
        codes = self._bins.to_codes(draw_cells(p, n, rng), rng, within)
        return codes.reshape(n, *self.column.shape).astype(self.column.dtype, copy=False)


class ItemMarginal(Marginal):
    """How many sets hold each item: (items,). The last count is the number of records."""

    def __init__(self, column: SetColumn) -> None:
        self.column = column

    @property
    def cells(self) -> int:
        """Two: in the set or not."""
        return 2

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the counts: (items,)."""
        return self.column.shape

    @property
    def touched(self) -> int:
        """Each of its items, and the number of records."""
        return self.column.max_size + 1

    def is_possible(self, p: Floats) -> bool:  # noqa: ARG002
        """Return True: items are independent."""
        return True

    def count(self, codes: Any) -> Integers:
        """Return how many sets hold each item, and how many sets there are."""
        return np.append(np.bincount(codes.indices, minlength=self.column.shape[0]), codes.shape[0]).astype(np.int64)

    def compute_totals(self, counts: Integers) -> tuple[Integers, int]:
        """Return the last count, which is the number of records."""
        return counts[-1:], 1

    def to_probabilities(self, counts: Floats | Integers, total: int) -> Floats:
        """Return the share of records that hold each item."""
        return np.asarray(np.clip(counts[:-1] / total, 0.0, 1.0))

    def compute_log_density(self, p: Floats, codes: Any) -> Floats:
        """Return the log-probability of independent items, as if no set were too large."""
        with np.errstate(divide="ignore"):
            held, missing = np.log(p), np.log1p(-np.minimum(p, _LARGEST))
        return np.asarray(missing.sum() + codes.astype(np.float64) @ (held - missing))

    def draw(self, p: Floats, n: int, rng: np.random.Generator, within: CodeSet | None = None) -> Any:  # noqa: ARG002
        """Draw which sets hold each item, in proportion to its probability."""
        from scipy import sparse

        holders = np.floor(n * p + rng.random(len(p))).astype(np.int64)  # its mean is n · p
        items = np.repeat(np.arange(len(holders)), holders)
        rows = [rng.choice(n, k, replace=False, shuffle=False) for k in holders if k]
        row = np.concatenate(rows) if rows else np.empty(0, np.int64)
        shuffled = rng.permutation(len(row))  # so that a set that is too large loses items at random
        row, items = row[shuffled], items[shuffled]
        order = np.argsort(row, kind="stable")
        row, items = row[order], items[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        kept = rank < self.column.max_size
        ones = np.ones(int(kept.sum()), np.uint8)
        drawn = sparse.csr_array((ones, (row[kept], items[kept])), shape=(n, len(holders)))
        drawn.sort_indices()
        return drawn


def to_simplex(p: Floats) -> Floats:
    """Return the nearest probabilities, along the last axis (Duchi et al. 2008)."""
    k = p.shape[-1]
    ordered = -np.sort(-p, axis=-1)
    excess = np.cumsum(ordered, axis=-1) - 1
    support = (ordered - excess / np.arange(1, k + 1) > 0).sum(axis=-1, keepdims=True)
    threshold = np.take_along_axis(excess, support - 1, axis=-1) / support
    nearest = np.maximum(p - threshold, 0.0)
    return np.asarray(nearest / nearest.sum(axis=-1, keepdims=True))


def _restrict(p: Floats, shares: Floats) -> Floats:
    """Return the probabilities under a condition: codes are uniform in a cell, so a cell keeps its allowed share.

    They are uniform where all that is allowed was measured as impossible.
    """
    kept = p * shares
    return kept if kept.any() else shares
