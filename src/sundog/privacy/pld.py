"""Three loops of dp-accounting as lines of numpy, because they take most of a calibration; tests hold them equal.

One makes the distribution of a Poisson-sampled Gaussian on a grid, whose ends are dp-accounting's. One composes a
distribution with itself. The last walks down a composed distribution to find ε.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as plds
from dp_accounting.pld import privacy_loss_mechanism as losses
from scipy import fft

Floats = npt.NDArray[np.float64]

MOST_POINTS = 2**21  # of one distribution
_MOST_MASS = 1.01  # of one run's probabilities, each rounded up, to the power of many runs; not a number is more
_TAIL = 1e-15  # the chance of extreme losses that a composition counts as infinite, as dp-accounting does


class GridError(Exception):
    """On this grid a distribution would be too large, or is lost in rounding: a coarser one may do."""


class _GaussianLoss(losses.GaussianPrivacyLoss):  # type: ignore[misc]
    """dp-accounting's loss, with δ(ε) computed for a whole grid at once."""

    def get_delta_for_epsilon(self, epsilon: Floats) -> Floats:
        q = self.sampling_prob
        remove = self.adjacency_type == losses.AdjacencyType.REMOVE
        sign = 1 if remove else -1
        inside = sign * epsilon > math.log1p(-q) if q < 1 else np.full(len(epsilon), True)
        # where no output has so small (or large) a loss, δ is that of the whole space, or nothing
        delta = np.maximum(-np.expm1(np.minimum(epsilon, 0.0)), 0.0) if remove else np.zeros(len(epsilon))
        grid = epsilon[inside]
        unsampled = sign * _log_of_unsampled_ratio(sign * grid, q)
        x = (-0.5 if remove else 0.5) - unsampled * self._standard_deviation**2
        delta[inside] = self.mu_upper_cdf(x) - np.exp(grid + self.mu_lower_log_cdf(x))
        # δ falls as ε grows; where rounding says otherwise, the larger value stands
        return np.maximum.accumulate(np.clip(delta, 0, 1)[::-1])[::-1]


def _log_of_unsampled_ratio(loss: Floats, q: float) -> Floats:
    """log(1 + (exp(loss) − 1)/q): the loss that the mechanism without sampling would have had."""
    if q == 1:
        return loss
    large = loss > 30
    with np.errstate(divide="ignore"):  # the smallest loss there is has no finite counterpart
        small = np.log1p(np.maximum(np.expm1(np.where(large, 0.0, loss)) / q, -1.0))
    return np.where(large, loss - math.log(q), small)


def sampled_gaussian_pld(*, noise_multiplier: float, sample_rate: float, grid: float) -> Any:
    """A `PrivacyLossDistribution` for adding or removing one record."""
    pmfs = []
    for adjacency in (losses.AdjacencyType.REMOVE, losses.AdjacencyType.ADD):
        loss = _GaussianLoss(noise_multiplier, sampling_prob=sample_rate, adjacency_type=adjacency)
        bounds = loss.connect_dots_bounds()
        low = math.floor(bounds.epsilon_lower / grid)
        high = max(math.ceil(bounds.epsilon_upper / grid), low + 1)
        if high - low > MOST_POINTS:
            raise GridError
        delta = loss.get_delta_for_epsilon(np.arange(low, high + 1) * grid)
        pmfs.append(pld_pmf.DensePLDPmf(grid, low, _connected_dots(delta, grid), delta[-1], True))
    return plds.PrivacyLossDistribution(*pmfs)


def _connected_dots(delta: Floats, grid: float) -> Floats:
    """Probabilities of the losses on the grid that have this δ(ε) there, and no less between.

    Doroshenko, Ghazi, Kamath, Kumar, Manurangsi: Connect the Dots (2022), algorithm 1.
    """
    falls = np.diff(delta)
    before, after = falls[:-1] * math.exp(grid), falls[1:]
    first = 1 - delta[0] + falls[0] / math.expm1(grid)
    last = falls[-1] / math.expm1(-grid)
    probabilities = np.concatenate([[first], (after - before) / math.expm1(grid), [last]])
    return np.asarray(np.maximum(probabilities, 0.0))


