"""Bins: the codes of a column divided into the intervals that count-based models count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.code_set import CodeSet
from sundog.data.columns import Column
from sundog.data.columns.arrow import find_smallest_dtype

QUANTILE_BINS = 16  # the number of bins with `bins: quantiles`
TABLE = 2**20  # up to this many codes, bins are looked up in a table


@dataclass(frozen=True, eq=False)
class Bins:
    """Consecutive intervals of codes: bin i holds the codes starts[i] … starts[i + 1] - 1; null has the last bin.

    >>> bins = Bins(np.array([0, 10, 20]), size=100, nullable=True)
    >>> bins.count, bins.to_bins(np.array([0, 9, 10, 99, 100])).tolist()
    (4, [0, 0, 1, 2, 3])
    >>> int(bins.to_codes(np.array([3]), np.random.default_rng(0))[0])
    100
    """

    starts: NDArray[np.int64]
    size: int
    nullable: bool

    def __post_init__(self) -> None:
        starts = np.asarray(self.starts, np.int64)
        if not len(starts) or starts[0] != 0 or (np.diff(starts) <= 0).any() or starts[-1] >= self.size:
            raise ValueError(f"bins must start at 0 and ascend below {self.size}")
        object.__setattr__(self, "starts", starts)

    @property
    def count(self) -> int:
        """The number of bins, the null bin included."""
        return len(self.starts) + int(self.nullable)

    def to_bins(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the bin of each code."""
        if self._is_identity:
            return codes
        if self._table is not None:
            found: NDArray[Any] = self._table.take(codes)
            return found
        bins = np.searchsorted(self._first, codes.astype(np.int64), side="right") - 1
        return bins.astype(find_smallest_dtype(self.count))

    def to_codes(self, bins: NDArray[Any], rng: np.random.Generator, within: CodeSet | None = None) -> NDArray[Any]:
        """Draw a code uniformly from each bin, or from its codes that are in a set."""
        if self._is_identity:
            return np.asarray(bins, find_smallest_dtype(self.size + int(self.nullable)))
        first, last = self._first[bins], self._last[bins]
        codes = rng.integers(first, last, endpoint=True) if within is None else within.draw(first, last, rng)
        return np.asarray(codes.astype(find_smallest_dtype(self.size + int(self.nullable))))

    def to_code_set(self, bins: Iterable[int]) -> CodeSet:
        """Return the codes of some bins, each given once.

        >>> Bins(np.array([0, 10, 20]), size=100, nullable=True).to_code_set([0, 1, 3]).ranges
        ((0, 19), (100, 100))
        """
        ends = ((int(self._first[each]), int(self._last[each])) for each in bins)
        return CodeSet.join(CodeSet.between(first, last) for first, last in ends)

    def compute_shares(self, allowed: CodeSet) -> NDArray[np.float64]:
        """Return the share of the codes of each bin that is in the set.

        >>> Bins(np.array([0, 10, 20]), size=100, nullable=True).compute_shares(CodeSet.between(5, 19)).tolist()
        [0.5, 1.0, 0.0, 0.0]
        """
        return allowed.count(self._first, self._last) / (self._last - self._first + 1.0)

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """The number of codes in each bin, the null bin included."""
        return self._last - self._first + 1

    @property
    def _is_identity(self) -> bool:
        return len(self.starts) == self.size

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """The first code of each bin, the null bin included."""
        return np.array([*self.starts.tolist(), *[self.size] * int(self.nullable)], np.int64)

    @cached_property
    def _last(self) -> NDArray[np.int64]:
        """The last code of each bin; the end after it might not fit int64."""
        return np.append(self._first[1:] - 1, self.size - 1 + int(self.nullable))

    @cached_property
    def _table(self) -> NDArray[Any] | None:
        if self.size > TABLE:
            return None
        return np.repeat(np.arange(self.count, dtype=find_smallest_dtype(self.count)), self._last - self._first + 1)


def make_bins(column: Column) -> Bins:
    """Return the bins that a column declares, or default ones; they do not depend on the data.

    Special values have bins of their own. Default bins have equal width; `fit` refines them within the budget.

    >>> from sundog.data.columns import IntegerColumn
    >>> make_bins(IntegerColumn(min=0, max=99, edges=[18, 65])).starts.tolist()
    [0, 18, 65]
    >>> make_bins(IntegerColumn(min=0, max=9999)).count
    64
    """
    return Bins(np.array(column.list_bin_starts(), np.int64), column.lattice_size, column.nullable)
