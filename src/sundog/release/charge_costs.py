"""The charges of a certificate in words, and what each would cost alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sundog.privacy.accountant import compute_epsilon
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


@dataclass(frozen=True)
class ChargeCost:
    """A charge in words, the ε that it would cost alone, and its share of the sum of these."""

    purpose: str
    mechanism: str
    epsilon_alone: float
    share: float

    def __str__(self) -> str:
        cost = format_number(self.epsilon_alone)
        return f"{self.purpose:<28.28} {self.mechanism:<45} alone ε = {cost:<8} {self.share:>4.0%}"


def compute_costs(charges: Sequence[Charge], *, delta: float) -> list[ChargeCost]:
    """Return the charges in the order they were made, with what each would cost alone."""
    alone = [(charge, _compute_cost_alone(charge, delta)) for charge in charges]
    total = sum(cost for _, cost in alone if math.isfinite(cost)) or 1.0
    return [ChargeCost(charge.purpose, describe_charge(charge), cost, cost / total) for charge, cost in alone]


def describe_charge(charge: Charge) -> str:
    """Return the mechanism of a charge in words.

    >>> describe_charge(Charge(event=DiscreteGaussian(sigma=12.5), count=3, purpose="x"))
    'discrete Gaussian, σ = 12.5, × 3'
    """
    times = "" if charge.count == 1 else f", × {charge.count:,}"
    return _describe_event(charge.event) + times


def _describe_event(event: Event) -> str:
    match event:
        case Gaussian():
            return f"Gaussian, σ/Δ = {event.noise_multiplier:.4g}"
        case SampledGaussian():
            return f"Gaussian, σ/Δ = {event.noise_multiplier:.4g}, rate {event.sample_rate:.3g}"
        case DiscreteGaussian():
            return f"discrete Gaussian, σ = {event.sigma:.4g}"
        case DiscreteLaplace():
            return f"geometric, ε = {event.epsilon:.4g}"
        case Skellam(l1=1):
            return f"Skellam, σ = {event.sigma:.4g}"
        case Skellam():
            return f"Skellam, σ/Δ = {event.sigma / math.sqrt(event.l2_squared):.4g}"
        case Pure():
            return f"selection, ε = {event.epsilon:.4g}"
        case Failure():
            return f"failure, δ = {event.delta:.3g}"


def _compute_cost_alone(charge: Charge, delta: float) -> float:
    """Return ε of the charge alone, by the quick accountant: an indication, not the claim."""
    if isinstance(charge.event, Failure):
        return 0.0
    if isinstance(charge.event, DiscreteLaplace | Pure):
        return charge.event.epsilon * charge.count
    return compute_epsilon([charge], delta=delta, method="rdp")


def format_number(value: float | None) -> str:
    """Return a figure as text, or a dash for None.

    >>> format_number(0.12345), format_number(None)
    ('0.1235', '–')
    """
    return "–" if value is None else f"{value:.4g}"
