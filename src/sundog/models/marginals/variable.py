"""A column as a variable of the graphical model: its bins, put into fewer groups where single ones are too rare.

The model has a value for each group. What a group's bins hold of it is known from the column's own marginal: this is
how a group becomes a bin again when records are drawn, and a bin becomes a code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.data.bins import Bins, make_bins
from sundog.data.code_set import CodeSet
from sundog.data.columns import AnyColumn, Scale
from sundog.models.systematic_sampling import draw_cells

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

RARE = 3.0  # standard deviations of the noise: bins with fewer records are put together
_VALUES = 8  # a column of categories may have this many times the groups of an ordered one
_FEWEST, _MOST = 8, 64  # groups of an ordered column
_RATIO = 6700.0  # records for each unit of noise at which 16 groups are chosen
_LEAST = 1e-12  # probability of a bin in a group that was measured as empty


@dataclass(frozen=True, eq=False)
class Variable:
    """A column, the group of each of its bins, and the probability of each bin.

    Args:
        column: scalar.
        groups: the group of each bin; all groups from 0 to the largest have one.
        shares: the probability of each bin.
    """

    column: AnyColumn
    groups: Integers
    shares: Floats

    @property
    def size(self) -> int:
        """The number of groups."""
        return int(self.groups.max()) + 1

    @cached_property
    def bins(self) -> Bins:
        """The bins of the column."""
        return make_bins(self.column)

    def encode(self, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the group of each code."""
        return self._small_groups.take(self.bins.to_bins(codes))

    def decode(
        self, groups: npt.NDArray[Any], rng: np.random.Generator, within: CodeSet | None = None
    ) -> npt.NDArray[Any]:
        """Return a code of each group; only codes of a set, if one is given."""
        weights = self._weigh_bins(within)
        bins = np.empty(len(groups), np.int64)
        order = np.argsort(groups, kind="stable")  # by radix, as the type is small
        ends = np.cumsum(np.bincount(groups, minlength=self.size))
        for group, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
            if end > start:
                members = self._members[group]
                drawn = draw_cells(weights[members], end - start, rng) if len(members) > 1 else 0
                bins[order[start:end]] = members[drawn]
        codes: npt.NDArray[Any] = self.bins.to_codes(bins, rng, within)
        return codes.astype(self.column.dtype, copy=False)

    def weigh_groups(self) -> Floats:
        """Return the probability of each group."""
        return self._sum_by_group(self._weigh_bins(None))

    def find_shares(self, within: CodeSet) -> Floats:
        """Return the probability that a code of each group is in the set."""
        return self._sum_by_group(self._weigh_bins(within)) / self.weigh_groups()

    def compute_log_shares(self, codes: npt.NDArray[Any]) -> Floats:
        """Return the log-probability of each code, given its group."""
        weights = self._weigh_bins(None)
        logs = np.log(weights / self.weigh_groups()[self.groups]) - np.log(self.bins.widths)
        return np.asarray(logs[self.bins.to_bins(codes)])

    def sum_groups(self, counts: Floats) -> Floats:
        """Return the counts of the groups from those of the bins."""
        return self._sum_by_group(counts)

    @cached_property
    def cells(self) -> list[CodeSet]:
        """The codes of each group."""
        return [self.bins.to_code_set(members.tolist()) for members in self._members]

    @cached_property
    def bins_per_group(self) -> Integers:
        """How many bins each group has."""
        return np.bincount(self.groups)

    @cached_property
    def _members(self) -> list[Integers]:
        return [np.flatnonzero(self.groups == group) for group in range(self.size)]

    @cached_property
    def _small_groups(self) -> npt.NDArray[Any]:
        return self.groups.astype(np.min_scalar_type(self.size))

    def _weigh_bins(self, within: CodeSet | None) -> Floats:
        """Return the probability of each bin, or of its codes in a set; a bin without records is not impossible."""
        weights = np.maximum(self.shares, _LEAST)
        return weights if within is None else weights * self.bins.compute_shares(within)

    def _sum_by_group(self, values: Floats) -> Floats:
        return np.bincount(self.groups, weights=values, minlength=self.size).astype(np.float64)


def choose_groups(records: float, *, noise: float) -> int:
    """Return about how many groups an ordered column should have.

    With more groups values are drawn from narrower ranges, with fewer there are fewer noisy cells. The number grows
    with the fourth root of the records for each unit of noise, which was near the best on tables of 20,000 to 60,000.

    >>> choose_groups(25_000, noise=3.73), choose_groups(1_000_000, noise=3.73), choose_groups(300, noise=37.0)
    (16, 40, 8)

    Args:
        records: about how many there are.
        noise: the deviation that a count would have if all of the budget were spent on it.
    """
    found = round(16 * math.sqrt(math.sqrt(max(records, 0.0) / (_RATIO * noise))))
    return min(max(found, _FEWEST), _MOST)


def group_bins(column: AnyColumn, counts: Floats, *, deviation: float, most: int) -> Integers:
    """Return the group of each bin; null is a group of its own.

    >>> from sundog.data.columns import IntegerColumn
    >>> group_bins(IntegerColumn(min=0, max=5), np.array([90.0, 4, 3, 60, 2, 80]), deviation=5.0, most=4).tolist()
    [0, 1, 1, 1, 2, 2]
    """
    least = RARE * deviation
    proper = counts[: len(counts) - int(column.nullable)]
    is_ordered = column.scale in (Scale.ORDINAL, Scale.INTERVAL)
    groups = _group_neighbours(proper, least, most) if is_ordered else _group_rare(proper, least, _VALUES * most)
    return np.append(groups, groups.max() + 1) if column.nullable else groups


def _group_rare(counts: Floats, least: float, most: int) -> Integers:
    """Put all rare values, and all after the `most` frequent ones, into one group, the last."""
    rare = counts < least
    rare[np.argsort(-counts, kind="stable")[most:]] = True
    if rare.sum() < 2:
        return np.arange(len(counts))
    groups = np.cumsum(~rare) - 1
    return np.where(rare, (~rare).sum(), groups)


def _group_neighbours(counts: Floats, least: float, most: int) -> Integers:
    """Put neighbours together until a group is neither rare nor a small part of the whole.

    The part is one of square roots of counts: it lies between groups of equal width, which follow the values, and
    groups of equal counts, which follow the records.
    """
    weights = np.sqrt(np.maximum(counts, 0.0))
    part = weights.sum() / most if len(counts) > most else 0.0
    groups = np.empty(len(counts), np.int64)
    group, weight, count = 0, 0.0, 0.0
    for place, (own_weight, own_count) in enumerate(zip(weights, counts, strict=True)):
        is_spike = own_weight >= part and own_count >= least
        if count and is_spike and count >= least:  # what came before it is a group without it
            group, weight, count = group + 1, 0.0, 0.0
        groups[place] = group
        weight, count = weight + own_weight, count + own_count
        if weight >= part and count >= least:
            group, weight, count = group + 1, 0.0, 0.0
    last = groups[-1]
    if last == group and group:  # the last group is rare
        groups[groups == last] = last - 1
    return groups
