"""Accountants: from events to (ε, δ), by three methods.

`pld` (privacy loss distributions, as in Google's dp-accounting) is what sundog claims. `rdp` (Rényi) is the
cross-check, an independent upper bound: it replaces PLD where PLD would be too coarse, too large or too close to
rounding errors. The contract tests require every event to be supported by both. `moments` is the accountant
of the papers (integer orders up to 32), kept for comparison with their tables, never as the claim.

Every event is composed `count` times by one code path for all kinds.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from sundog.privacy.analytic_gaussian import compute_gaussian_delta, compute_gaussian_epsilon
from sundog.privacy.event_pld import compute_pld, has_distribution
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
from sundog.privacy.pld import TAIL, GridError, LossDistribution, compose_all
from sundog.privacy.renyi import compute_epsilon_by_orders

Method = Literal["pld", "rdp", "moments"]
METHODS: tuple[Method, ...] = ("pld", "rdp", "moments")

GRID = 1e-4  # the discretisation of privacy loss that dp-accounting uses by default

# Beyond this ε nothing is protected. The quick bound is good enough there, and a forged certificate cannot make its
# reader build a distribution of arbitrary size.
_MEANINGLESS = 1e5
_MEANINGLESS_LOSS = 300.0
_MOST_EVENTS = 64
_MOST_POINTS = 2**21  # of the distributions of all events together, each as wide as the composed one

# What Fourier transforms may lose of a composed δ (measured: 3·10⁻¹³). Where that is not negligible, PLD is not used.
_FFT_ERROR = 1e-12
_FFT_ERROR_EACH = 1e-16  # and this much for every event composed

# From this σ on, a discrete Gaussian is accounted as the Gaussian of variance σ² − 2 of which it is a randomised
# rounding, up to a factor of 1 ± 10⁻¹⁶ (docs/privacy.md).
_ROUNDED_FROM = 32.0


def compute_epsilon(charges: Iterable[Charge], *, delta: float, method: Method = "pld", coarseness: int = 1) -> float:
    """Return the smallest ε for which the composition of all charges is (ε, δ)-DP, by the given accountant.

    >>> twenty = [Charge(event=Gaussian(noise_multiplier=20.0), count=20, purpose="test")]
    >>> round(compute_epsilon(twenty, delta=1e-5), 3)
    0.82
    """
    totals = _count_events(charges)
    if not totals:
        return 0.0
    if method != "pld":
        return compute_epsilon_by_orders(totals, delta, method)
    gaussian = _merge_gaussians(totals)
    if gaussian is not None:
        return compute_gaussian_epsilon(noise_multiplier=gaussian, delta=delta)
    quick = _bound_epsilon(totals, delta)
    if quick == 0 or delta < 50 * _bound_fft_error(totals) or _is_beyond_pld(totals, quick):
        return quick
    grid, finest = coarseness * _choose_grid(totals, quick), _find_finest_grid(totals)
    while grid >= finest:
        found = _compute_epsilon_on_grid(totals, grid, delta)
        if found < 1.01 * quick:
            return min(found, quick)
        grid /= 10  # losses are small beside the grid: PLD is above the bound that it should be below
    return quick


def is_within_budget(charges: Iterable[Charge], *, epsilon: float, delta: float) -> bool:
    """Return whether the charges are (ε, δ)-DP, as by `compute_epsilon`, with as little work as possible.

    The Rényi bound takes a tenth of a millisecond. Distributions on coarser grids come next: a coarser grid rounds
    losses up to points that the finest one has too, so it never gives a smaller ε. The finest grid is used only if all
    of these bounds are above the budget.

    >>> twenty = [Charge(event=Gaussian(noise_multiplier=20.0), count=20, purpose="test")]
    >>> is_within_budget(twenty, epsilon=0.83, delta=1e-5), is_within_budget(twenty, epsilon=0.81, delta=1e-5)
    (True, False)
    """
    charges = tuple(charges)
    totals = _count_events(charges)
    if totals and _merge_gaussians(totals) is None:  # the closed form is as quick
        quick = _bound_epsilon(totals, delta)
        if quick <= epsilon:
            return True
        if delta < 50 * _bound_fft_error(totals) or _is_beyond_pld(totals, quick):
            return False
        # The target is a little lower: rounding makes the two figures differ in either direction.
        grid, target = _choose_grid(totals, quick), epsilon * (1 - 1e-6)
        if any(_compute_epsilon_on_grid(totals, n * grid, delta) <= target for n in (16, 4)):
            return True
    return compute_epsilon(charges, delta=delta) <= epsilon


def compute_delta(charges: Iterable[Charge], *, epsilon: float) -> float:
    """Return the smallest δ for which the composition of all charges is (ε, δ)-DP, by PLD.

    >>> compute_delta([Charge(event=Gaussian(noise_multiplier=1.0), purpose="test")], epsilon=1.0)
    0.126936...
    """
    totals = _count_events(charges)
    if not totals:
        return 0.0
    gaussian = _merge_gaussians(totals)
    if gaussian is not None:
        return compute_gaussian_delta(noise_multiplier=gaussian, epsilon=epsilon)
    pure, rest = _separate_pure(totals)
    if not rest and pure <= epsilon * (1 + 1e-12):
        return 0.0
    losses: dict[Event, int] = {event: count for event, count in totals.items() if not isinstance(event, Failure)}
    quick = compute_epsilon_by_orders(losses, 1e-9, "rdp")
    if _is_beyond_pld(totals, quick):
        return 1.0
    whole = _compose(totals, _choose_grid(totals, quick))
    if whole is None:
        return 1.0
    found = whole.compute_delta(epsilon)
    return found if sum(totals.values()) == 1 else min(1.0, found + _bound_fft_error(totals))


def compute_privacy_profile(charges: Iterable[Charge], epsilons: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the smallest δ at each ε for the removal of a record and for its addition, by PLD.

    >>> charges = [Charge(event=SampledGaussian(noise_multiplier=1.0, sample_rate=0.1), purpose="test")]
    >>> removal, addition = compute_privacy_profile(charges, [0.0, 0.1])
    >>> [round(delta, 4) for delta in (*removal, *addition)]
    [0.0383, 0.0185, 0.0383, 0.0]
    """
    totals = _count_events(charges)
    gaussian = _merge_gaussians(totals)
    if not totals or gaussian is not None:
        both = [compute_gaussian_delta(noise_multiplier=gaussian, epsilon=e) if gaussian else 0.0 for e in epsilons]
        return both, both
    losses: dict[Event, int] = {event: count for event, count in totals.items() if not isinstance(event, Failure)}
    quick = compute_epsilon_by_orders(losses, 1e-9, "rdp") if losses else 0.0
    whole = None if _is_beyond_pld(totals, quick) else _compose(totals, _choose_grid(totals, quick))
    if whole is None:
        return [1.0] * len(epsilons), [1.0] * len(epsilons)
    error = _bound_fft_error(totals) if sum(totals.values()) > 1 else 0.0
    removal, addition = (
        [min(1.0, pmf.compute_delta(epsilon) + error) for epsilon in epsilons] for pmf in (whole.remove, whole.add)
    )
    return removal, addition


