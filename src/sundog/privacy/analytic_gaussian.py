"""(ε, δ) of the Gaussian mechanism in closed form: the analytic Gaussian mechanism of Balle and Wang 2018."""

from __future__ import annotations

import math

from scipy import special


def gaussian_delta(*, noise_multiplier: float, epsilon: float) -> float:
    """δ of one Gaussian mechanism at ε, exactly (Balle and Wang 2018, Theorem 8)."""
    s = noise_multiplier
    upper = special.log_ndtr(0.5 / s - epsilon * s)
    lower = epsilon + special.log_ndtr(-0.5 / s - epsilon * s)
    if lower >= upper:  # equal to the last digit: the difference is below what floats can hold
        return 0.0
    return float(math.exp(upper) * -math.expm1(lower - upper))


def gaussian_epsilon(*, noise_multiplier: float, delta: float) -> float:
    """ε of one Gaussian mechanism at δ, exactly.

    >>> round(gaussian_epsilon(noise_multiplier=1.0, delta=1e-5), 4)
    4.3772
    """
    s = noise_multiplier
    if s < 0.01:  # beyond meaning and near overflow: the bound from zero-concentrated privacy is close enough
        return (0.5 / s + math.sqrt(2 * math.log(1 / delta))) / s if s > 1e-150 else math.inf

    def excess(epsilon: float) -> float:
        return gaussian_delta(noise_multiplier=noise_multiplier, epsilon=epsilon) - delta

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
    while high - low > 1e-13 * high + 1e-15:  # by halves, from above: never claim less than is spent
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high * (1 + 1e-10) + 1e-12
