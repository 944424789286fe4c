"""Refine default bins within the budget: narrow where records are, and one code wide at values that many share.

The data is used only for noisy counts on a tree over the codes of a column (`noisy_tree`). The rest is post-processing:

1. Spikes: single codes whose count stands out from the noise and from their neighbours.
2. The density of the rest: intervals are halved as long as their counts stand out from the noise.
3. The bins: each spike has one, and the others have about equal shares of that density and of the range. If nothing
   stands out from the noise, all have equal width.

The number of bins is always the default one, so the model's plan does not depend on the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sundog.data.bins import Bins, make_bins
from sundog.data.columns import OrderedColumn, Scale
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.privacy.calibration import find_gaussian_noise
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import Partition, compute_tree_charge, count_tree_levels, noisy_tree

Integers = npt.NDArray[np.int64]
Piece = tuple[int, int, float]  # first code, end, and number of records

SHARE = 0.05  # of ρ (zero-concentrated DP, additive for Gaussian noise): the model's noise grows by 2.5%
_SPLIT, _SPIKE, _DENSITY = 4.0, 5.0, 3.0  # standard deviations: to split a part, to find a spike, to halve an interval
_SPIKES = 24  # at most
_NEIGHBOURS = 8  # on either side
_BY_WIDTH = 0.25  # the share of bins that follow the range, not the records
_COARSE = 0.1  # of the records: a column is coarse if a value with this share could go undetected


@dataclass(frozen=True)
class Refinement:
    """The columns to refine, and the noise on each count; it depends on the schema and the budget alone.

    >>> schema = Schema.from_dict({"columns": {"income": {"type": "integer", "min": 0, "max": 100_000}}})
    >>> plan = Refinement.plan(schema, epsilon=1.0, delta=1e-6)
    >>> [(charge.purpose, charge.count, round(charge.event.sigma)) for charge in plan.charges]
    [('bins of income', 3, 33)]
    """

    schema: Schema
    names: tuple[str, ...]
    sigma: float

    @classmethod
    def plan(cls, schema: Schema, *, epsilon: float, delta: float) -> Refinement:
        """Plan for the budget that is left to the bins and the model; columns still to be learned are left out."""
        names = tuple(n for n, column in schema.columns.items() if column.complete and column.awaits_refinement)
        levels = schema.cap * sum(count_tree_levels(schema.columns[name].lattice_size) for name in names)
        sigma = find_gaussian_noise(epsilon=epsilon, delta=delta) * math.sqrt(levels / SHARE) if names else 0.0
        return cls(schema, names, sigma)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The charges of the refinement, one a column."""
        return tuple(
            compute_tree_charge(
                size=self.schema.columns[name].lattice_size,
                sigma=self.sigma,
                purpose=_describe_purpose(name),
                contribution=self.schema.cap,
            )
            for name in self.names
        )

    @property
    def detection_limit(self) -> float:
        """About how many records must share a value for it to get a bin of its own."""
        return _SPIKE * self.sigma * math.sqrt(self.schema.cap)

    def refine(self, records: Records, ledger: Ledger, *, count: int | None = None) -> tuple[Schema, list[str]]:
        """Return the schema with measured edges, and the names of columns that stay coarse.

        Args:
            records: the private records, encoded.
            ledger: charges the budget, and draws the noise.
            count: the approximate number of records, if public; by default the noisy total.
        """
        found, coarse = {}, []
        deviation = self.sigma * math.sqrt(self.schema.cap)
        for name, column in self._columns.items():
            codes = _drop_binned_codes(column, records.codes[name])
            tree = noisy_tree(
                codes,
                size=column.lattice_size,
                sigma=self.sigma,
                threshold=_SPLIT * deviation,
                ledger=ledger,
                purpose=_describe_purpose(name),
                contribution=self.schema.cap,
            )
            starts = choose_starts(tree, make_bins(column), column.special_starts, deviation=deviation)
            found[name] = column.replace(bins="refined", edges=column.find_edges(starts[1:]))
            if self.detection_limit > _COARSE * (count or max(1, int(tree.counts.sum()))):
                coarse.append(name)
        return self.schema.with_columns(found), coarse

    @property
    def _columns(self) -> dict[str, OrderedColumn]:
        columns = self.schema.columns.items()
        return {name: column for name, column in columns if name in self.names and column.scale is Scale.INTERVAL}


def _describe_purpose(name: str) -> str:
    return f"bins of {name}"


def _drop_binned_codes(column: OrderedColumn, codes: npt.NDArray[np.generic]) -> Integers:
    """Return the codes without null and special values, which already have bins."""
    left_out = [*column.special_codes, *([column.lattice_size] if column.nullable else [])]
    return codes[~np.isin(codes, left_out)].astype(np.int64)