def _count_events(charges: Iterable[Charge]) -> dict[Event, int]:
    totals: Counter[Event] = Counter()
    for charge in charges:
        totals[_simplify(charge.event)] += charge.count
    return {event: count for event, count in totals.items() if not _is_nothing(event)}


def _simplify(event: Event) -> Event:
    """Return an event that costs the same, or very slightly more, and is easier to account for."""
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


def _merge_gaussians(totals: dict[Event, int]) -> float | None:
    """Return the multiplier of the Gaussian that is equivalent to all: squared signal-to-noise ratios add up."""
    if not totals or not all(isinstance(event, Gaussian) for event in totals):
        return None
    # by norms rather than squares, which a hostile multiplier could make overflow
    ratios = [
        math.sqrt(count) / event.noise_multiplier for event, count in totals.items() if isinstance(event, Gaussian)
    ]
    return 1 / math.hypot(*ratios)


def _bound_epsilon(totals: dict[Event, int], delta: float) -> float:
    """Return the smaller of two bounds on ε: by Rényi orders, and by basic composition of events without δ.

    For a small ε at a tiny δ, the bound by Rényi orders is loose.
    """
    pure, rest = _separate_pure(totals)
    gaussian = _merge_gaussians(rest)
    of_rest = (
        compute_epsilon_by_orders(rest, delta, "rdp")
        if gaussian is None
        else compute_gaussian_epsilon(noise_multiplier=gaussian, delta=delta)
    )
    return min(compute_epsilon_by_orders(totals, delta, "rdp"), pure + (of_rest if rest else 0.0))


