"""Averages over records, kept by groups of records, so that a bootstrap costs little.

Real and synthetic records are dealt at random into a few groups each, and what is to be averaged is summed inside each
group. A bootstrap then draws groups in place of records: the spread it finds is the same, from 64 sums in place of n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.evaluation.measure import ROUNDS, Measure

GROUPS = 64

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sums:
    """What was summed inside each group: (groups, features), and how many records that were."""

    sums: Floats
    counts: Floats

    def averages(self, weights: Floats) -> Floats:
        """The averages over all records, once for each row of weights of the groups."""
        return np.asarray((weights @ self.sums) / (weights @ self.counts)[:, None])

    @cached_property
    def average(self) -> Floats:
        """The averages over all records."""
        return np.asarray(self.averages(np.ones((1, len(self.counts))))[0])


@dataclass(frozen=True)
class Paired:
    """The same sums of real and of synthetic records, from `Deal.paired`."""

    real_sums: Sums
    synthetic_sums: Sums
    rng: np.random.Generator

    @property
    def real(self) -> Floats:
        """The averages over all real records."""
        return self.real_sums.average

    @property
    def synthetic(self) -> Floats:
        """The averages over all synthetic records."""
        return self.synthetic_sums.average

    def measure(self, compare: Callable[[Floats, Floats], float], *, highest: float = math.inf) -> Measure:
        """A comparison of the averages, real ones first, with its interval."""
        found = [compare(real, synthetic) for real, synthetic in zip(*self._resampled, strict=True)]
        error = float(np.std(found, ddof=1))
        return Measure.around(compare(self.real, self.synthetic), error=error, lowest=0.0, highest=highest)

    @cached_property
    def _resampled(self) -> tuple[Floats, Floats]:
        """The averages over resampled groups; who is in which group is random, so one draw serves both kinds."""
        groups = len(self.real_sums.counts)
        weights = self.rng.multinomial(groups, np.full(groups, 1 / groups), size=ROUNDS).astype(np.float64)
        return self.real_sums.averages(weights), self.synthetic_sums.averages(weights)


class Deal:
    """Who is in which group.

    Equal numbers of records are dealt in the same way, so that records compared with themselves differ by nothing.

    >>> deal = Deal(real=3, synthetic=3, rng=np.random.default_rng(0))
    >>> values = np.array([[1.0], [2.0], [3.0]])
    >>> pair = deal.paired(values, values + 1)
    >>> pair.real.tolist(), pair.synthetic.tolist()
    ([2.0], [3.0])
    >>> pair.measure(lambda real, synthetic: abs(real - synthetic).mean()).value
    1.0
    """

    def __init__(self, *, real: int, synthetic: int, rng: np.random.Generator) -> None:
        """Takes the numbers of records; there must be at least one of each."""
        groups = min(GROUPS, real, synthetic)
        seed = int(rng.integers(2**63))
        self._rng = rng
        self._real, self._synthetic = (
            np.array_split(np.random.default_rng(seed).permutation(count), groups) for count in (real, synthetic)
        )

    def paired(self, real: Any, synthetic: Any, summed: Callable[[Any], Any] = lambda rows: rows.sum(axis=0)) -> Paired:
        """What `summed` makes of the rows of each group: as many numbers for each."""
        return Paired(_sums(real, self._real, summed), _sums(synthetic, self._synthetic, summed), self._rng)


def _sums(rows: Any, groups: Sequence[NDArray[np.int64]], summed: Callable[[Any], Any]) -> Sums:
    return Sums(
        np.array([summed(rows[group]) for group in groups], np.float64),
        np.array([len(group) for group in groups], np.float64),
    )
