"""The accountant: the contract of every event, failures, and agreement with dp-accounting."""

import math
import random
from typing import get_args

import dp_accounting
import pytest
from dp_accounting import rdp
from dp_accounting.pld import pld_privacy_accountant
from tests.privacy.accounting import EVENTS, METHODS, compute_spent, every_event
from tests.privacy.charges import DELTA, charge
from tests.privacy.reference import reference_pld

from sundog.privacy import events
from sundog.privacy.accountant import GRID, Method, compute_delta
from sundog.privacy.analytic_gaussian import compute_gaussian_delta, compute_gaussian_epsilon
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

every_method = pytest.mark.parametrize("method", METHODS)


def is_wide(event: Event) -> bool:
    """Accounted as the worst that its ε allows."""
    return isinstance(event, DiscreteLaplace) and event.sensitivity > 1


# --- the contract of every kind of event ----------------------------------------------------------------------------


def test_the_contract_covers_every_kind() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(get_args(events.Event)[0]))


class TestContract:
    @every_event
    @every_method
    def test_a_count_is_that_many_charges(self, event: Event, method: Method) -> None:
        whole = compute_spent(charge(event, 12), method=method)
        assert compute_spent(*[charge(event)] * 12, method=method) == whole
        assert compute_spent(charge(event, 5), charge(event, 7), method=method) == whole

    @every_event
    def test_a_count_is_that_many_compositions(self, event: Event) -> None:
        """Not one of the library's shortcuts, but one distribution after another."""
        if isinstance(event, SampledGaussian) and event.sample_rate == 0:
            assert compute_spent(charge(event, 6)) == 0
            return
        one = reference_pld(Pure(epsilon=event.epsilon) if is_wide(event) else event)  # type: ignore[union-attr]
        six = one.compose(one).compose(one).compose(one).compose(one).compose(one)
        assert compute_spent(charge(event, 6)) == pytest.approx(six.get_epsilon_for_delta(DELTA), rel=1e-3, abs=1e-6)
        for epsilon in (0.0, 0.3, 1.0):
            expected = six.get_delta_for_epsilon(epsilon)
            assert compute_delta([charge(event, 6)], epsilon=epsilon) == pytest.approx(expected, rel=1e-2, abs=1e-9)

    @every_event
    @every_method
    def test_more_is_never_cheaper(self, event: Event, method: Method) -> None:
        costs = [compute_spent(charge(event, n), method=method) for n in (1, 2, 3, 10, 50, 200)]
        assert costs == sorted(costs)
        assert costs[0] >= 0
        if not (isinstance(event, Failure) or (isinstance(event, SampledGaussian) and event.sample_rate == 0)):
            assert costs[-1] > 1.2 * costs[0]

    @every_event
    @pytest.mark.parametrize("count", [1, 10, 200])
    def test_each_accountant_is_tighter_than_the_next(self, event: Event, count: int) -> None:
        by = {method: compute_spent(charge(event, count), method=method) for method in METHODS}
        assert by["pld"] <= by["rdp"] * (1 + 1e-3) + count * GRID
        assert by["rdp"] <= by["moments"] * (1 + 1e-9)

    @every_event
    @every_method
    def test_a_smaller_delta_costs_more(self, event: Event, method: Method) -> None:
        costs = [compute_spent(charge(event, 5), delta=delta, method=method) for delta in (1e-3, 1e-5, 1e-7)]
        assert costs == sorted(costs)

    @every_event
    def test_delta_is_the_inverse_of_epsilon(self, event: Event) -> None:
        epsilon = compute_spent(charge(event, 5))
        assert compute_delta([charge(event, 5)], epsilon=epsilon) <= DELTA * (1 + 1e-6)
        if epsilon > 0:
            assert compute_delta([charge(event, 5)], epsilon=epsilon * 0.99) > DELTA

    @every_event
    @every_method
    def test_beside_another_charge_it_costs_between_nothing_and_its_sum(self, event: Event, method: Method) -> None:
        for other in (Gaussian(noise_multiplier=6.0), Pure(epsilon=0.2)):
            both = compute_spent(charge(event, 3), charge(other), method=method)
            assert both >= compute_spent(charge(event, 3), method=method) - 1e-9
            assert both >= compute_spent(charge(other), method=method) - 1e-9
            apart = compute_spent(charge(event, 3), delta=DELTA / 2) + compute_spent(charge(other), delta=DELTA / 2)
            if method == "pld":
                assert both <= apart + 5 * GRID


