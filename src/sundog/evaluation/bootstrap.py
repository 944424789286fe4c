"""The bootstrap: how much a statistic would vary over other samples of the same size.

Rows are dealt at random into blocks and everything is summed by block. A resample draws blocks with replacement, so a
resampled sum is a weighted sum over blocks, and all resamples of a table are one matrix product. Statistics that are
not functions of sums, such as medians, are computed on resampled rows instead (`bootstrap_rows`).

Throughout this package the first axis of an array of *estimates* is the statistic of the data itself, followed by that
of each resample. `measure_estimates` turns estimates into a value with its interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.evaluation.measure import Measure, Z

ROUNDS = 100  # resamples
BLOCKS = 50
PAIRED_BLOCKS = 64  # of two tables that are resampled together

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def measure_estimates(
    estimates: Floats, *, lowest: float = 0.0, highest: float = 1.0, z: float = Z, keep: bool = False
) -> Measure:
    """Return the value of the data with a normal interval whose standard error is that of the resamples.

    >>> measure_estimates(np.array([0.5, 0.4, 0.6, 0.5]))
    Measure(value=0.5, low=0.30400..., high=0.69599...)

    Args:
        estimates: the statistic of the data, then that of each resample; undefined ones (NaN) are ignored.
        lowest: the smallest possible value.
        highest: the largest possible value.
        z: the normal quantile of the interval; 95% by default.
        keep: whether the measure keeps the resampled values, so that `combine` can pair it with others.
    """
    error = z / Z * compute_error(estimates)
    found = Measure.around(float(estimates[0]), error=error, lowest=lowest, highest=highest)
    if not keep:
        return found
    return Measure(found.value, found.low, found.high, resampled=tuple(float(each) for each in estimates[1:]))


def compute_error(estimates: Floats) -> float:
    """Return the standard deviation of the resamples; 0 where fewer than two are defined."""
    resampled = estimates[1:][np.isfinite(estimates[1:])]
    return float(np.std(resampled, ddof=1)) if len(resampled) > 1 else 0.0


def average_estimates(estimates: list[Floats]) -> Floats | None:
    """Return the mean of the statistics that are defined for the data itself; None if none is.

    Where a resample leaves a statistic undefined, the value of the data takes its place.
    """
    defined = [np.where(np.isfinite(each), each, each[0]) for each in estimates if np.isfinite(each[0])]
    return np.mean(defined, axis=0) if defined else None


def get_value(estimates: Floats) -> float | None:
    """Return the value of the data itself; None where it is undefined."""
    return float(estimates[0]) if np.isfinite(estimates[0]) else None


# --- resampled rows ------------------------------------------------------------------------------------------------


def bootstrap_rows(
    statistic: Callable[[NDArray[np.int64]], float],
    count: int,
    rng: np.random.Generator,
    *,
    strata: NDArray[Any] | None = None,
    lowest: float = -math.inf,
    highest: float = math.inf,
) -> Measure:
    """Return any statistic of rows with its interval.

    >>> values = np.arange(100.0)
    >>> median = bootstrap_rows(lambda rows: np.median(values[rows]), 100, np.random.default_rng(0))
    >>> median.value, 38 < median.low < 42, 57 < median.high < 61
    (49.5, True, True)

    Args:
        statistic: maps row numbers to a number.
        count: the number of rows.
        rng: draws the resamples.
        strata: the stratum of each row; rows are resampled within strata, so that rare strata keep their size.
        lowest: the smallest possible value.
        highest: the largest possible value.
    """
    everything = np.arange(count)
    parts = [everything] if strata is None else [np.flatnonzero(strata == each) for each in np.unique(strata)]
    resamples = (np.concatenate([part[rng.integers(0, len(part), len(part))] for part in parts]) for _ in range(ROUNDS))
    estimates = np.array([statistic(rows) for rows in chain([everything], resamples)], np.float64)
    return measure_estimates(estimates, lowest=lowest, highest=highest)


def bootstrap_mean(values: Floats, rng: np.random.Generator, *, lowest: float = -math.inf) -> Measure:
    """Return the mean of some values with its interval; NaN where there are none."""
    if not len(values):
        return Measure.exact(math.nan)
    return bootstrap_rows(lambda rows: float(values[rows].mean()), len(values), rng, lowest=lowest)


# --- resampled blocks ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of one table in blocks of equal size, and how often each resample draws each block.

    >>> blocks = Blocks.deal(1000, np.random.default_rng(0))
    >>> counts = blocks.sum_labels(np.arange(1000) % 2, 2)
    >>> counts.shape, counts[0].tolist()
    ((101, 2), [500.0, 500.0])

    Args:
        of_row: the block of each row.
        weights: (estimates, blocks); the first row counts every block once.
    """

    of_row: Labels
    weights: Floats

    @classmethod
    def deal(cls, rows: int, rng: np.random.Generator) -> Blocks:
        """Deal rows into blocks at random and draw the resamples."""
        blocks = min(BLOCKS, rows)
        weights = _draw_weights(blocks, rng)
        return cls(rng.permutation(rows) % blocks, weights)

    @classmethod
    def whole(cls, rows: int) -> Blocks:
        """Put all rows into one block without resamples, for statistics that need no interval."""
        return cls(np.zeros(rows, np.int64), np.ones((1, 1)))

    def sum_labels(self, labels: NDArray[Any], size: int, values: Floats | None = None) -> Floats:
        """Return the number of rows with each label, or the sum of their values: (estimates, size).

        Rows with label -1 are ignored. A row may have several labels, along the first axis.
        """
        places = (self.of_row * (size + 1) + labels + 1).ravel()
        sums = np.bincount(places, values, minlength=self._count * (size + 1)).reshape(self._count, size + 1)
        found: Floats = self.weights @ sums[:, 1:]
        return found

    def average_rows(self, rows: Any, add: Callable[[Any], Any]) -> Floats:
        """Return estimates of averages over rows, (estimates, features); `add` sums the features of some rows."""
        blocks = np.split(self._order, self._starts[1:])
        sums = np.array([add(rows[block]) for block in blocks], np.float64)
        counts = np.array([len(block) for block in blocks], np.float64)
        return np.asarray((self.weights @ sums) / (self.weights @ counts)[:, None])

    def find_extremes(self, values: Floats) -> tuple[Floats, Floats]:
        """Return estimates of the minimum and the maximum; NaN is ignored unless there is nothing else."""
        found = []
        for extreme in (np.fmin, np.fmax):
            of_block = extreme.reduceat(values[self._order], self._starts)
            found.append(extreme.reduce(np.where(self.weights > 0, of_block, np.nan), axis=1))
        return found[0], found[1]

    @property
    def _count(self) -> int:
        return int(self.weights.shape[1])

    @cached_property
    def _order(self) -> Labels:
        """The rows, block by block."""
        return np.argsort(self.of_row, kind="stable")

    @cached_property
    def _starts(self) -> Labels:
        """Where each block starts in that order."""
        return np.searchsorted(self.of_row[self._order], np.arange(self._count))


