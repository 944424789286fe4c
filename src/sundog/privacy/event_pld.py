"""The privacy loss distribution of each event, on a grid.

Losses between two points of the grid are shared between them ("connect the dots"), so that δ(ε) is exact on the grid
and never too small between its points: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from sundog.privacy.events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
    Skellam,
)
from sundog.privacy.pld import MOST_POINTS, Floats, GridError, LossDistribution, LossPmf
from sundog.privacy.skellam import compute_masses

_LOG_TAIL = -50.0  # of the probability of Gaussian noise beyond the ends of the grid
_REACH = 11.6  # in σ: beyond it a discrete Gaussian has a probability below 10⁻³⁰ (Canonne, Kamath, Steinke 2020)
_WIDEST_SKELLAM = 2.0**14  # σ: probabilities are computed one by one


def compute_pld(event: Event, grid: float) -> LossDistribution:
    """Return the privacy loss distribution of one event; raise GridError if the grid is too fine for it.

    >>> round(compute_pld(Gaussian(noise_multiplier=1.0), 1e-3).compute_delta(1.0), 4)
    0.1269
    """
    return _PLD_OF[type(event)](event, grid)


def has_distribution(event: Event) -> bool:
    """Return whether the losses of an event are computed; Rényi divergences are all that is known of the others.

    >>> has_distribution(Skellam(sigma=5.0)), has_distribution(Skellam(sigma=5.0, l1=2, l2_squared=2))
    (True, False)
    """
    return not isinstance(event, Skellam) or (event.l1 == 1 and event.sigma <= _WIDEST_SKELLAM)


# --- Gaussian noise, on a Poisson sample --------------------------------------------------------------------------


def _compute_gaussian_pld(event: Gaussian, grid: float) -> LossDistribution:
    return _compute_sampled_gaussian_pld(
        SampledGaussian(noise_multiplier=event.noise_multiplier, sample_rate=1.0), grid
    )


def _compute_sampled_gaussian_pld(event: SampledGaussian, grid: float) -> LossDistribution:
    sigma, q = event.noise_multiplier, event.sample_rate
    tail = -sigma * float(special.ndtri(0.5 * math.exp(_LOG_TAIL)))
    reach = (tail + 0.5) / sigma**2  # of losses without sampling
    low, high = _compute_sampled_loss(-reach, q), _compute_sampled_loss(reach, q)
    remove = _connect_dots(
        _find_grid_ends(low, high, grid), grid, lambda epsilon: _compute_removal_delta(epsilon, sigma, q)
    )
    add = _connect_dots(
        _find_grid_ends(-high, -low, grid), grid, lambda epsilon: _compute_addition_delta(epsilon, sigma, q)
    )
    return LossDistribution(remove, add)


def _compute_sampled_loss(loss: float, q: float) -> float:
    """Return log(1 − q + q exp(loss)): the loss after sampling, when a record is removed."""
    if q == 1:
        return loss
    return math.log1p(q * math.expm1(loss)) if loss < 30 else loss + math.log(q + (1 - q) * math.exp(-loss))


def _compute_unsampled_loss(loss: Floats, q: float) -> Floats:
    """Return log(1 + (exp(loss) − 1)/q): the loss of the same outcome without sampling."""
    if q == 1:
        return loss
    large = loss > 30
    with np.errstate(divide="ignore"):  # the smallest loss has no finite counterpart
        small = np.log1p(np.maximum(np.expm1(np.where(large, 0.0, loss)) / q, -1.0))
    return np.where(large, loss - math.log(q), small)


def _compute_removal_delta(epsilon: Floats, sigma: float, q: float) -> Floats:
    """Return δ(ε) of q N(−1, σ²) + (1 − q) N(0, σ²) against N(0, σ²)."""
    delta = np.maximum(-np.expm1(np.minimum(epsilon, 0.0)), 0.0)  # where every output has a larger loss
    inside = epsilon > math.log1p(-q) if q < 1 else np.full(len(epsilon), True)
    grid = epsilon[inside]
    x = -0.5 - _compute_unsampled_loss(grid, q) * sigma**2
    upper = q * special.ndtr((x + 1) / sigma) + (1 - q) * special.ndtr(x / sigma)
    delta[inside] = upper - np.exp(grid + special.log_ndtr(x / sigma))
    return delta


def _compute_addition_delta(epsilon: Floats, sigma: float, q: float) -> Floats:
    """Return δ(ε) of N(0, σ²) against q N(1, σ²) + (1 − q) N(0, σ²)."""
    delta = np.zeros(len(epsilon))  # where no output has a loss this large
    inside = -epsilon > math.log1p(-q) if q < 1 else np.full(len(epsilon), True)
    grid = epsilon[inside]
    x = 0.5 + _compute_unsampled_loss(-grid, q) * sigma**2
    lower = math.log(q) + special.log_ndtr((x - 1) / sigma)
    if q < 1:
        lower = np.logaddexp(lower, math.log1p(-q) + special.log_ndtr(x / sigma))
    delta[inside] = special.ndtr(x / sigma) - np.exp(grid + lower)
    return delta


def _find_grid_ends(low: float, high: float, grid: float) -> tuple[int, int]:
    first = math.floor(low / grid)
    last = max(math.ceil(high / grid), first + 1)
    if last - first >= MOST_POINTS:
        raise GridError
    return first, last


def _connect_dots(ends: tuple[int, int], grid: float, delta_of: Callable[[Floats], Floats]) -> LossPmf:
    """Return losses on the grid with this δ(ε) at its points, and no less between them (Algorithm 1 of the paper)."""
    first, last = ends
    delta = np.clip(delta_of(np.arange(first, last + 1, dtype=np.float64) * grid), 0, 1)
    delta = np.maximum.accumulate(delta[::-1])[::-1]  # δ falls as ε grows; where rounding breaks this, keep the larger
    falls = np.diff(delta)
    smallest = 1 - delta[0] + falls[0] / math.expm1(grid)
    largest = falls[-1] / math.expm1(-grid)
    between = (falls[1:] - falls[:-1] * math.exp(grid)) / math.expm1(grid)
    probabilities = np.maximum(np.concatenate([[smallest], between, [largest]]), 0.0)
    infinite = float(delta[-1])
    probabilities *= max(1.0, (1 - infinite) / probabilities.sum())  # rounding losses would add up over runs
    return LossPmf(grid, first, probabilities, infinite)


# --- Events with few losses ---------------------------------------------------------------------------------------


def _compute_discrete_gaussian_pld(event: DiscreteGaussian, grid: float) -> LossDistribution:
    reach = math.ceil(_REACH * event.sigma)
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    density = np.exp(-0.5 * (x / event.sigma) ** 2)
    density /= density.sum()
    losses = (-0.5 - x[:-1]) / event.sigma**2  # of the noise against the noise shifted by one
    return _share_losses(losses, density[1:], float(density[0]), grid)


def _compute_skellam_pld(event: Skellam, grid: float) -> LossDistribution:
    if not has_distribution(event):
        raise GridError
    half = compute_masses(event.sigma**2)
    masses = np.concatenate([half[:0:-1], half])
    losses = np.diff(np.log(masses))  # of the noise against the noise shifted by one
    return _share_losses(losses, masses[1:], float(masses[0]), grid)


def _compute_discrete_laplace_pld(event: DiscreteLaplace, grid: float) -> LossDistribution:
    losses = np.array([-event.rate, event.rate])  # noise shifted by one has no others
    return _share_losses(losses, special.expit(losses), 0.0, grid)


def _share_losses(losses: Floats, probabilities: Floats, infinite: float, grid: float) -> LossDistribution:
    """Share each loss between the points around it, so that Σ p and Σ p exp(−loss) do not change."""
    first, last = _find_grid_ends(float(losses.min()), float(losses.max()), grid)
    below = np.clip(np.floor(losses / grid).astype(np.int64), first, last - 1)
    above = probabilities * np.clip(np.expm1(below * grid - losses) / math.expm1(-grid), 0.0, 1.0)
    found = np.zeros(last - first + 1)
    np.add.at(found, below - first, probabilities - above)
    np.add.at(found, below - first + 1, above)
    return LossDistribution.symmetric(LossPmf(grid, first, found, infinite))


def _compute_pure_pld(event: Pure, grid: float) -> LossDistribution:
    """Return the losses of randomised response, the worst case of an ε-DP mechanism, rounded up."""
    losses = np.array([-event.epsilon, event.epsilon])
    first, last = _find_grid_ends(-event.epsilon, event.epsilon, grid)
    found = np.zeros(last - first + 1)
    np.add.at(found, np.ceil(losses / grid).astype(np.int64) - first, special.expit(losses))
    return LossDistribution.symmetric(LossPmf(grid, first, found, 0.0))


def _compute_failure_pld(event: Failure, grid: float) -> LossDistribution:
    return LossDistribution.symmetric(LossPmf(grid, 0, np.array([1 - event.delta]), event.delta))


_PLD_OF: dict[type, Callable[[Any, float], LossDistribution]] = {
    Gaussian: _compute_gaussian_pld,
    SampledGaussian: _compute_sampled_gaussian_pld,
    DiscreteGaussian: _compute_discrete_gaussian_pld,
    DiscreteLaplace: _compute_discrete_laplace_pld,
    Skellam: _compute_skellam_pld,
    Pure: _compute_pure_pld,
    Failure: _compute_failure_pld,
}
