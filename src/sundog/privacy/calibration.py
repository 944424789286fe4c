"""Calibration: how much noise a budget needs and how many steps it allows, before any data is touched.

The searches use the accountant itself. The Rényi bound takes milliseconds and lands within a fifth of the answer;
from there a few secant steps use the privacy loss distribution, on coarse grids and then on the real one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from scipy import optimize

from sundog.errors import BudgetExceededError
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.analytic_gaussian import compute_gaussian_delta
from sundog.privacy.events import MOST_TIMES, Charge, SampledGaussian

Planner = Callable[[float], Sequence[Charge]]

TOLERANCE = 9e-4  # a calibrated plan spends between (1 − TOLERANCE)·ε and ε
_SILENCE = 1e9  # a noise scale that hides any signal
_MARGIN = 1e-7  # room for rounding when the same events are later composed in another order


def make_training_charges(*, noise_multiplier: float, sample_rate: float, steps: int) -> list[Charge]:
    """Return the charges of DP-SGD: `steps` Gaussian sums over Poisson samples."""
    if steps > MOST_TIMES:
        raise BudgetExceededError(f"{steps:,} steps are too many to account for; use larger batches or fewer epochs")
    event = SampledGaussian(noise_multiplier=noise_multiplier, sample_rate=sample_rate)
    return [Charge(event=event, count=steps, purpose="training")]


def find_noise_multiplier(
    *, epsilon: float, delta: float, sample_rate: float, steps: int, already: Sequence[Charge] = ()
) -> float:
    """Return the smallest noise multiplier for which `steps` sampled Gaussian sums, after `already`, are (ε, δ)-DP.

    >>> round(find_noise_multiplier(epsilon=1.0, delta=1e-5, sample_rate=1.0, steps=1), 2)
    3.73
    """

    def plan(noise: float) -> list[Charge]:
        return [*already, *make_training_charges(noise_multiplier=noise, sample_rate=sample_rate, steps=steps)]

    return find_smallest_noise(plan, epsilon=epsilon, delta=delta)


def find_gaussian_noise(*, epsilon: float, delta: float) -> float:
    """Return the noise multiplier of a single Gaussian mechanism that spends (ε, δ).

    >>> round(find_gaussian_noise(epsilon=1.0, delta=1e-5), 2)
    3.73
    """

    def excess(log_noise: float) -> float:
        return compute_gaussian_delta(noise_multiplier=math.exp(log_noise), epsilon=epsilon) / delta - 1

    most = math.log(max(1.0, 0.5 / delta))  # enough for ε = 0
    return math.exp(float(optimize.brentq(excess, min(-0.6 * math.log(1 + epsilon) - 5.0, most), most, xtol=1e-9)))


def find_most_steps(*, noise_multiplier: float, sample_rate: float, epsilon: float, delta: float) -> int:
    """Return the number of steps that a budget allows, to within one in a thousand and never too many.

    >>> find_most_steps(noise_multiplier=20.0, sample_rate=1.0, epsilon=1.0, delta=1e-5)
    28
    """

    def spent(steps: int) -> float:
        plan = make_training_charges(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps)
        return compute_epsilon(plan, delta=delta)

    if spent(1) > epsilon:
        return 0
    low, high = 1, 2
    while spent(high) <= epsilon:
        low, high = high, high * 4
        if high > 10**12:
            return low
    while high - low > max(1, low // 1000):
        middle = math.isqrt(low * high)  # ε grows with a power of the steps: halve the exponent
        middle = min(max(middle, low + 1), high - 1)
        low, high = (middle, high) if spent(middle) <= epsilon else (low, middle)
    return low


def find_smallest_noise(plan: Planner, *, epsilon: float, delta: float) -> float:
    """Return the smallest scale for which `plan(scale)` is (ε, δ)-DP; `plan` must spend less as its scale grows.

    Args:
        plan: the charges at a noise scale; charges that do not depend on it are allowed.
        epsilon: the target, which the result meets to within TOLERANCE and never exceeds.
        delta: the δ at which ε is meant.

    >>> from sundog.privacy.events import Gaussian
    >>> plan = lambda scale: [Charge(event=Gaussian(noise_multiplier=scale), purpose="x")]
    >>> scale = find_smallest_noise(plan, epsilon=1, delta=1e-5)
    >>> round(scale, 2)
    3.73
    """
    target = epsilon * (1 - _MARGIN)

    def spent(scale: float, coarseness: int) -> float:
        return compute_epsilon(plan(scale), delta=delta, coarseness=coarseness)

    scale, slope = _find_start(plan, target, delta)
    for coarseness, tolerance in ((16, 0.02), (4, 0.004)):  # near enough, on either side
        aim = target * (1 + tolerance / 2)
        scale, slope = _search_root(functools.partial(spent, coarseness=coarseness), scale, slope, aim, tolerance)
    # What a grid adds to ε grows with the square of its step, so 16 and 4 predict 1, which is slow and used once.
    coarse, finer = spent(scale, 16), spent(scale, 4)
    predicted = max(finer - (coarse - finer) / 16, 0.5 * target)
    scale *= math.exp(math.log(target * (1 - TOLERANCE / 2) / predicted) / slope)
    return _search_root(functools.partial(spent, coarseness=1), scale, slope, target, TOLERANCE)[0]


def _find_start(plan: Planner, target: float, delta: float) -> tuple[float, float]:
    """Return a scale that is enough noise, and not far too much, with the slope d log ε / d log noise there.

    The Rényi bound finds it in milliseconds. Below about ε = 0.02 its orders do not suffice, and PLD is used.
    """
    for method in ("rdp", "pld"):
        found = _find_enough_noise(lambda scale: compute_epsilon(plan(scale), delta=delta, method=method), target)  # noqa: B023
        if found is not None:
            return found
    raise BudgetExceededError(
        f"no amount of noise fits ε = {target:.4g} at δ = {delta:.3g}: the other planned charges already use it up; "
        "raise epsilon or plan fewer charges"
    )


def _find_enough_noise(spent: Callable[[float], float], target: float) -> tuple[float, float] | None:
    if spent(_SILENCE) > target:
        return None
    low, high = 1 / 64, 1.0
    while (above := spent(high)) > target:
        low, high = high, high * 4
    below = spent(low)
    while high / low > 1.25:
        middle = math.sqrt(low * high)
        found = spent(middle)
        low, below, high, above = (middle, found, high, above) if found > target else (low, below, middle, found)
    slope = math.log(max(above, 1e-12) / min(below, 1e12)) / math.log(high / low)
    return high, max(-10.0, min(-0.5, slope))


def _search_root(
    spent: Callable[[float], float], scale: float, slope: float, target: float, tolerance: float
) -> tuple[float, float]:
    """Take secant steps in log-log coordinates until ε is just below the target, inside a bracket."""
    low, high = 0.0, math.inf  # too little noise, enough noise
    aim = math.log(target * (1 - tolerance / 2))
    last: tuple[float, float] | None = None
    for _ in range(60):
        found = spent(scale)
        if target * (1 - tolerance) <= found <= target:
            return scale, slope
        low, high = (scale, high) if found > target else (low, scale)
        if high - low < 1e-9 * high:
            break
        x, y = math.log(scale), math.log(max(found, 1e-12))
        if last is not None and x != last[0] and y != last[1]:
            slope = (y - last[1]) / (x - last[0])
        last = (x, y)
        scale = math.exp(x + max(-1.5, min(1.5, (aim - y) / slope)))
        if not low < scale < high:
            scale = 2 * low if math.isinf(high) else (low + high) / 2
    return high, slope
