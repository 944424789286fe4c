"""The bootstrap in one pass: rows are dealt into blocks, everything is summed block by block, and blocks are drawn.

Then a resample of any count is a weighted sum over blocks, and all resamples of a table are one product of matrices.
Everywhere in this folder an array of *estimates* says along its first axis what the data itself says, and after that
what each resample says.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.evaluation.measure import ROUNDS, Measure, Z

BLOCKS = 50

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of one table in blocks of equal size, and how often each resample takes each block.

    >>> blocks = Blocks.dealt(1000, np.random.default_rng(0))
    >>> counts = blocks.sums(np.arange(1000) % 2, 2)
    >>> counts.shape, counts[0].tolist()
    ((101, 2), [500.0, 500.0])

    Args:
        of_row: the block of each row.
        weights: (estimates, blocks); the first row takes every block once.
    """

    of_row: Labels
    weights: Floats

    @classmethod
    def dealt(cls, rows: int, rng: np.random.Generator, rounds: int = ROUNDS) -> Blocks:
        """The rows dealt at random, and the blocks drawn anew in every round."""
        blocks = min(BLOCKS, rows)
        drawn = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=rounds)
        return cls(rng.permutation(rows) % blocks, np.vstack([np.ones(blocks), drawn]))

    @classmethod
    def whole(cls, rows: int) -> Blocks:
        """All rows in one block, and no resamples: for what needs no interval."""
        return cls(np.zeros(rows, np.int64), np.ones((1, 1)))

    def sums(self, labels: NDArray[Any], size: int, values: Floats | None = None) -> Floats:
        """How many rows have each label, or the sum of their values: (estimates, size). Rows with label -1 are out.

        A row may have several labels, along the first axis.
        """
        places = (self.of_row * (size + 1) + labels + 1).ravel()
        sums = np.bincount(places, values, minlength=self._count * (size + 1)).reshape(self._count, size + 1)
        found: Floats = self.weights @ sums[:, 1:]
        return found

    def extremes(self, values: Floats) -> tuple[Floats, Floats]:
        """The least and the greatest value; NaN is out, and what is found where there is nothing else."""
        starts = np.searchsorted(self.of_row[self._order], np.arange(self._count))
        found = []
        for extreme in (np.fmin, np.fmax):
            of_block = extreme.reduceat(values[self._order], starts)
            found.append(extreme.reduce(np.where(self.weights > 0, of_block, np.nan), axis=1))
        return found[0], found[1]

    @property
    def _count(self) -> int:
        return int(self.weights.shape[1])

    @cached_property
    def _order(self) -> Labels:
        return np.argsort(self.of_row, kind="stable")


@dataclass(frozen=True, eq=False)
class Distance:
    """Estimates of a distance, and how much of it chance alone may have made.

    The distance of two samples is too large in the mean: noise has no sign in it and does not cancel. Two samples of
    one distribution are apart, too. So the interval reaches further down than up, by what noise may have added; and
    that of 1 - distance further up.

    >>> Distance(np.array([0.5, 0.4, 0.6, 0.5]), by_chance=0.1).measure()
    Measure(value=0.5, low=0.20400..., high=0.69599...)
    """

    estimates: Floats
    by_chance: float

    def measure(self, *, highest: float = 1.0, z: float = Z) -> Measure:
        """The distance, with its interval; of 95% unless another normal quantile is given."""
        found = measured(self.estimates, lowest=-np.inf, highest=highest, z=z)
        return Measure(found.value, min(found.value, max(0.0, found.low - self.by_chance)), found.high)

    def similarity(self) -> Measure:
        """What is missing to 1, with its interval."""
        found = self.measure()
        return Measure(1 - found.value, 1 - found.high, 1 - found.low)

    @classmethod
    def mean(cls, distances: Collection[Distance]) -> Distance | None:
        """The mean of those that are defined; None where none is."""
        estimates = mean([each.estimates for each in distances])
        if estimates is None:
            return None
        return cls(estimates, float(np.mean([each.by_chance for each in distances if np.isfinite(each.estimates[0])])))

    @classmethod
    def between(cls, real: Floats, synthetic: Floats) -> Distance:
        """The absolute difference of what two tables say of one thing."""
        differences = real - synthetic
        error = _error(differences)
        return cls(np.abs(differences), error if abs(differences[0]) < Z * error else 0.0)


def measured(estimates: Floats, *, lowest: float = 0.0, highest: float = 1.0, z: float = Z) -> Measure:
    """What the data itself says, with an interval from what the resamples say.

    >>> measured(np.array([0.5, 0.4, 0.6, 0.5]))
    Measure(value=0.5, low=0.30400..., high=0.69599...)
    """
    error = z / Z * _error(estimates)
    return Measure.around(float(estimates[0]), error=error, lowest=lowest, highest=highest)


def _error(estimates: Floats) -> float:
    resampled = estimates[1:][np.isfinite(estimates[1:])]
    return float(np.std(resampled, ddof=1)) if len(resampled) > 1 else 0.0


def plain(estimates: Floats) -> float | None:
    """What the data itself says, as JSON keeps it; None where it is not defined."""
    return float(estimates[0]) if np.isfinite(estimates[0]) else None


def mean(estimates: list[Floats]) -> Floats | None:
    """The mean of what is defined (not NaN) in the data itself; None where nothing is.

    A resample that leaves something undefined has no say about it: what the data says stays.
    """
    defined = [np.where(np.isfinite(each), each, each[0]) for each in estimates if np.isfinite(each[0])]
    return np.mean(defined, axis=0) if defined else None
