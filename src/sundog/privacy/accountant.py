"""From events to (ε, δ): three columns, one claim.

`pld` (privacy loss distributions, Google's dp-accounting) is what sundog claims. `rdp` (Rényi) is the cross-check, an
upper bound by another road: it stands in where PLD would be too coarse, too large or too near to rounding, and an
event that only one of them understands is caught by the contract tests. `moments` is the accountant of the papers
(integer orders up to 32), kept for comparison with their tables, never as the claim.

Every event is composed `count` times by one code path for all kinds, because dp-accounting 0.6.0 forgets `count` for
one of its own events; composing distributions directly leaves nothing to forget.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from sundog.privacy.events import (
    Charge,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
)

Method = Literal["pld", "rdp", "moments"]
METHODS: tuple[Method, ...] = ("pld", "rdp", "moments")
Floats = npt.NDArray[np.float64]

GRID = 1e-4  # the discretisation of privacy loss that dp-accounting uses by default

# Beyond this ε nothing is protected. The quick bound is answer enough there, and a forged certificate cannot make
# its reader build a distribution of any size.
_MEANINGLESS = 1e5
_MEANINGLESS_LOSS = 300.0
_MOST_EVENTS = 64
_MOST_POINTS = 2**22  # of the distributions of all events together, each as wide as the composed one
_MOST_WORK = 2**27  # points of distributions, each time that one is composed with another
_TAIL = 1e-15  # what is beyond the ends of a composed distribution

# What Fourier transforms may lose of a composed δ (measured: 3·10⁻¹³). Where that is not negligible, PLD is not used.
_FFT_ERROR = 1e-12
_FFT_ERROR_EACH = 1e-16  # and this much for every event composed

# From this σ on, a discrete Gaussian is accounted as the Gaussian of variance σ² − 2 of which it is a randomised
# rounding, but for a factor of 1 ± 10⁻¹⁶ (docs/privacy.md).
_ROUNDED_FROM = 32.0

_RDP_ORDERS = np.array([*range(2, 65), 80, 96, 128, 192, 256], dtype=float)
_MOMENT_ORDERS = np.arange(2, 34).astype(float)  # λ = 1 … 32 in the papers is Rényi order λ + 1


def epsilon_spent(charges: Iterable[Charge], *, delta: float, method: Method = "pld", coarseness: int = 1) -> float:
    """The smallest ε for which the composition of all charges is (ε, δ)-DP, by the given accountant.

    >>> twenty = [Charge(event=Gaussian(noise_multiplier=20.0), count=20, purpose="test")]
    >>> round(epsilon_spent(twenty, delta=1e-5), 3)
    0.82
    """
    totals = _totals(charges)
    if not totals:
        return 0.0
    if method != "pld":
        return _epsilon_by_orders(totals, delta, method)
    gaussian = _as_one_gaussian(totals)
    if gaussian is not None:
        return gaussian_epsilon(noise_multiplier=gaussian, delta=delta)
    quick = _quick_epsilon(totals, delta)
    if quick == 0 or delta < 50 * _fft_error(totals) or _is_beyond_pld(totals, quick):
        return quick
    grid, finest = coarseness * _grid(totals, quick), _finest(totals)
    while grid >= finest:
        found = _epsilon_on_grid(totals, grid, delta)
        if found < 1.01 * quick:
            return min(found, quick)
        grid /= 10  # losses so small that they are lost in the grid: PLD is above the bound it should be below
    return quick


def fits(charges: Iterable[Charge], *, epsilon: float, delta: float) -> bool:
    """Whether the charges are (ε, δ)-DP: what `epsilon_spent` says, with as little work as the answer takes.

    The Rényi bound takes a tenth of a millisecond. Distributions on coarser grids come next: a grid rounds losses up,
    to points that the real one has too, so that none of them spends less. Only where all of these are above the budget
    is the real grid asked.

    >>> twenty = [Charge(event=Gaussian(noise_multiplier=20.0), count=20, purpose="test")]
    >>> fits(twenty, epsilon=0.83, delta=1e-5), fits(twenty, epsilon=0.81, delta=1e-5)
    (True, False)
    """
    charges = tuple(charges)
    totals = _totals(charges)
    if totals and _as_one_gaussian(totals) is None:  # for which the real answer is as quick
        quick = _quick_epsilon(totals, delta)
        if quick <= epsilon:
            return True
        if delta < 50 * _fft_error(totals) or _is_beyond_pld(totals, quick):
            return False
        grid, target = _grid(totals, quick), epsilon * (1 - 1e-6)  # by rounding they differ, either way
        if any(_epsilon_on_grid(totals, n * grid, delta) <= target for n in (16, 4)):
            return True
    return epsilon_spent(charges, delta=delta) <= epsilon


def delta_spent(charges: Iterable[Charge], *, epsilon: float) -> float:
    """The smallest δ for which the composition of all charges is (ε, δ)-DP, by PLD.

    >>> delta_spent([Charge(event=Gaussian(noise_multiplier=1.0), purpose="test")], epsilon=1.0)
    0.126936...
    """
    totals = _totals(charges)
    if not totals:
        return 0.0
    gaussian = _as_one_gaussian(totals)
    if gaussian is not None:
        return gaussian_delta(noise_multiplier=gaussian, epsilon=epsilon)
    pure, rest = _without_delta(totals)
    if not rest and pure <= epsilon * (1 + 1e-12):
        return 0.0
    losses: dict[Event, int] = {event: count for event, count in totals.items() if not isinstance(event, Failure)}
    quick = _epsilon_by_orders(losses, 1e-9, "rdp")
    if _is_beyond_pld(totals, quick):
        return 1.0
    whole = _composed(totals, _grid(totals, quick))
    if whole is None:
        return 1.0
    found = float(whole.get_delta_for_epsilon(epsilon))
    return found if sum(totals.values()) == 1 else min(1.0, found + _fft_error(totals))


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


def _totals(charges: Iterable[Charge]) -> dict[Event, int]:
    totals: Counter[Event] = Counter()
    for charge in charges:
        totals[_simplified(charge.event)] += charge.count
    return {event: count for event, count in totals.items() if not _is_nothing(event)}


def _simplified(event: Event) -> Event:
    """An event that costs the same, or a hair more, and is easier to account for."""
    match event:
        case SampledGaussian(sample_rate=1.0):
            return Gaussian(noise_multiplier=event.noise_multiplier)
        case DiscreteGaussian() if event.sigma >= _ROUNDED_FROM:
            root = math.sqrt(2)
            return Gaussian(noise_multiplier=math.sqrt(event.sigma - root) * math.sqrt(event.sigma + root))
        case DiscreteLaplace() if event.sensitivity > 1:
            return Pure(epsilon=event.epsilon)
    return event


def _is_nothing(event: Event) -> bool:
    return isinstance(event, SampledGaussian) and event.sample_rate == 0


def _as_one_gaussian(totals: dict[Event, int]) -> float | None:
    """Several Gaussians are one: squared signal-to-noise ratios add up."""
    if not totals or not all(isinstance(event, Gaussian) for event in totals):
        return None
    # by norms rather than squares, which a hostile multiplier could make overflow
    ratios = [
        math.sqrt(count) / event.noise_multiplier for event, count in totals.items() if isinstance(event, Gaussian)
    ]
    return 1 / math.hypot(*ratios)


def _quick_epsilon(totals: dict[Event, int], delta: float) -> float:
    """The smaller of two bounds: by Rényi orders, and where the ε of events without δ is added to that of the rest.

    Orders alone make little of a small ε at a tiny δ.
    """
    pure, rest = _without_delta(totals)
    gaussian = _as_one_gaussian(rest)
    of_rest = (
        _epsilon_by_orders(rest, delta, "rdp")
        if gaussian is None
        else gaussian_epsilon(noise_multiplier=gaussian, delta=delta)
    )
    return min(_epsilon_by_orders(totals, delta, "rdp"), pure + (of_rest if rest else 0.0))


def _without_delta(totals: dict[Event, int]) -> tuple[float, dict[Event, int]]:
    """The sum of ε of all events that have no δ, and the other events."""
    pure = {event: count for event, count in totals.items() if isinstance(event, DiscreteLaplace | Pure)}
    rest: dict[Event, int] = {event: count for event, count in totals.items() if event not in pure}
    return sum(event.epsilon * count for event, count in pure.items()), rest


# --- privacy loss distributions ------------------------------------------------------------------------------------


def _grid(totals: dict[Event, int], quick: float) -> float:
    """The step in which losses are counted: finer than usual where the loss of an event would be lost in it."""
    fine = max(min(_resolution(event) for event in totals), 4e-6 * quick)
    return max(min(GRID, fine), _finest(totals))


def _finest(totals: dict[Event, int]) -> float:
    """The finest step that leaves distributions of a bearable size, from how far losses reach in the composed one."""
    losses: dict[Event, int] = {event: count for event, count in totals.items() if not isinstance(event, Failure)}
    return _epsilon_by_orders(losses, _TAIL, "rdp") * len(totals) / _MOST_POINTS


def _resolution(event: Event) -> float:
    """A step in which the event's loss still shows: a part of its standard deviation, or of its one value."""
    match event:
        case Gaussian():
            return 0.3 / event.noise_multiplier
        case DiscreteGaussian():
            return 0.3 / event.sigma
        case SampledGaussian():
            return 0.3 * event.sample_rate * math.sqrt(math.expm1(min(50.0, event.noise_multiplier**-2)))
        case DiscreteLaplace() | Pure():
            return 0.02 * event.epsilon
    return math.inf


