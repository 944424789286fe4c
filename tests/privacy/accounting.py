"""Events of every kind and what they cost together."""

from typing import get_args

import pytest
from tests.privacy.charges import DELTA

from sundog.privacy.accountant import Method, compute_epsilon
from sundog.privacy.events import (
    Charge,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
    Skellam,
)

METHODS: tuple[Method, ...] = get_args(Method)

EVENTS: list[Event] = [
    Gaussian(noise_multiplier=3.0),
    SampledGaussian(noise_multiplier=1.0, sample_rate=0.01),
    SampledGaussian(noise_multiplier=3.0, sample_rate=1.0),
    SampledGaussian(noise_multiplier=3.0, sample_rate=0.0),
    DiscreteGaussian(sigma=5.0),
    DiscreteLaplace(rate=0.1),
    DiscreteLaplace(rate=0.05, sensitivity=3),
    Skellam(sigma=5.0),
    Pure(epsilon=0.1),
    Failure(delta=1e-8),
]
every_event = pytest.mark.parametrize("event", EVENTS, ids=str)


def compute_spent(*charges: Charge, delta: float = DELTA, method: Method = "pld") -> float:
    return compute_epsilon(charges, delta=delta, method=method)
