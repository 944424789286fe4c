"""Two loops of dp-accounting as lines of numpy, because they take most of a calibration; tests hold them equal.

One inverts the privacy loss of a Poisson-sampled Gaussian grid point by grid point; everything else about its
distribution (tails, rounding, connect-the-dots) stays dp-accounting's. The other walks down a composed distribution to
find ε.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as plds
from dp_accounting.pld import privacy_loss_mechanism as losses

Floats = npt.NDArray[np.float64]


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
        low, high = math.floor(bounds.epsilon_lower / grid), math.ceil(bounds.epsilon_upper / grid)
        delta = loss.get_delta_for_epsilon(np.arange(low, high + 1) * grid)
        pmfs.append(pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, low, high, delta))
    return plds.PrivacyLossDistribution(*pmfs)


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
    lower = np.append(0.0, np.cumsum(np.exp(-losses) * probabilities))
    with np.errstate(divide="ignore", invalid="ignore"):
        candidates = np.where((upper > delta) & (lower > 0), np.log((upper - delta) / lower), -np.inf)
    reached = np.flatnonzero(candidates[:-1] >= losses)
    return max(0.0, float(candidates[reached[0] if len(reached) else -1]))