def _separate_pure(totals: dict[Event, int]) -> tuple[float, dict[Event, int]]:
    """Return the total ε of the events without δ, and the other events."""
    pure = {event: count for event, count in totals.items() if isinstance(event, DiscreteLaplace | Pure)}
    rest: dict[Event, int] = {event: count for event, count in totals.items() if event not in pure}
    return sum(event.epsilon * count for event, count in pure.items()), rest


# --- privacy loss distributions ------------------------------------------------------------------------------------


def _choose_grid(totals: dict[Event, int], quick: float) -> float:
    """Return the step of the grid of losses, finer than usual if an event's loss is small beside it."""
    fine = max(min(_find_resolution(event) for event in totals), 4e-6 * quick)
    return max(min(GRID, fine), _find_finest_grid(totals))


def _find_finest_grid(totals: dict[Event, int]) -> float:
    """Return the finest step for which the composed distribution is not too large."""
    losses: dict[Event, int] = {event: count for event, count in totals.items() if not isinstance(event, Failure)}
    return compute_epsilon_by_orders(losses, TAIL, "rdp") * len(totals) / _MOST_POINTS


def _find_resolution(event: Event) -> float:
    """Return a step that resolves the event's loss: a part of its standard deviation, or of its only value."""
    match event:
        case Gaussian():
            return 0.3 / event.noise_multiplier
        case DiscreteGaussian():
            return 0.3 / event.sigma
        case Skellam():
            return 0.3 / event.sigma
        case SampledGaussian():
            return 0.3 * event.sample_rate * math.sqrt(math.expm1(min(50.0, event.noise_multiplier**-2)))
        case DiscreteLaplace() | Pure():
            return 0.02 * event.epsilon
    return math.inf


def _bound_fft_error(totals: dict[Event, int]) -> float:
    return _FFT_ERROR + _FFT_ERROR_EACH * sum(totals.values())


def _is_beyond_pld(totals: dict[Event, int], quick: float) -> bool:
    # The loss of a pure event is rounded up to the grid each time, so that many of them drift a point each.
    drift = sum(count for event, count in totals.items() if isinstance(event, Pure)) * len(totals)
    if len(totals) > _MOST_EVENTS or drift > _MOST_POINTS or not all(map(has_distribution, totals)):
        return True
    return quick > _MEANINGLESS or _estimate_largest_loss(totals) > _MEANINGLESS_LOSS


def _estimate_largest_loss(totals: dict[Event, int]) -> float:
    """Estimate the largest loss of a single event."""
    pure = [event.epsilon for event in totals if isinstance(event, DiscreteLaplace | Pure)]
    return max(
        [*pure, *(0.5 * event.sigma**-2 for event in totals if isinstance(event, DiscreteGaussian))], default=0.0
    )


def _compute_epsilon_on_grid(totals: dict[Event, int], grid: float, delta: float) -> float:
    whole = _compose(totals, grid)
    return math.inf if whole is None else whole.compute_epsilon(delta - _bound_fft_error(totals))


def _compose(totals: dict[Event, int], grid: float) -> LossDistribution | None:
    """Return the composed distribution, on a coarser grid if necessary; None if it is too large on every grid."""
    coarser = (_compose_on(totals, times * grid) for times in (1, 4, 16, 64))
    return next((whole for whole in coarser if whole is not None), None)


def _compose_on(totals: dict[Event, int], grid: float) -> LossDistribution | None:
    parts = dict(totals)
    gaussians: dict[Event, int] = {event: parts.pop(event) for event in totals if isinstance(event, Gaussian)}
    if merged := _merge_gaussians(gaussians):
        parts[Gaussian(noise_multiplier=merged)] = 1
    found: list[LossDistribution] = []
    points = 0
    try:
        for event, count in parts.items():
            found.append(_compose_runs(event, count, grid))
            points += found[-1].size
            if points > _MOST_POINTS:  # before the next one takes memory
                return None
        return compose_all(found)
    except GridError:
        return None


@functools.lru_cache(maxsize=8)
def _compose_runs(event: Event, count: int, grid: float) -> LossDistribution:
    one = _compute_single_pld(event, grid)
    return one if count == 1 else one.self_compose(count)


@functools.lru_cache(maxsize=2)
def _compute_single_pld(event: Event, grid: float) -> LossDistribution:
    return compute_pld(event, grid)
