"""Refining default bins within the budget: narrow where records are, and one code wide at values that many share.

Noisy counts on a tree over the codes of a column (`noisy_tree`) are all that is asked of the data. What follows is
post-processing. 1. Spikes: single codes whose count stands out of the noise and of their neighbours. 2. The density of
the rest: halves of halves, as long as their counts stand out of the noise. 3. As many bins as by default: each spike
is one, and the others have about equal shares of that density, and of the range. Where nothing stands out of the noise,
all have equal width. Their number is that of the default bins whatever was found, so the model's plan does not change.
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
from sundog.privacy.calibration import gaussian_noise_for
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import Partition, noisy_tree, tree_charge, tree_levels

Integers = npt.NDArray[np.int64]
Piece = tuple[int, int, float]  # from a code to another, and how many records between

SHARE = 0.05  # of ρ, the zero-concentrated measure in which Gaussian noise adds up: the model's grows by 2.5%
_SPLIT, _SPIKE, _DENSITY = 4.0, 5.0, 3.0  # standard deviations: to look closer, for a spike, to halve once more
_SPIKES = 24  # at most
_NEIGHBOURS = 8  # on either side
_BY_WIDTH = 0.25  # of the bins follow the range and not the records
_COARSE = 0.1  # of the records: where so many could share a value unseen, a column is called coarse


@dataclass(frozen=True)
class Refinement:
    """Which columns are refined, and the noise on each count: a function of the schema and the budget alone.

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
        """For what is left of the budget to the bins and the model; columns that are yet to be learned are left out."""
        names = tuple(n for n, column in schema.columns.items() if column.complete and column.awaits_refinement)
        levels = schema.cap * sum(tree_levels(schema.columns[name].lattice_size) for name in names)
        sigma = gaussian_noise_for(epsilon=epsilon, delta=delta) * math.sqrt(levels / SHARE) if names else 0.0
        return cls(schema, names, sigma)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The charges of the refinement, one a column."""
        return tuple(
            tree_charge(
                size=self.schema.columns[name].lattice_size,
                sigma=self.sigma,
                purpose=_describe_purpose(name),
                contribution=self.schema.cap,
            )
            for name in self.names
        )

    @property
    def detection_limit(self) -> float:
        """About how many records may share a value without a bin of its own being found for it."""
        return _SPIKE * self.sigma * math.sqrt(self.schema.cap)

    def refine(self, records: Records, ledger: Ledger, *, count: int | None = None) -> tuple[Schema, list[str]]:
        """Return the schema with edges filled in, and the names of columns that stay coarse.

        Args:
            records: the private records, encoded.
            ledger: pays, and draws the noise.
            count: about how many records there are, if that is public; the noisy counts tell where it is not.
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
    """Return the codes without null and the special values, which have bins already."""
    left_out = [*column.special_codes, *([column.lattice_size] if column.nullable else [])]
    return codes[~np.isin(codes, left_out)].astype(np.int64)


def choose_starts(tree: Partition, default: Bins, own: set[int], *, deviation: float) -> list[int]:
    """Return where bins begin, by noisy counts with noise of a standard deviation: as many as by default.

    Args:
        tree: the noisy counts.
        default: the bins if there were none.
        own: where bins of special values begin and end, whatever the counts.
        deviation: of the noise in each count.

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
    """Return so many starts: the number of bins is public, and must not tell how many cuts fell on one code."""
    found = sorted(starts)
    while len(found) < wanted:
        widths = [stop - start for start, stop in pairwise([*found, size])]
        widest = widths.index(max(widths))
        found.insert(widest + 1, found[widest] + widths[widest] // 2)
    return found


def _find_spikes(tree: Partition, deviation: float) -> Iterator[tuple[int, float]]:
    """Single codes that hold clearly more than the noise and than twice their neighbours, and about how many."""
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
    """Intervals of uniform density and how many records each holds, spikes aside.

    `total` is what the parts from `first` to `last` hold in all, if that was measured.
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
    """Single parts that stand out of the noise although all together do not; the others share the rest of the total."""
    counts = {place: _count_without_spikes(tree, place, place + 1, spikes) for place in range(first, last)}
    heavy = {place: count for place, count in counts.items() if count > _SPLIT * deviation}
    rest = max(0.0, total - sum(heavy.values())) / max(1, last - first - len(heavy))
    for place in range(first, last):
        if place in heavy:
            yield from _estimate_density(tree, place, place + 1, heavy[place], spikes, deviation)
        else:
            yield tree.bounds[place], tree.bounds[place + 1], rest


def _bound_count(tree: Partition, spikes: dict[int, float], deviation: float) -> float:
    """Return how many records there may be besides those in spikes: the noisy total, and twice the noise in it."""
    parts = len(tree.counts)
    return max(1.0, _count_without_spikes(tree, 0, parts, spikes) + 2 * deviation * math.sqrt(parts))


def _count_without_spikes(tree: Partition, first: int, last: int, spikes: dict[int, float]) -> float:
    inside = sum(count for code, count in spikes.items() if tree.bounds[first] <= code < tree.bounds[last])
    return float(tree.counts[first:last].sum()) - inside
