"""The accountant with extreme events, huge counts and tiny losses."""

import itertools
import math
import time
from typing import Any

import mpmath
import numpy as np
import pytest
from tests.privacy.accounting import EVENTS, METHODS, compute_spent
from tests.privacy.charges import DELTA, charge

from sundog.privacy import accountant
from sundog.privacy.accountant import GRID, compute_delta
from sundog.privacy.analytic_gaussian import compute_gaussian_delta, compute_gaussian_epsilon
from sundog.privacy.events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Pure,
    SampledGaussian,
    Skellam,
)


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(noise_multiplier=1e15),
        Gaussian(noise_multiplier=1e-6),
        SampledGaussian(noise_multiplier=1e15, sample_rate=1.0),
        SampledGaussian(noise_multiplier=1e15, sample_rate=1e-15),
        SampledGaussian(noise_multiplier=1e-6, sample_rate=0.5),
        DiscreteGaussian(sigma=0.01),
        DiscreteGaussian(sigma=1e-6),
        Skellam(sigma=1e-12),
        Skellam(sigma=1e15),
        Skellam(sigma=1e15, l1=10**9, l2_squared=10**18),
        Skellam(sigma=1e-12, l1=10**6, l2_squared=10**12),
        DiscreteLaplace(rate=10.0, sensitivity=10**9),
        DiscreteLaplace(rate=800.0),
        Pure(epsilon=800.0),
    ],
    ids=str,
)
def test_extreme_events_have_a_cost(event: Event) -> None:
    """Never an overflow: a ledger must be able to refuse them, or to allow them."""
    for count in (1, 10**12):
        for method in METHODS:
            assert compute_spent(charge(event, count), method=method) >= 0
    if "1e+15" in str(event) or "1000000000000000" in str(event):
        assert compute_spent(charge(event)) <= 1e-6
    else:
        assert compute_spent(charge(event)) > 100


TINY = [1e-15, 1e-9, 1e-7, 1e-5, 1e-3]


@pytest.mark.parametrize("delta", [1e-6, 0.4])
@pytest.mark.parametrize("count", [1, 1000, 10**9])
@pytest.mark.parametrize("scale", TINY)
def test_many_kinds_of_tiny_losses_take_little_time(scale: float, count: int, delta: float) -> None:
    kinds = [charge(Pure(epsilon=scale * (1 + i / 64)), count) for i in range(64)]
    started = time.process_time()
    found = compute_spent(*kinds, delta=delta)
    assert time.process_time() - started < 10  # it takes less than one; 63 before the grid was bounded by its reach
    assert found <= compute_spent(*kinds, delta=delta, method="rdp")
    assert found <= count * sum(one.event.epsilon for one in kinds if isinstance(one.event, Pure)) * (1 + 1e-9)


@pytest.mark.parametrize("scale", [0.02, 1.0, 20.0])
def test_huge_counts_of_many_kinds_take_little_time(scale: float) -> None:
    counts = [1, 1000, 10**6, 10**9, 10**12]
    kinds: list[list[Event]] = [
        [SampledGaussian(noise_multiplier=scale * (1 + i / 100), sample_rate=7e-4) for i in range(20)],
        [DiscreteGaussian(sigma=scale * (1 + i / 100)) for i in range(20)],
        [DiscreteLaplace(rate=1e-3 * scale * (1 + i / 100)) for i in range(20)],
    ]
    for several in kinds:
        charges = [charge(event, counts[place % len(counts)]) for place, event in enumerate(several)]
        started = time.process_time()
        assert 0 < compute_spent(*charges) <= compute_spent(*charges, method="rdp")
        assert time.process_time() - started < 10


def test_the_largest_distribution_that_is_composed_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    whole = accountant._compose

    def watched(totals: dict[Event, int], grid: float) -> Any:
        found = whole(totals, grid)
        sizes.append(0 if found is None else len(totals) * found.size)
        return found

    monkeypatch.setattr(accountant, "_compose", watched)
    for scale, count, delta in itertools.product(TINY, (1, 1000, 10**6), (1e-6, 0.4)):
        compute_spent(*(charge(Pure(epsilon=scale * (1 + i / 64)), count) for i in range(64)), delta=delta)
    assert 0 < max(sizes) < 2**24


@pytest.mark.parametrize("noise", [0.21, 0.22, 0.235, 0.25, 0.5])
def test_little_noise_beside_another_event_has_a_cost(noise: float) -> None:
    both = compute_spent(charge(Gaussian(noise_multiplier=noise)), charge(Pure(epsilon=0.1)))
    alone = compute_gaussian_epsilon(noise_multiplier=noise, delta=DELTA)
    assert alone <= both <= alone + 0.1 + 2 * GRID


def test_many_losses_that_are_all_alike_are_quick() -> None:
    started = time.process_time()
    assert 0 < compute_spent(*[charge(Pure(epsilon=4 / 15))] * 8) <= 8 * 4 / 15
    assert time.process_time() - started < 2


def test_many_small_losses_at_a_tiny_delta_are_quick_and_cheap() -> None:
    started = time.process_time()
    found = compute_spent(*[charge(Pure(epsilon=0.01))] * 10_000, delta=1e-15)
    assert time.process_time() - started < 2
    # advanced composition: nε²/2 + ε√(2n·log 1/δ), which is 8.81
    assert 5 < found < 0.5 + math.sqrt(2 * math.log(1e15))


