"""Sets of codes of one column, such as those that a condition `age >= 40` allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.uint64]  # a lattice may have 2**63 codes, one more than int64 holds


@dataclass(frozen=True)
class CodeSet:
    """Disjoint, ascending ranges of codes, each from its first to its last code.

    >>> allowed = CodeSet.of([1, 2, 3, 7])
    >>> allowed.ranges, allowed & CodeSet.between(3, 9)
    (((1, 3), (7, 7)), CodeSet(ranges=((3, 3), (7, 7))))
    """

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, codes: Iterable[int]) -> CodeSet:
        """Return the set of the given codes."""
        ranges: list[tuple[int, int]] = []
        for code in sorted(set(codes)):
            joins = ranges and ranges[-1][1] == code - 1
            ranges.append((ranges.pop()[0], code) if joins else (code, code))
        return cls(tuple(ranges))

    @classmethod
    def between(cls, first: int, last: int) -> CodeSet:
        """Return all codes from `first` to `last`; the empty set if `last` is below `first`."""
        return cls(((first, last),) if first <= last else ())

    @classmethod
    def join(cls, sets: Iterable[CodeSet]) -> CodeSet:
        """Return the codes of all sets, which are disjoint.

        >>> CodeSet.join([CodeSet.of([4, 5]), CodeSet.of([1, 6])]).ranges
        ((1, 1), (4, 6))
        """
        ranges: list[tuple[int, int]] = []
        for first, last in sorted(each for one in sets for each in one.ranges):
            joins = ranges and ranges[-1][1] == first - 1
            ranges.append((ranges.pop()[0], last) if joins else (first, last))
        return cls(tuple(ranges))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __contains__(self, code: int) -> bool:
        return any(first <= code <= last for first, last in self.ranges)

    def __and__(self, other: CodeSet) -> CodeSet:
        both, mine, theirs = [], 0, 0
        while mine < len(self.ranges) and theirs < len(other.ranges):
            (first, last), (first_other, last_other) = self.ranges[mine], other.ranges[theirs]
            if max(first, first_other) <= min(last, last_other):
                both.append((max(first, first_other), min(last, last_other)))
            if last < last_other:
                mine += 1
            else:
                theirs += 1
        return CodeSet(tuple(both))

    def includes(self, codes: Any) -> NDArray[np.bool_]:
        """Return which of many codes are in the set.

        >>> CodeSet.of([1, 2, 3, 7]).includes(np.array([0, 2, 7, 9])).tolist()
        [False, True, True, False]
        """
        at = np.asarray(codes).astype(np.uint64)
        if not self:
            return np.zeros(at.shape, bool)
        place = np.searchsorted(self._firsts, at, side="right") - 1
        return np.asarray((place >= 0) & (at <= self._lasts[place]))

    def __sub__(self, other: CodeSet) -> CodeSet:
        """Return the codes that are not in the other set.

        >>> (CodeSet.between(0, 9) - CodeSet.of([0, 4, 5])).ranges
        ((1, 3), (6, 9))
        """
        end = max([last for _, last in (*self.ranges[-1:], *other.ranges[-1:])], default=0)
        starts = [0, *(last + 1 for _, last in other.ranges)]
        ends = [*(first - 1 for first, _ in other.ranges), end]
        gaps = ((first, last) for first, last in zip(starts, ends, strict=True) if first <= last)
        return self & CodeSet(tuple(gaps))

    def count(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> Counts:
        """Return the number of these codes from each `first` to each `last`.

        >>> CodeSet.of([1, 2, 3, 7]).count(np.array([0, 3]), np.array([2, 9])).tolist()
        [2, 2]
        """
        return self._count_up_to(last) - self._count_below(first)

    def draw(self, first: NDArray[np.int64], last: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw one of these codes, uniformly, from each `first` to each `last`; there must be one."""
        rank = rng.integers(self._count_below(first), self._count_up_to(last), dtype=np.uint64)
        place = np.searchsorted(self._before, rank, side="right") - 1
        drawn: NDArray[np.int64] = (self._firsts[place] + (rank - self._before[place])).astype(np.int64)
        return drawn

    @cached_property
    def _firsts(self) -> Counts:
        return np.array([first for first, _ in self.ranges], np.uint64)

    @cached_property
    def _lasts(self) -> Counts:
        return np.array([last for _, last in self.ranges], np.uint64)

    @cached_property
    def _before(self) -> Counts:
        """The number of codes before each range."""
        sizes = self._lasts - self._firsts + np.uint64(1)
        return np.asarray(np.concatenate([np.zeros(1, np.uint64), np.cumsum(sizes, dtype=np.uint64)])[:-1])

    def _count_up_to(self, codes: Any) -> Counts:
        """Return the number of these codes up to each of the given ones."""
        at = np.asarray(codes).astype(np.uint64)
        place = np.searchsorted(self._firsts, at, side="right") - 1
        found = self._before[place] + np.minimum(at, self._lasts[place]) - self._firsts[place] + np.uint64(1)
        return np.where(place >= 0, found, np.uint64(0))

    def _count_below(self, codes: Any) -> Counts:
        """Return the number of these codes below each of the given ones."""
        at = np.asarray(codes)
        return np.where(at > 0, self._count_up_to(np.maximum(at, 1) - 1), np.uint64(0))