def _fft_error(totals: dict[Event, int]) -> float:
    return _FFT_ERROR + _FFT_ERROR_EACH * sum(totals.values())


def _is_beyond_pld(totals: dict[Event, int], quick: float) -> bool:
    # The loss of a pure event is rounded up to the grid each time, so that many of them drift a point each.
    drift = sum(count for event, count in totals.items() if isinstance(event, Pure)) * len(totals)
    if len(totals) > _MOST_EVENTS or drift > _MOST_POINTS:
        return True
    return quick > _MEANINGLESS or _largest_loss(totals) > _MEANINGLESS_LOSS


def _largest_loss(totals: dict[Event, int]) -> float:
    """Of one event alone, roughly: dp-accounting takes exponentials of it."""
    pure = [event.epsilon for event in totals if isinstance(event, DiscreteLaplace | Pure)]
    return max(
        [*pure, *(0.5 * event.sigma**-2 for event in totals if isinstance(event, DiscreteGaussian))], default=0.0
    )


def _epsilon_on_grid(totals: dict[Event, int], grid: float, delta: float) -> float:
    from sundog.privacy.pld import epsilon_of_pld

    whole = _composed(totals, grid)
    return math.inf if whole is None else epsilon_of_pld(whole, delta=delta - _fft_error(totals))


