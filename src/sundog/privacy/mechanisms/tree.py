"""Counts on a tree over a long range of integers: each level in detail only where the level above is heavy."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms.counts import Histogram, add_histogram_noise, compute_histogram_charge

Integers = npt.NDArray[np.int64]

WIDEST = 256  # parts that an interval is cut into at most
_MOST = 64  # intervals that are cut further at one level


@dataclass(frozen=True)
class Partition:
    """An interval cut into parts of about equal width.

    Args:
        bounds: part i holds the integers bounds[i] … bounds[i + 1] - 1.
        counts: the noisy count of each part.
        parts: the partitions of those parts that were cut further.
    """

    bounds: list[int]
    counts: Integers
    parts: dict[int, Partition] = field(default_factory=dict)


def count_tree_levels(size: int) -> int:
    """Return the number of levels that it takes to tell `size` integers apart.

    >>> count_tree_levels(1000), count_tree_levels(100_000), count_tree_levels(2**63)
    (2, 3, 8)
    """
    levels, reach = 1, WIDEST
    while reach < size:
        levels, reach = levels + 1, reach * WIDEST
    return levels


def compute_tree_charge(*, size: int, sigma: float, purpose: str, contribution: int) -> Charge:
    """Return the charge for `noisy_tree`: a record is counted once at each level, whatever is cut there."""
    return compute_histogram_charge(
        sigma=sigma, purpose=purpose, touched=count_tree_levels(size), contribution=contribution
    )


def noisy_tree(
    codes: Integers,
    *,
    size: int,
    sigma: float,
    threshold: float,
    ledger: Ledger,
    purpose: str,
    contribution: int = 1,
) -> Partition:
    """Count the integers in [0, size) in equal parts, and the parts of those with a noisy count above `threshold`.

    All levels are charged beforehand, however many of them turn out to be needed.

    >>> ledger = Ledger(epsilon=9, delta=1e-6)
    >>> codes = np.repeat([7, 90_000], 50_000)
    >>> tree = noisy_tree(codes, size=100_000, sigma=9.0, threshold=100, ledger=ledger, purpose="bins of x")
    >>> len(tree.counts), sorted(tree.parts), sorted(tree.parts[0].parts)
    (47, [0, 42], [0])
    """
    ledger.spend(compute_tree_charge(size=size, sigma=sigma, purpose=purpose, contribution=contribution))
    levels = count_tree_levels(size)
    fan = next(fan for fan in range(2, WIDEST + 1) if fan**levels >= size)
    ordered = np.sort(codes)

    def measure(intervals: list[tuple[int, int]]) -> list[Partition]:
        bounds = [_cut(*interval, fan) for interval in intervals]
        counts = [np.diff(np.searchsorted(ordered, cuts)).astype(np.int64) for cuts in bounds]
        joined = Histogram(np.concatenate(counts), sigma, purpose, levels, contribution)
        noisy = add_histogram_noise(joined, ledger)
        ends = np.cumsum([len(part) for part in counts])[:-1]
        return [Partition(cuts, part) for cuts, part in zip(bounds, np.split(noisy, ends), strict=True)]

    (root,) = frontier = measure([(0, size)])
    for _ in range(1, levels):
        heavy = _find_heavy_parts(frontier, threshold)
        if not heavy:
            break
        cut = measure([(parent.bounds[place], parent.bounds[place + 1]) for parent, place in heavy])
        for (parent, place), partition in zip(heavy, cut, strict=True):
            parent.parts[place] = partition
        frontier = cut
    return root


def _cut(start: int, stop: int, parts: int) -> list[int]:
    width = stop - start
    parts = min(parts, width)
    return [start + part * width // parts for part in range(parts + 1)]  # exact, also where int64 would overflow


def _find_heavy_parts(frontier: list[Partition], threshold: float) -> list[tuple[Partition, int]]:
    """Return the heaviest parts above the threshold that can be cut."""
    found = [
        (int(partition.counts[place]), number, int(place))
        for number, partition in enumerate(frontier)
        for place in np.flatnonzero(partition.counts > threshold)
        if partition.bounds[place + 1] - partition.bounds[place] > 1
    ]
    return [(frontier[number], place) for _, number, place in sorted(heapq.nlargest(_MOST, found), key=lambda x: x[1:])]
