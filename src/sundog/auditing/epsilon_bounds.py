"""Lower bounds on ε, and an estimate of μ, from the scores of an attack.

`bound_epsilon` asks how much noise there can have been at the most: it divides the noise of all charges by a factor
until the curve of what is left allows the errors that were counted. Its ε at the certificate's δ is proven for
mechanisms of this shape. `bound_epsilon_at_threshold` takes nothing for granted but (ε, δ)-DP itself, at one
threshold: it is what most audits report, and far from tight at a small δ. `estimate_mu` fits a Gaussian to the scores:
nothing is proven by it, but it says how much an attack got out of a mechanism.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from sundog.auditing.error_test import Errors, compute_corrected_p_value
from sundog.auditing.tradeoff_curve import compute_tradeoff_curve, scale_charges
from sundog.privacy.events import Charge
from sundog.privacy.record_count import compute_fit_epsilon

Floats = npt.NDArray[np.float64]

_LEAST_FACTOR, _MOST_FACTOR = 2.0**-6, 2.0**4  # of the noise
_PRECISION = 0.005  # of the factor, relative
_POINTS = 120  # of a curve that is one of many


def bound_epsilon(
    found: Sequence[Errors], charges: Sequence[Charge], *, delta: float, confidence: float = 0.95
) -> float:
    """Return a lower bound on ε at δ: that of the largest guarantee of this shape that the errors contradict.

    >>> from sundog.privacy.events import Gaussian
    >>> sums = [Charge(event=Gaussian(noise_multiplier=1.0), purpose="a sum")]
    >>> round(bound_epsilon([Errors(310, 1000, 310, 1000)], sums, delta=1e-5), 1)
    3.8

    Args:
        found: the errors at each threshold of each attack; all of them are corrected for.
        charges: of one run.
        delta: at which ε is bounded.
        confidence: of the bound.
    """

    @functools.cache
    def is_contradicted(factor: float) -> bool:
        curve = compute_tradeoff_curve(scale_charges(charges, factor), points=_POINTS)
        return compute_corrected_p_value(found, curve) <= 1 - confidence

    low, high = _LEAST_FACTOR, _MOST_FACTOR
    if not is_contradicted(low):
        return 0.0
    while high / low > 1 + _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_contradicted(middle) else (low, middle)
    return compute_fit_epsilon(scale_charges(charges, low), delta=delta)


def bound_epsilon_at_threshold(errors: Errors, *, delta: float, confidence: float = 0.95) -> float:
    """Return the lower bound on ε that follows from Clopper and Pearson's bounds on the errors at one threshold.

    >>> round(bound_epsilon_at_threshold(Errors(5, 1000, 500, 1000), delta=1e-5), 2)
    3.7

    Args:
        errors: counted at a threshold that does not depend on them.
        delta: of the (ε, δ) that is bounded.
        confidence: of the bound.
    """
    share = (1 - confidence) / 2
    alarms = _bound_rate(errors.false_alarms, errors.absent, share)
    misses = _bound_rate(errors.misses, errors.present, share)
    ratios = [(1 - misses - delta) / alarms, (1 - alarms - delta) / misses]
    return max(0.0, *(math.log(ratio) for ratio in ratios if ratio > 0)) if max(ratios) > 0 else 0.0


def bound_corrected_epsilon(found: Sequence[Errors], *, delta: float, confidence: float = 0.95) -> float:
    """Return the best of the bounds at several thresholds of several attacks, corrected for their number.

    >>> round(bound_corrected_epsilon([Errors(5, 1000, 500, 1000), Errors(0, 1000, 950, 1000)], delta=1e-5), 2)
    3.6

    Args:
        found: the errors at each threshold of each attack.
        delta: of the (ε, δ) that is bounded.
        confidence: of the bound.
    """
    level = 1 - (1 - confidence) / len(found)
    return max(bound_epsilon_at_threshold(each, delta=delta, confidence=level) for each in found)


def _bound_rate(count: int, runs: int, share: float) -> float:
    """Return Clopper and Pearson's upper bound on the rate of a binomial."""
    return float(special.betaincinv(count + 1, runs - count, 1 - share)) if count < runs else 1.0


@dataclass(frozen=True)
class MuEstimate:
    """An estimate of μ with its interval."""

    value: float
    low: float
    high: float


def estimate_mu(absent: Floats, present: Floats, *, confidence: float = 0.95) -> MuEstimate:
    """Return the distance of two samples of scores in standard deviations, as if they were two shifted Gaussians.

    >>> rng = np.random.default_rng(0)
    >>> found = estimate_mu(rng.normal(0, 1, 1000), rng.normal(2, 1, 1000))
    >>> round(found.value, 1), round(found.low, 1), round(found.high, 1)
    (2.0, 1.9, 2.1)

    Args:
        absent: scores of runs without the record.
        present: scores of runs with the record.
        confidence: of the two-sided interval.
    """
    if not (np.isfinite(absent).all() and np.isfinite(present).all()):
        return MuEstimate(math.inf, 0.0, math.inf)
    n, m = len(absent), len(present)
    variance = ((n - 1) * absent.var(ddof=1) + (m - 1) * present.var(ddof=1)) / (n + m - 2)
    distance = float(present.mean() - absent.mean())
    if variance <= 0:
        value = 0.0 if distance == 0 else math.copysign(math.inf, distance)
        return MuEstimate(value, value, value)
    value = distance / math.sqrt(variance)
    deviation = math.sqrt(1 / n + 1 / m + value**2 / (2 * (n + m)))
    reach = float(stats.norm.ppf((1 + confidence) / 2)) * deviation
    return MuEstimate(value, value - reach, value + reach)
