"""What dp-accounting makes of one event: the reference for every distribution of ours."""

from __future__ import annotations

from typing import Any

from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as plds

from sundog.privacy.accountant import GRID
from sundog.privacy.events import DiscreteGaussian, DiscreteLaplace, Event, Failure, Gaussian, Pure, SampledGaussian


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
        case Pure():
            pair = common.DifferentialPrivacyParameters(event.epsilon, 0.0)
            return plds.from_privacy_parameters(pair, value_discretization_interval=grid)
        case Failure():
            pair = common.DifferentialPrivacyParameters(0.0, event.delta)
            return plds.from_privacy_parameters(pair, value_discretization_interval=grid)
    raise AssertionError(event)