def _draw_weights(blocks: int, rng: np.random.Generator) -> Floats:
    """Draw the weight of each block, (estimates, blocks): 1 in the data, a random count in each resample."""
    drawn = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=ROUNDS)
    return np.vstack([np.ones(blocks), drawn])


# --- two tables ----------------------------------------------------------------------------------------------------


class PairedBlocks:
    """Real and synthetic rows in equally many blocks; a resample draws the same blocks of both.

    Tables of equal size are dealt in the same way, so that a table compared with itself shows no difference.

    >>> blocks = PairedBlocks(real=3, synthetic=3, rng=np.random.default_rng(0))
    >>> values = np.array([[1.0], [2.0], [3.0]])
    >>> pair = blocks.average(values, values + 1)
    >>> pair.real.tolist(), pair.synthetic.tolist()
    ([2.0], [3.0])
    >>> pair.measure_difference().value
    1.0
    """

    def __init__(self, *, real: int, synthetic: int, rng: np.random.Generator) -> None:
        """Deal the rows of both tables, given the number of rows of each, which is at least one."""
        self.count = min(PAIRED_BLOCKS, real, synthetic)
        self._rng = rng
        seed = int(rng.integers(2**63))
        self._real, self._synthetic = (self._deal(count, np.random.default_rng(seed)) for count in (real, synthetic))

    def _deal(self, rows: int, rng: np.random.Generator) -> Labels:
        of_row = np.empty(rows, np.int64)
        for block, members in enumerate(np.array_split(rng.permutation(rows), self.count)):
            of_row[members] = block
        return of_row

    def average(
        self, real: Any, synthetic: Any, add: Callable[[Any], Any] = lambda rows: rows.sum(axis=0)
    ) -> PairedAverages:
        """Average the same features over the rows of each table; `add` sums the features of some rows."""
        weights = _draw_weights(self.count, self._rng)
        return PairedAverages(
            Blocks(self._real, weights).average_rows(real, add),
            Blocks(self._synthetic, weights).average_rows(synthetic, add),
        )


@dataclass(frozen=True, eq=False)
class PairedAverages:
    """Estimates of the same averages, (estimates, features), over real and over synthetic rows."""

    real_estimates: Floats
    synthetic_estimates: Floats

    @property
    def real(self) -> Floats:
        """The averages over all real rows."""
        return np.asarray(self.real_estimates[0])

    @property
    def synthetic(self) -> Floats:
        """The averages over all synthetic rows."""
        return np.asarray(self.synthetic_estimates[0])

    def measure(self, compare: Callable[[Floats, Floats], float], *, highest: float = math.inf) -> Measure:
        """Return a non-negative comparison of the averages, real ones first, with its interval."""
        pairs = zip(self.real_estimates, self.synthetic_estimates, strict=True)
        return measure_estimates(np.array([compare(real, synthetic) for real, synthetic in pairs]), highest=highest)

    def measure_difference(self, *, highest: float = math.inf) -> Measure:
        """Return the mean absolute difference of the averages with its interval."""
        return self.measure(lambda real, synthetic: float(np.abs(real - synthetic).mean()), highest=highest)
