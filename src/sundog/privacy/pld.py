"""Privacy loss distributions on a grid: their composition, and their ε and δ.

The algorithms are dp-accounting's, on arrays. They are here because its loops would take
most of the time of a calibration, and its import more than checking a certificate. The tests compare every function
with dp-accounting.

Losses are rounded so that no δ(ε) is smaller than the true one. `event_pld.py` makes the distributions.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft

Floats = npt.NDArray[np.float64]

MOST_POINTS = 2**20  # of one distribution
_MOST_COMPOSED = 2**19  # of two that are composed, whose transforms take ten times the memory
TAIL = 1e-15  # the probability of extreme losses that a composition counts as infinite, as dp-accounting does
_ORDERS = range(-16, 10)  # of Chernoff's bound, as powers of two: the more runs, the smaller the best one
_MOST_MASS = 1.01  # of one run's probabilities, each rounded up, to the power of many runs; not a number is more


class GridError(Exception):
    """A distribution is too large for this grid, or smaller than rounding errors: a coarser grid may work."""


@dataclass(frozen=True, eq=False)
class LossPmf:
    """Probabilities of the losses `first * grid`, `(first + 1) * grid`, …, and of an infinite loss.

    >>> import numpy as np
    >>> coin = LossPmf(grid=0.5, first=-1, probabilities=np.array([0.25, 0.0, 0.75]), infinite=0.0)
    >>> round(coin.compute_delta(0.0), 4), round(coin.compute_epsilon(0.1), 4)
    (0.2951, 0.3569)
    """

    grid: float
    first: int
    probabilities: Floats
    infinite: float

    def compose(self, other: LossPmf) -> LossPmf:
        """Return the losses of the composition of two mechanisms."""
        if len(self.probabilities) + len(other.probabilities) > _MOST_COMPOSED:
            raise GridError
        infinite = self.infinite + other.infinite - self.infinite * other.infinite
        probabilities = _convolve(self.probabilities, other.probabilities)
        return LossPmf(self.grid, self.first + other.first, probabilities, infinite)._truncate()

    def self_compose(self, count: int) -> LossPmf:
        """Return the losses of `count` runs of this mechanism."""
        first, last = _bound_sum(self.probabilities, count)
        length = last - first + 1
        if length > MOST_POINTS:
            raise GridError
        cycle = fft.next_fast_len(max(length, len(self.probabilities)), real=True)
        # what is outside [first, last] wraps around into it, and also counts as an infinite loss: never too little
        spectrum = fft.rfft(self.probabilities, cycle)
        whole = fft.irfft(np.power(spectrum, count, out=spectrum), cycle, overwrite_x=True)
        inside = np.maximum(np.roll(whole, -(first % cycle))[:length], 0.0)
        if not inside.sum() < _MOST_MASS:
            raise GridError
        infinite = TAIL - math.expm1(count * math.log1p(-self.infinite))
        return LossPmf(self.grid, self.first * count + first, inside, infinite)

    def _truncate(self) -> LossPmf:
        """Cut off tails of probability `TAIL`: large losses become infinite, small ones the smallest that is left."""
        below, above = np.cumsum(self.probabilities), np.cumsum(self.probabilities[::-1])
        low = int(np.searchsorted(below, TAIL, side="right"))
        high = len(above) - int(np.searchsorted(above, TAIL, side="right"))
        if low >= high:
            return self
        kept = self.probabilities[low:high].copy()
        kept[0] += below[low - 1] if low else 0.0
        infinite = self.infinite + (float(above[len(above) - high - 1]) if high < len(above) else 0.0)
        return LossPmf(self.grid, self.first + low, kept, min(infinite, 1.0))

    def compute_delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence at ε: the smallest δ of (ε, δ)-DP in this direction."""
        if epsilon >= (self.first + len(self.probabilities)) * self.grid:
            return self.infinite
        start = max(0, math.floor(epsilon / self.grid) - self.first)
        losses = (self.first + np.arange(start, len(self.probabilities))) * self.grid
        return self.infinite + _sum_products(-np.expm1(np.minimum(epsilon - losses, 0.0)), self.probabilities[start:])

    def compute_epsilon(self, delta: float) -> float:
        """Return the smallest ε at which the hockey-stick divergence is at most δ.

        The divergence is infinite + Σ p (1 − exp(ε − loss)) over losses above ε. Losses are added from the largest
        down; the ε at which those so far give δ is the answer once the next loss is not above it.
        """
        if self.infinite > delta:
            return math.inf
        positive = max(0, 1 - self.first)
        losses = (self.first + np.arange(positive, len(self.probabilities)))[::-1] * self.grid
        probabilities = self.probabilities[positive:][::-1]
        excess = np.append(0.0, np.cumsum(probabilities)) + (self.infinite - delta)
        with np.errstate(divide="ignore", invalid="ignore"):
            # in logarithms, because exp(−loss) may be too small for a float
            lower = np.append(-np.inf, np.logaddexp.accumulate(np.log(probabilities) - losses))
            candidates = np.where(excess > 0, np.log(excess) - lower, -np.inf)
        reached = np.flatnonzero(candidates[:-1] >= losses)
        found = float(candidates[reached[0] if len(reached) else -1])
        return math.inf if math.isnan(found) else max(0.0, found)


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """The losses of a mechanism when a record is removed and when one is added."""

    remove: LossPmf
    add: LossPmf

    @classmethod
    def symmetric(cls, pmf: LossPmf) -> LossDistribution:
        """Return a distribution with the same losses in both directions."""
        return cls(pmf, pmf)

    @property
    def size(self) -> int:
        """The number of points."""
        return max(len(self.remove.probabilities), len(self.add.probabilities))

    def compose(self, other: LossDistribution) -> LossDistribution:
        """Return the losses of the composition of two mechanisms."""
        remove = self.remove.compose(other.remove)
        if self.remove is self.add and other.remove is other.add:
            return LossDistribution.symmetric(remove)
        return LossDistribution(remove, self.add.compose(other.add))

    def self_compose(self, count: int) -> LossDistribution:
        """Return the losses of `count` runs of this mechanism."""
        remove = self.remove.self_compose(count)
        if self.remove is self.add:
            return LossDistribution.symmetric(remove)
        return LossDistribution(remove, self.add.self_compose(count))

    def compute_delta(self, epsilon: float) -> float:
        """Return the smallest δ for which the mechanism is (ε, δ)-DP."""
        return max(pmf.compute_delta(epsilon) for pmf in {id(pmf): pmf for pmf in (self.remove, self.add)}.values())

    def compute_epsilon(self, delta: float) -> float:
        """Return the smallest ε for which the mechanism is (ε, δ)-DP."""
        return max(pmf.compute_epsilon(delta) for pmf in {id(pmf): pmf for pmf in (self.remove, self.add)}.values())