def self_composed(pld: Any, count: int) -> Any:
    """The loss of `count` runs of one mechanism.

    Always on arrays: to compose its sparse form, dp-accounting would take size to the power of count.
    """
    pmfs = [pld._pmf_remove] if pld._symmetric else [pld._pmf_remove, pld._pmf_add]
    return plds.PrivacyLossDistribution(*(_self_composed_pmf(pmf.to_dense_pmf(), count) for pmf in pmfs))


def _self_composed_pmf(pmf: Any, count: int) -> Any:
    probabilities = np.asarray(pmf._probs)
    first, last = _likely(probabilities, count)
    length = last - first + 1
    if length > MOST_POINTS:
        raise GridError
    cycle = fft.next_fast_len(max(length, len(probabilities)), real=True)
    # what falls outside [first, last] wraps around into it, and is also charged to the infinite loss: never too little
    whole = fft.irfft(fft.rfft(probabilities, cycle) ** count, cycle)
    start = first % cycle
    inside = np.concatenate([whole[start:], whole[:start]])[:length]
    if not inside.sum() < _MOST_MASS:
        raise GridError
    infinite = _TAIL - math.expm1(count * math.log1p(-pmf._infinity_mass))
    return pld_pmf.DensePLDPmf(pmf._discretization, pmf._lower_loss * count + first, inside, infinite, True)


def _likely(probabilities: Floats, count: int) -> tuple[int, int]:
    """Between which indices a sum of `count` indices lies, but for a chance of `_TAIL`: Chernoff's bound."""
    n = len(probabilities)
    first, last = 0, (n - 1) * count
    middle = float(np.arange(n) @ probabilities)  # orders are about the mean, so that none of them is large
    step = np.exp((np.arange(n) - middle) / n)
    for doubled in range(10):
        order = 2**doubled  # in units of 1 / n
        for sign, factor in ((1, step), (-1, 1 / step)):
            moment = float(factor @ probabilities)
            if not 1e-280 < moment < 1e280:  # where terms were rounded to nothing, it bounds nothing
                continue
            reach = n / order * (count * math.log(moment) + math.log(2 / _TAIL))
            if sign > 0:
                last = min(last, math.ceil(count * middle + reach))
            else:
                first = max(first, math.floor(count * middle - reach))
        with np.errstate(over="ignore", under="ignore"):
            step = step * step
    return first, last


def epsilon_of_pld(pld: Any, *, delta: float) -> float:
    """The smallest ε at which the distribution's hockey-stick divergence is at most δ."""
    pmfs = [pld._pmf_remove] if pld._symmetric else [pld._pmf_remove, pld._pmf_add]
    return max(_epsilon_of_pmf(pmf, delta) for pmf in pmfs)


def _epsilon_of_pmf(pmf: Any, delta: float) -> float:
    if pmf.size < 10_000 or (pmf._lower_loss + pmf.size) * pmf._discretization > 700:  # small, or beyond exponentials
        return float(pmf.get_epsilon_for_delta(delta))
    if pmf._infinity_mass > delta:
        return math.inf
    losses = (pmf._lower_loss + np.arange(pmf.size)[::-1]) * pmf._discretization  # the largest first
    probabilities = pmf._probs[::-1]
    upper = np.append(pmf._infinity_mass, pmf._infinity_mass + np.cumsum(probabilities))
    # losses below −700 are far from any ε; rounding them up there can only raise the answer, and overflows nothing
    lower = np.append(0.0, np.cumsum(np.exp(np.minimum(-losses, 700.0)) * probabilities))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        candidates = np.where((upper > delta) & (lower > 0), np.log((upper - delta) / lower), -np.inf)
    reached = np.flatnonzero(candidates[:-1] >= losses)
    found = float(candidates[reached[0] if len(reached) else -1])
    return math.inf if math.isnan(found) else max(0.0, found)