def choose_starts(tree: Partition, default: Bins, own: set[int], *, deviation: float) -> list[int]:
    """Return the first codes of as many bins as by default, chosen by noisy counts.

    Args:
        tree: the noisy counts.
        default: the default bins.
        own: the codes at which bins of special values begin and end.
        deviation: the standard deviation of the noise in each count.

    >>> tree = Partition(list(range(0, 1001, 4)), np.where(np.arange(250) < 50, 600, 0))
    >>> starts = choose_starts(tree, Bins(np.arange(64) * 1000 // 64, 1000, False), set(), deviation=1.0)
    >>> len(starts), len([start for start in starts if start < 200])
    (64, 52)
    """
    size, wanted = default.size, len(default.starts)
    most = max(0, min(_SPIKES, (wanted - len(own) - _SPIKES) // 2))
    spikes = dict(sorted(_find_spikes(tree, deviation), key=lambda spike: -spike[1])[:most])
    pieces = list(_estimate_density(tree, 0, len(tree.counts), None, spikes, deviation))
    mass = np.array([piece[2] for piece in pieces])
    if not spikes and not mass.any():
        return [int(start) for start in default.starts]
    bounds = np.array([*(piece[0] for piece in pieces), size], np.float64)
    by_width = max(_BY_WIDTH, 1 - mass.sum() / _bound_count(tree, spikes, deviation))
    share = by_width * np.diff(bounds) / size + (1 - by_width) * mass / max(1.0, mass.sum())
    starts = {0, *own, *(start for code in spikes for start in (code, code + 1))} - {size}
    count = wanted - len(starts) + 1
    cuts = np.interp(np.arange(1, count) / count, np.append(0.0, np.cumsum(share)), bounds)
    return _halve_widest_bins({*starts, *(int(cut) for cut in cuts)} - {size}, size, wanted)


def _halve_widest_bins(starts: set[int], size: int, wanted: int) -> list[int]:
    """Halve the widest bins until there are `wanted`: their number is public, and must not reveal equal cuts."""
    found = sorted(starts)
    while len(found) < wanted:
        widths = [stop - start for start, stop in pairwise([*found, size])]
        widest = widths.index(max(widths))
        found.insert(widest + 1, found[widest] + widths[widest] // 2)
    return found


def _find_spikes(tree: Partition, deviation: float) -> Iterator[tuple[int, float]]:
    """Yield single codes with clearly more records than the noise and twice their neighbours, and the excess."""
    single = np.diff(np.array(tree.bounds, object)) == 1
    for place in np.flatnonzero(single & (tree.counts > _SPIKE * deviation)):
        around = tree.counts[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS + 1]
        usual = max(0.0, float(np.median(around)))
        count = float(tree.counts[place])
        if count - usual > max(usual, _SPIKE * deviation):
            yield int(tree.bounds[place]), count - usual
    for part in tree.parts.values():
        yield from _find_spikes(part, deviation)


def _estimate_density(
    tree: Partition, first: int, last: int, total: float | None, spikes: dict[int, float], deviation: float
) -> Iterator[Piece]:
    """Yield intervals of uniform density and their number of records, without spikes.

    `total` is the number of records in the parts from `first` to `last`, if it was measured.
    """
    bounds, parts = tree.bounds, last - first
    sum_ = _count_without_spikes(tree, first, last, spikes) if total is None else total
    if parts == 1 and first in tree.parts:
        inner = tree.parts[first]
        yield from _estimate_density(inner, 0, len(inner.counts), max(0.0, sum_), spikes, deviation)
    elif parts == 1:
        yield bounds[first], bounds[last], max(0.0, sum_)
    elif sum_ <= _DENSITY * deviation * math.sqrt(parts):
        yield from _separate_heavy_parts(tree, first, last, total or 0.0, spikes, deviation)
    else:
        middle = (first + last) // 2
        sides = [_count_without_spikes(tree, *run, spikes) for run in ((first, middle), (middle, last))]
        slack = (sum_ - sum(sides)) / 2  # the total was measured with less noise than its parts
        left = min(max(sides[0] + slack, 0.0), sum_)
        yield from _estimate_density(tree, first, middle, left, spikes, deviation)
        yield from _estimate_density(tree, middle, last, sum_ - left, spikes, deviation)


def _separate_heavy_parts(
    tree: Partition, first: int, last: int, total: float, spikes: dict[int, float], deviation: float
) -> Iterator[Piece]:
    """Yield the parts that stand out from the noise, though their sum does not; the others share the rest."""
    counts = {place: _count_without_spikes(tree, place, place + 1, spikes) for place in range(first, last)}
    heavy = {place: count for place, count in counts.items() if count > _SPLIT * deviation}
    rest = max(0.0, total - sum(heavy.values())) / max(1, last - first - len(heavy))
    for place in range(first, last):
        if place in heavy:
            yield from _estimate_density(tree, place, place + 1, heavy[place], spikes, deviation)
        else:
            yield tree.bounds[place], tree.bounds[place + 1], rest


def _bound_count(tree: Partition, spikes: dict[int, float], deviation: float) -> float:
    """Return an upper bound on the records outside spikes: the noisy total plus twice its standard deviation."""
    parts = len(tree.counts)
    return max(1.0, _count_without_spikes(tree, 0, parts, spikes) + 2 * deviation * math.sqrt(parts))


def _count_without_spikes(tree: Partition, first: int, last: int, spikes: dict[int, float]) -> float:
    inside = sum(count for code, count in spikes.items() if tree.bounds[first] <= code < tree.bounds[last])
    return float(tree.counts[first:last].sum()) - inside
