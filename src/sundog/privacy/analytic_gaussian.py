"""(ε, δ) of the Gaussian mechanism in closed form: the analytic Gaussian mechanism of Balle and Wang 2018."""

from __future__ import annotations

import math

from scipy import special

_ROUNDING = 2e-15  # of a logarithm, relative to 1 + its size


def compute_gaussian_delta(*, noise_multiplier: float, epsilon: float) -> float:
    """Return δ of one Gaussian mechanism at ε, exactly (Balle and Wang 2018, Theorem 8), rounded up.

    It is a difference of two numbers, nearly equal if σ is large. The rounding error of the difference is added.
    """
    s = noise_multiplier
    upper = float(special.log_ndtr(0.5 / s - epsilon * s))
    lower = float(epsilon + special.log_ndtr(-0.5 / s - epsilon * s))
    if upper == -math.inf:
        return 0.0
    gap = max(upper - lower, 0.0) + _ROUNDING * (1 - upper)
    return math.exp(upper) * -math.expm1(-gap)


def compute_gaussian_epsilon(*, noise_multiplier: float, delta: float) -> float:
    """Return ε of one Gaussian mechanism at δ, exactly.

    >>> round(compute_gaussian_epsilon(noise_multiplier=1.0, delta=1e-5), 4)
    4.3772
    """
    s = noise_multiplier
    if s < 0.01:  # beyond meaning and near overflow: the bound from zero-concentrated privacy is close enough
        return (0.5 / s + math.sqrt(2 * math.log(1 / delta))) / s if s > 1e-150 else math.inf

    def excess(epsilon: float) -> float:
        return compute_gaussian_delta(noise_multiplier=noise_multiplier, epsilon=epsilon) - delta

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
    while high - low > 1e-13 * high + 1e-15:  # by halves, from above: never claim less than is spent
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high * (1 + 1e-10) + 1e-12