def _composed(totals: dict[Event, int], grid: float) -> Any:
    """The distribution of all losses together, on a coarser grid if need be; None if it is too large on any."""
    coarser = (_composed_on(totals, times * grid) for times in (1, 4, 16, 64))
    return next((whole for whole in coarser if whole is not None), None)


def _composed_on(totals: dict[Event, int], grid: float) -> Any:
    from sundog.privacy.pld import GridError

    parts = dict(totals)
    gaussians: dict[Event, int] = {event: parts.pop(event) for event in totals if isinstance(event, Gaussian)}
    if merged := _as_one_gaussian(gaussians):
        parts[Gaussian(noise_multiplier=merged)] = 1
    found: list[Any] = []
    points = 0
    for event, count in parts.items():
        try:
            found.append(_pld(event, count, grid))
        except GridError:
            return None
        points += found[-1]._pmf_remove.size
        if points > _MOST_POINTS or len(parts) * points > _MOST_WORK:  # before the next one takes memory, too
            return None
    return functools.reduce(lambda whole, part: whole.compose(part), found)


@functools.lru_cache(maxsize=32)
def _pld(event: Event, count: int, grid: float) -> Any:
    from sundog.privacy.pld import self_composed

    one = _single_pld(event, grid)
    return one if count == 1 else self_composed(one, count)


@functools.lru_cache(maxsize=32)
def _single_pld(event: Event, grid: float) -> Any:
    return _PLD_OF[type(event)](event, grid)


def _gaussian_pld(event: Gaussian | SampledGaussian, grid: float) -> Any:
    from sundog.privacy.pld import sampled_gaussian_pld

    rate = event.sample_rate if isinstance(event, SampledGaussian) else 1.0
    return sampled_gaussian_pld(noise_multiplier=event.noise_multiplier, sample_rate=rate, grid=grid)