def test_more_kinds_of_events_than_a_release_has_are_answered_by_the_quick_bound() -> None:
    losses = [Pure(epsilon=0.001 * (1 + i / 100)) for i in range(65)]
    several = [charge(loss) for loss in losses]
    assert compute_spent(*several) == min(compute_spent(*several, method="rdp"), sum(loss.epsilon for loss in losses))
    assert compute_spent(*several[:64]) < compute_spent(*several[:64], method="rdp")
    started = time.process_time()
    assert (
        compute_spent(*(charge(SampledGaussian(noise_multiplier=1 + i / 100, sample_rate=0.01)) for i in range(500)))
        > 0
    )
    assert time.process_time() - started < 20


def test_a_small_loss_at_a_tiny_delta_costs_no_more_than_itself() -> None:
    """Rényi orders say 0.07 where PLD is beyond rounding."""
    small = charge(DiscreteLaplace(rate=4e-5, sensitivity=50))
    assert compute_spent(small, delta=1e-11) == pytest.approx(0.002)
    noise = charge(Gaussian(noise_multiplier=100.0))
    assert compute_spent(small, noise, delta=1e-11) == pytest.approx(0.002 + compute_spent(noise, delta=1e-11))


def test_all_pairs_compose() -> None:
    for one, other in itertools.combinations(EVENTS, 2):
        assert compute_spent(charge(one), charge(other)) < 5


def test_losses_far_below_zero_overflow_nothing() -> None:
    """The distribution of adding a record is that of removing one, mirrored: its losses reach far below zero."""
    several = [charge(SampledGaussian(noise_multiplier=0.15, sample_rate=0.9), 20), charge(Pure(epsilon=0.1))]
    with np.errstate(over="raise", invalid="raise"):
        assert 50 < compute_spent(*several, delta=0.5) <= compute_spent(*several, delta=0.5, method="rdp")


@pytest.mark.parametrize("count", [10**9, 10**12])
@pytest.mark.parametrize("noise", [0.17, 0.23, 0.28])
def test_rounding_to_the_power_of_many_runs_is_no_answer(noise: float, count: int) -> None:
    """Probabilities that add up to a millionth too much overflow after so many runs."""
    several = [charge(SampledGaussian(noise_multiplier=noise, sample_rate=2.8e-9), count), charge(Pure(epsilon=0.001))]
    with np.errstate(over="raise", invalid="raise"):
        found = compute_spent(*several, delta=1e-3)
    # In one run of many thousands or more a record is in the sample, and then hardly hidden at all.
    assert found > (1.0 if 2.8e-9 * count > 0.1 else 0.0)


def test_distributions_are_made_only_as_long_as_they_are_few_points_together(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(event: Event, count: int, grid: float) -> Any:
        made.append(grid)
        return real(event, count, grid)

    real = accountant._compose_runs
    monkeypatch.setattr(accountant, "_compose_runs", counted)
    monkeypatch.setattr(accountant, "_MOST_POINTS", 1)
    totals: dict[Event, int] = {SampledGaussian(noise_multiplier=1 + n / 64, sample_rate=0.1): 9 for n in range(20)}
    assert accountant._compose(totals, 1e-3) is None
    assert len(made) == len(set(made))  # one on each grid, and not all twenty


# By the central limit theorem, so many tiny losses are those of a Gaussian with this noise.
@pytest.mark.parametrize("kind", ["discrete_laplace", "pure"])
@pytest.mark.parametrize(("loss", "charges"), [(1e-9, 1), (7e-9, 1000), (7e-9, 10_000), (8e-9, 10_000)])
def test_tiny_losses_add_up_however_often_they_are_charged(kind: str, loss: float, charges: int) -> None:
    event: Event = Pure(epsilon=loss) if kind == "pure" else DiscreteLaplace(rate=loss)
    runs = 10**12
    exact = compute_gaussian_epsilon(noise_multiplier=1 / (loss * math.sqrt(runs * charges)), delta=DELTA)
    for method in METHODS:
        assert compute_spent(*[charge(event, runs)] * charges, method=method) >= exact * (1 - 1e-6)
    assert not accountant.is_within_budget([charge(event, runs)] * charges, epsilon=exact * 0.999, delta=DELTA)


@pytest.mark.parametrize("sigma", [1e-2, 1.0, 1e3, 8.8e7, 1e12])
@pytest.mark.parametrize("scaled", [0.0, 0.1, 1.0, 4.0, 8.0])
def test_the_delta_of_a_gaussian_is_never_rounded_down(sigma: float, scaled: float) -> None:
    epsilon = scaled / sigma
    with mpmath.workdps(60):
        s, e = mpmath.mpf(sigma), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - e * s)
    found = compute_gaussian_delta(noise_multiplier=sigma, epsilon=epsilon)
    assert float(exact) * (1 - 1e-14) <= found <= float(exact) * (1 + 1e-13 * max(1.0, 100 * sigma))


@pytest.mark.parametrize("epsilon", [1e3, 1e15, 1e300, math.inf])
def test_beyond_every_loss_only_the_infinite_one_is_left(epsilon: float) -> None:
    assert (
        compute_delta([charge(SampledGaussian(noise_multiplier=1.0, sample_rate=0.01), 100)], epsilon=epsilon) < 1e-11
    )


def test_a_window_around_many_runs_is_as_narrow_as_their_spread() -> None:
    """Were it wider, the grid would have to be coarser, and these would cost half as much again."""
    many = charge(Pure(epsilon=0.0002921117851981429), 49_615)
    assert compute_spent(many, delta=7.4975e-3) == pytest.approx(0.0546, abs=1e-4)