def compose_all(distributions: Iterable[LossDistribution]) -> LossDistribution:
    """Compose several mechanisms, always the two smallest next, so that few transforms are large."""
    order = itertools.count()
    waiting = [(each.size, next(order), each) for each in distributions]
    heapq.heapify(waiting)
    while len(waiting) > 1:
        _, _, first = heapq.heappop(waiting)
        _, _, second = heapq.heappop(waiting)
        both = first.compose(second)
        heapq.heappush(waiting, (both.size, next(order), both))
    return waiting[0][2]


def _convolve(a: Floats, b: Floats) -> Floats:
    length = len(a) + len(b) - 1
    cycle = fft.next_fast_len(length, real=True)
    spectrum = fft.rfft(a, cycle)
    spectrum *= fft.rfft(b, cycle)
    return np.asarray(np.maximum(fft.irfft(spectrum, cycle, overwrite_x=True)[:length], 0.0))


def _sum_products(a: npt.NDArray[Any], b: Floats) -> float:
    """Return the dot product on one thread: BLAS would start several, which wait for each other on a busy machine."""
    return float(np.einsum("i,i", a, b))


def _bound_sum(probabilities: Floats, count: int) -> tuple[int, int]:
    """Return indices between which a sum of `count` indices lies, up to a probability of `TAIL` (Chernoff's bound)."""
    n = len(probabilities)
    first, last = 0, (n - 1) * count
    middle = _sum_products(np.arange(n), probabilities)  # orders are about the mean, so that none of them is large
    step = np.exp((np.arange(n) - middle) * (2.0 ** _ORDERS[0] / n))
    for doubled in _ORDERS:
        order = 2.0**doubled  # in units of 1 / n
        for sign, factor in ((1, step), (-1, 1 / step)):
            moment = _sum_products(factor, probabilities)
            if not 1e-280 < moment < 1e280:  # where terms were rounded to nothing, it bounds nothing
                continue
            reach = n / order * (count * math.log(moment) + math.log(2 / TAIL))
            if sign > 0:
                last = min(last, math.ceil(count * middle + reach))
            else:
                first = max(first, math.floor(count * middle - reach))
        with np.errstate(over="ignore", under="ignore"):
            step = step * step
    return first, last