def _discrete_gaussian_pld(event: DiscreteGaussian, grid: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as plds

    return plds.from_discrete_gaussian_mechanism(
        event.sigma, sensitivity=1, value_discretization_interval=grid, use_connect_dots=True
    )


def _discrete_laplace_pld(event: DiscreteLaplace, grid: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as plds

    return plds.from_discrete_laplace_mechanism(
        event.rate, sensitivity=1, value_discretization_interval=grid, use_connect_dots=True
    )


def _pure_pld(event: Pure, grid: float) -> Any:
    return _approximate_dp_pld(event.epsilon, 0.0, grid)


def _failure_pld(event: Failure, grid: float) -> Any:
    return _approximate_dp_pld(0.0, event.delta, grid)


def _approximate_dp_pld(epsilon: float, delta: float, grid: float) -> Any:
    """The worst privacy loss any (ε, δ)-DP mechanism can have."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as plds

    return plds.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=grid
    )


_PLD_OF: dict[type, Callable[[Any, float], Any]] = {
    Gaussian: _gaussian_pld,
    SampledGaussian: _gaussian_pld,
    DiscreteGaussian: _discrete_gaussian_pld,
    DiscreteLaplace: _discrete_laplace_pld,
    Pure: _pure_pld,
    Failure: _failure_pld,
}

# --- Rényi orders --------------------------------------------------------------------------------------------------


def _epsilon_by_orders(totals: dict[Event, int], delta: float, method: Method) -> float:
    orders = _RDP_ORDERS if method == "rdp" else _MOMENT_ORDERS
    failure = sum(event.delta * count for event, count in totals.items() if isinstance(event, Failure))
    if failure >= delta:  # the failures alone use up δ; no finite ε is left to claim
        return math.inf
    spent = np.zeros_like(orders)
    for event, count in totals.items():
        if not isinstance(event, Failure):
            spent = spent + count * np.asarray(_renyi(event, method))
    spent = np.maximum(spent, 0.0)  # tiny divergences round to either side of zero
    if method == "moments":  # Abadi et al. 2016, Theorem 2: δ = min exp(α(λ) − λε)
        return float(np.min(spent + math.log(1 / (delta - failure)) / (orders - 1)))
    return _epsilon_of_orders(orders, spent, delta - failure)


def _epsilon_of_orders(orders: Floats, spent: Floats, delta: float) -> float:
    """From Rényi divergences to ε (Canonne, Kamath, Steinke 2020, Proposition 12), as dp-accounting does.

    It is here because importing dp-accounting takes most of a second, and showing a certificate does not.
    """
    found = spent + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    found = np.where(delta**2 + np.expm1(-spent) > 0, 0.0, found)  # δ ≤ √(1 − exp(−KL))
    return max(0.0, float(found.min()))


@functools.lru_cache(maxsize=256)
def _renyi(event: Event, method: Method) -> tuple[float, ...]:
    orders = _RDP_ORDERS if method == "rdp" else _MOMENT_ORDERS
    with np.errstate(over="ignore"):  # what overflows is infinite
        return tuple(_renyi_at(event, orders))


def _renyi_at(event: Event, orders: Floats) -> Floats:
    if isinstance(event, Gaussian):
        return orders / 2 / event.noise_multiplier / event.noise_multiplier
    if isinstance(event, DiscreteGaussian):  # Canonne, Kamath, Steinke 2020, Theorem 4
        return orders / 2 / event.sigma / event.sigma
    if isinstance(event, SampledGaussian):
        return _sampled_gaussian_renyi(event, orders)
    if isinstance(event, DiscreteLaplace | Pure):
        return _pure_renyi(event.epsilon, orders)
    raise AssertionError(f"no Rényi divergence for {event!r}")


def _sampled_gaussian_renyi(event: SampledGaussian, orders: Floats) -> Floats:
    if event.noise_multiplier < 1e-3:  # nothing to lose: without sampling it is worse, and can be computed
        return _renyi_at(Gaussian(noise_multiplier=event.noise_multiplier), orders)
    excess = special.logsumexp(_excess_terms(event, orders), axis=1)
    return np.asarray(np.logaddexp(0.0, excess) / (orders - 1))


def _excess_terms(event: SampledGaussian, orders: Floats) -> Floats:
    """Logarithms of what each term adds to A − 1 (Mironov, Talwar, Zhang 2019, section 3.3), one row an order.

    A = Σₖ C(α, k) qᵏ (1 − q)^(α − k) exp(k(k − 1) / 2σ²) for whole α; without the exponentials the sum is one.
    """
    k = np.arange(2.0, orders.max() + 1)
    alpha = orders[:, None]
    weight = _log_binomials(tuple(orders)) + k * math.log(event.sample_rate)
    weight += (alpha - k) * math.log1p(-event.sample_rate)
    moment = k * (k - 1) / 2 / event.noise_multiplier / event.noise_multiplier
    growth = moment + np.log(-np.expm1(-moment))  # log(exp(moment) − 1)
    return np.where(k <= alpha, weight + growth, -np.inf)


@functools.lru_cache(maxsize=len(METHODS))
def _log_binomials(orders: tuple[float, ...]) -> Floats:
    """Logarithms of C(α, k) for k from 2 on, one row an order; what stands where k is above α is not used."""
    k, alpha = np.arange(2.0, max(orders) + 1), np.array(orders)[:, None]
    found = special.gammaln(alpha + 1) - special.gammaln(k + 1) - special.gammaln(np.maximum(alpha - k, 0) + 1)
    return np.asarray(found)


def _pure_renyi(epsilon: float, orders: Floats) -> Floats:
    """The Rényi divergence of randomised response, the worst that an ε-DP mechanism can do."""
    log_p, log_q = -np.logaddexp(0, -epsilon), -np.logaddexp(0, epsilon)
    terms = [orders * log_p + (1 - orders) * log_q, orders * log_q + (1 - orders) * log_p]
    return np.asarray(np.logaddexp(*terms) / (orders - 1))