@every_method
def test_the_order_of_charges_does_not_matter(method: Method) -> None:
    charges = [charge(event, count) for count, event in enumerate(EVENTS, start=1)]
    straight = compute_spent(*charges, method=method)
    generator = random.Random(1)
    for _ in range(3):
        generator.shuffle(charges)
        assert compute_spent(*charges, method=method) == pytest.approx(straight, rel=1e-9)


@every_method
def test_no_charges_cost_nothing(method: Method) -> None:
    assert compute_spent(method=method) == 0
    assert compute_delta([], epsilon=0.0) == 0


@every_method
def test_what_was_never_sampled_costs_nothing(method: Method) -> None:
    assert compute_spent(charge(SampledGaussian(noise_multiplier=0.1, sample_rate=0.0), 10**6), method=method) == 0


# --- failures -------------------------------------------------------------------------------------------------------


@every_method
def test_failures_are_finite_only_while_they_fit_into_delta(method: Method) -> None:
    gaussian = charge(Gaussian(noise_multiplier=5.0))
    alone = compute_spent(gaussian, method=method)
    some = compute_spent(gaussian, charge(Failure(delta=5e-6)), method=method)
    most = compute_spent(gaussian, charge(Failure(delta=2.5e-6), 3), method=method)
    assert alone < some < most < math.inf
    assert compute_spent(gaussian, charge(Failure(delta=2.5e-6), 5), method=method) == math.inf
    assert compute_spent(charge(Failure(delta=1.1e-5)), method=method) == math.inf


@pytest.mark.parametrize("count", [1, 2, 17])
def test_failures_add_their_delta(count: int) -> None:
    failures = charge(Failure(delta=1e-4), count)
    alone = compute_delta([failures], epsilon=3.0)
    exact = -math.expm1(count * math.log1p(-1e-4))
    assert exact * (1 - 1e-12) <= alone <= exact + 1.1e-12  # what composing may round off is added, and no more
    for epsilon in (0.1, 1.0):
        gaussian = compute_gaussian_delta(noise_multiplier=2.0, epsilon=epsilon)
        both = compute_delta([charge(Gaussian(noise_multiplier=2.0)), failures], epsilon=epsilon)
        assert both == pytest.approx(1 - (1 - 1e-4) ** count * (1 - gaussian), rel=1e-3)


# --- against dp-accounting ------------------------------------------------------------------------------------------

SAMPLED = [
    (0.0001, 0.6, 3000),
    (0.0017, 1.0, 12000),
    (0.01, 0.8, 500),
    (0.02, 4.0, 3000),
    (0.2, 2.0, 40),
    (0.9, 5.0, 10),
]


@pytest.mark.parametrize(("q", "sigma", "steps"), SAMPLED)
def test_sampled_gaussians_agree_with_dp_accounting(q: float, sigma: float, steps: int) -> None:
    event = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
    ours = charge(SampledGaussian(noise_multiplier=sigma, sample_rate=q), steps)
    pld = pld_privacy_accountant.PLDAccountant().compose(event, steps)
    assert compute_spent(ours) == pytest.approx(pld.get_epsilon(DELTA), rel=1e-3)
    assert compute_delta([ours], epsilon=1.0) == pytest.approx(pld.get_delta(1.0), rel=1e-3, abs=1e-12)
    orders = [*range(2, 65), 80, 96, 128, 192, 256, 512, 1024]
    renyi = rdp.RdpAccountant(orders=orders).compose(event, steps)
    assert compute_spent(ours, method="rdp") == pytest.approx(renyi.get_epsilon(DELTA), rel=1e-3)


