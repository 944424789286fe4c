"""What dp-accounting makes of one event: the reference for every distribution of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from dp_accounting.pld import common, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as plds
from scipy import stats

from sundog.privacy.accountant import GRID
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


def reference_pld(event: Event, grid: float = GRID) -> Any:
    """What dp-accounting itself makes of one event."""
    match event:
        case Gaussian():
            return plds.from_gaussian_mechanism(event.noise_multiplier, value_discretization_interval=grid)
        case SampledGaussian():
            return plds.from_gaussian_mechanism(
                event.noise_multiplier, sampling_prob=event.sample_rate, value_discretization_interval=grid
            )
        case DiscreteGaussian():
            return plds.from_discrete_gaussian_mechanism(
                event.sigma, value_discretization_interval=grid, use_connect_dots=True
            )
        case DiscreteLaplace():
            return plds.from_discrete_laplace_mechanism(
                event.rate, sensitivity=event.sensitivity, value_discretization_interval=grid, use_connect_dots=True
            )
        case Skellam():
            return make_skellam_pld(event.sigma, grid)
        case Pure():
            pair = common.DifferentialPrivacyParameters(event.epsilon, 0.0)
            return plds.from_privacy_parameters(pair, value_discretization_interval=grid)
        case Failure():
            pair = common.DifferentialPrivacyParameters(0.0, event.delta)
            return plds.from_privacy_parameters(pair, value_discretization_interval=grid)
    raise AssertionError(event)


def compute_skellam_pmf(sigma: float) -> Any:
    """The probabilities of differences of two Poisson variates, from the lowest to the highest."""
    poisson = stats.poisson.pmf(np.arange(int(sigma**2 + 20 * sigma) + 60), sigma**2 / 2)
    whole = np.convolve(poisson, poisson[::-1])
    reach = int(14 * sigma) + 30
    return whole[len(poisson) - 1 - reach : len(poisson) + reach]


def make_skellam_pld(sigma: float, grid: float) -> Any:
    """dp-accounting's connected dots through δ(ε), summed over all outcomes of Skellam noise and the same plus one."""
    masses = compute_skellam_pmf(sigma)
    seen = masses[1:] > 1e-33
    upper, lower = masses[1:][seen], masses[:-1][seen]
    losses = np.log(upper / lower)
    points = np.unique(np.concatenate([np.floor(losses / grid), np.ceil(losses / grid)])).astype(int)
    deltas = [float(np.maximum(0.0, upper - np.exp(point * grid) * lower).sum()) for point in points]
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(grid, points, np.clip(deltas, 0, 1))
    return plds.PrivacyLossDistribution(pmf)
