"""Trade-off curves: the errors that a guarantee leaves to whoever guesses whether a record was there.

A guess between "the record was there" and "it was not" has two error rates: α, the rate of false alarms, and β, the
rate of misses. A mechanism that is (ε, δ)-DP for a whole profile of pairs (ε, δ(ε)) leaves no guess with
β < f(α), where f is its trade-off curve (Dong, Roth and Su 2022). The profile of a certificate follows from its
charges. (ε, δ) at the certificate's δ is a single point of it, so an audit against the curve sees more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sundog.privacy.accountant import compute_epsilon, compute_privacy_profile
from sundog.privacy.analytic_gaussian import compute_gaussian_delta
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
from sundog.privacy.record_count import compute_count_epsilon, exclude_counts

Floats = npt.NDArray[np.float64]

_POINTS = 300  # of a profile: pairs (ε, δ)
_LEAST_DELTA = 1e-9  # beyond it no number of runs could show anything
_LARGEST_EPSILON = 700.0  # whose exponential is still a float
_DELTAS = np.logspace(-9, -0.01, 60)  # where the accountant is asked point by point
_SMALLEST_NOISE, _LARGEST_LOSS = 1e-12, 1e10  # that an event can have


@dataclass(frozen=True, eq=False)
class TradeoffCurve:
    """The smallest rate of misses at each rate of false alarms.

    It is the upper envelope of two lines for each pair (ε, δ) of a profile: 1 − δ − e^ε·α, because the record may be
    removed, and e^−ε·(1 − δ − α), because it may be added. Between the pairs that are kept, the envelope is below the
    true curve, so that no mechanism is accused for rounding.

    >>> curve = TradeoffCurve(np.array([np.log(3)]), np.array([0.0]), np.array([0.0]))
    >>> np.round(curve(np.array([0.0, 0.1, 0.25, 0.7])), 3).tolist()
    [1.0, 0.7, 0.25, 0.1]

    Args:
        epsilons: increasing, at least 0.
        removal: δ at each of them, for a record that is removed: the record is there in the first of two hypotheses.
        addition: δ at each of them, for a record that is added.
    """

    epsilons: Floats
    removal: Floats
    addition: Floats

    def __call__(self, alpha: Floats) -> Floats:
        """Return the smallest rate of misses at these rates of false alarms."""
        alpha = np.asarray(alpha, np.float64)[..., None]
        factor = np.exp(np.minimum(self.epsilons, _LARGEST_EPSILON))
        removed = 1 - self.removal - factor * alpha
        added = (1 - self.addition - alpha) / factor
        return np.asarray(np.maximum(0.0, np.maximum(removed.max(axis=-1), added.max(axis=-1))))


def compute_tradeoff_curve(charges: Iterable[Charge], *, points: int = _POINTS) -> TradeoffCurve:
    """Return the curve of everything that was charged, by PLD.

    The ε of counts of records is added to that of the rest, as in certificates. Where PLD cannot be used, the curve is
    the envelope of what the accountant says at some δ.

    >>> curve = compute_tradeoff_curve([Charge(event=Gaussian(noise_multiplier=1.0), purpose="a sum")])
    >>> np.round(curve(np.array([0.1, 0.3])), 3).tolist()
    [0.611, 0.317]

    Args:
        charges: those of a ledger, a plan or a certificate.
        points: how many pairs (ε, δ) are kept.
    """
    return _compute_curve(tuple(charges), points)


@functools.lru_cache(maxsize=64)
def _compute_curve(charges: tuple[Charge, ...], points: int) -> TradeoffCurve:
    shift, rest = compute_count_epsilon(charges), exclude_counts(charges)
    losses = [charge for charge in rest if not isinstance(charge.event, Failure)]
    most = min(compute_epsilon(losses, delta=_LEAST_DELTA), _LARGEST_EPSILON)
    # denser at small ε, where the curve bends; the last point is the whole ε of events without δ
    epsilons = most * np.linspace(0, 1, points) ** 1.5
    removal, addition = compute_privacy_profile(rest, epsilons.tolist())
    if min(removal) == 1.0:
        epsilons = np.array([compute_epsilon(rest, delta=float(delta)) for delta in _DELTAS])[::-1]
        removal = addition = _DELTAS[::-1].tolist()
    return TradeoffCurve(epsilons + shift, np.array(removal), np.array(addition))


def make_gaussian_curve(mu: float, *, points: int = _POINTS) -> TradeoffCurve:
    """Return the curve of N(0, 1) against N(μ, 1): that of Gaussian noise with multiplier 1/μ.

    >>> np.round(make_gaussian_curve(1.0)(np.array([0.1, 0.3])), 3).tolist()
    [0.611, 0.317]
    """
    return compute_tradeoff_curve([Charge(event=Gaussian(noise_multiplier=1 / mu), purpose="μ")], points=points)


def compute_gaussian_mu(*, epsilon: float, delta: float) -> float:
    """Return the μ at which a Gaussian mechanism is just (ε, δ)-DP.

    >>> round(compute_gaussian_mu(epsilon=4.0, delta=1e-5), 3), round(compute_gaussian_mu(epsilon=1.0, delta=1e-5), 3)
    (0.925, 0.268)
    """
    low, high = 1e-9, 1.0
    if math.isinf(epsilon):
        return math.inf
    while compute_gaussian_delta(noise_multiplier=1 / high, epsilon=epsilon) < delta:
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        exceeds = compute_gaussian_delta(noise_multiplier=1 / middle, epsilon=epsilon) > delta
        low, high = (low, middle) if exceeds else (middle, high)
    return low


def scale_charges(charges: Sequence[Charge], factor: float) -> list[Charge]:
    """Return the charges of the same mechanisms with their noise divided by a factor.

    >>> scale_charges([Charge(event=Gaussian(noise_multiplier=1.0), purpose="a sum")], 2.0)[0].event.noise_multiplier
    0.5
    """
    return [charge.model_copy(update={"event": _scale(charge.event, factor)}) for charge in charges]


def _scale(event: Event, factor: float) -> Event:
    def divide(noise: float) -> float:
        return max(_SMALLEST_NOISE, noise / factor)

    match event:
        case Gaussian():
            return Gaussian(noise_multiplier=divide(event.noise_multiplier))
        case SampledGaussian():
            return SampledGaussian(noise_multiplier=divide(event.noise_multiplier), sample_rate=event.sample_rate)
        case DiscreteGaussian():
            return DiscreteGaussian(sigma=divide(event.sigma))
        case DiscreteLaplace():
            rate = min(event.rate * factor, _LARGEST_LOSS / event.sensitivity)
            return DiscreteLaplace(rate=rate, sensitivity=event.sensitivity)
        case Skellam():
            return event.model_copy(update={"sigma": divide(event.sigma)})
        case Pure():
            return Pure(epsilon=min(event.epsilon * factor, _LARGEST_LOSS))
    return event  # a failure has no noise