def test_mixtures_agree_with_dp_accounting() -> None:
    ours = [
        charge(SampledGaussian(noise_multiplier=1.5, sample_rate=0.01), 300),
        charge(Gaussian(noise_multiplier=6.0), 2),
        charge(DiscreteLaplace(rate=0.1), 3),
    ]
    theirs = [reference_pld(part.event).self_compose(part.count) for part in ours]
    whole = theirs[0].compose(theirs[1]).compose(theirs[2])
    assert compute_spent(*ours) == pytest.approx(whole.get_epsilon_for_delta(DELTA), rel=1e-3)


def test_the_three_columns_of_the_papers_example() -> None:
    training = charge(SampledGaussian(noise_multiplier=1.0, sample_rate=0.0017), 12_000)
    assert compute_spent(training, method="moments") == pytest.approx(1.456, abs=5e-4)
    assert compute_spent(training, method="rdp") == pytest.approx(1.143, abs=5e-4)
    assert compute_spent(training, method="pld") == pytest.approx(0.935, abs=5e-4)


# Small losses, many times over: far below the grid of the distribution, the claim must not be worse than the Rényi
# bound, which holds as well.
@pytest.mark.parametrize(
    "charged",
    [
        charge(SampledGaussian(noise_multiplier=20.0, sample_rate=1e-4), 100_000),
        charge(SampledGaussian(noise_multiplier=50.0, sample_rate=1e-3), 100_000),
        charge(DiscreteGaussian(sigma=1e4), 10_000),
        charge(DiscreteLaplace(rate=1e-5), 10_000),
        charge(Pure(epsilon=1e-5), 10_000),
    ],
    ids=lambda charged: f"{charged.event} x {charged.count}",
)
def test_many_small_losses_are_not_overcharged(charged: Charge) -> None:
    assert compute_spent(charged) <= compute_spent(charged, method="rdp") * 1.05 + 1e-3


# By Rényi orders alone this would cost more than 200; by the claimed accountant it costs twenty.
def test_little_noise_on_few_records_is_charged_by_the_claimed_accountant() -> None:
    event = SampledGaussian(noise_multiplier=0.21866, sample_rate=0.001)
    assert compute_spent(charge(event, 30)) == pytest.approx(19.9895, rel=1e-3)  # as dp-accounting composes it


# What Fourier transforms round off is more than so small a δ, or not negligible beside it.
@pytest.mark.parametrize("delta", [1e-6, 1e-9, 1e-11, 1e-12, 1e-13, 1e-14])
@pytest.mark.parametrize(("noise", "steps"), [(100.0, 40_000), (50.0, 18_750)])
def test_rounding_never_claims_too_little(noise: float, steps: int, delta: float) -> None:
    """Sampling that leaves one record in a billion out costs what no sampling does, and that has a closed form."""
    exact = compute_gaussian_epsilon(noise_multiplier=noise / math.sqrt(steps), delta=delta)
    ours = compute_spent(charge(SampledGaussian(noise_multiplier=noise, sample_rate=1 - 1e-9), steps), delta=delta)
    assert exact * (1 - 1e-8) <= ours <= exact * (1.001 if delta >= 1e-10 else 1.06)


@pytest.mark.parametrize("delta", [1e-15, 1e-11])
@every_event
def test_a_delta_below_rounding_is_answered_by_the_other_road(event: Event, delta: float) -> None:
    charges = [charge(event, 3), charge(Pure(epsilon=0.2))]
    assert 0 < compute_spent(*charges, delta=delta) <= compute_spent(*charges, delta=delta, method="rdp")


def test_what_composing_rounds_off_is_added_to_delta() -> None:
    one = charge(DiscreteLaplace(rate=0.5))
    assert compute_delta([one], epsilon=0.5) <= 1e-12  # one event by itself is not transformed
    gaussian = charge(DiscreteGaussian(sigma=20.0))
    for several in ([charge(DiscreteGaussian(sigma=20.0), 2)], [one, gaussian]):
        assert 1e-12 <= compute_delta(several, epsilon=2.0) <= 1e-10
    assert compute_delta([one, one], epsilon=1.0) == 0.0  # events without δ have none together
