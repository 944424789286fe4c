"""The accountant against other roads to the same number: dp-accounting itself, closed forms, and brute force."""

import itertools
import math
import random
import time
from typing import Any, get_args

import dp_accounting
import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from dp_accounting import rdp
from dp_accounting.pld import pld_privacy_accountant
from scipy import optimize, stats
from tests.privacy.reference import reference_pld

from sundog.privacy import accountant, events
from sundog.privacy.accountant import GRID, Method, compute_delta, compute_epsilon
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

Floats = npt.NDArray[np.float64]

DELTA = 1e-5
METHODS: tuple[Method, ...] = get_args(Method)

EVENTS: list[Event] = [
    Gaussian(noise_multiplier=3.0),
    SampledGaussian(noise_multiplier=1.0, sample_rate=0.01),
    SampledGaussian(noise_multiplier=3.0, sample_rate=1.0),
    SampledGaussian(noise_multiplier=3.0, sample_rate=0.0),
    DiscreteGaussian(sigma=5.0),
    DiscreteLaplace(rate=0.1),
    DiscreteLaplace(rate=0.05, sensitivity=3),
    Pure(epsilon=0.1),
    Failure(delta=1e-8),
]
every_event = pytest.mark.parametrize("event", EVENTS, ids=str)
every_method = pytest.mark.parametrize("method", METHODS)


def charge(event: Event, count: int = 1) -> Charge:
    return Charge(event=event, count=count, purpose="test")


def compute_spent(*charges: Charge, delta: float = DELTA, method: Method = "pld") -> float:
    return compute_epsilon(charges, delta=delta, method=method)


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


# --- closed forms ---------------------------------------------------------------------------------------------------


def compute_balle_wang_delta(sigma: float, epsilon: float) -> float:
    a, b = 1 / (2 * sigma), epsilon * sigma
    return float(stats.norm.cdf(a - b) - math.exp(epsilon) * stats.norm.cdf(-a - b))


def compute_balle_wang_epsilon(sigma: float, delta: float) -> float:
    if compute_balle_wang_delta(sigma, 0.0) <= delta:
        return 0.0
    return float(
        optimize.bisect(lambda e: compute_balle_wang_delta(sigma, e) - delta, 0, 200, xtol=1e-13, maxiter=1000)
    )


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8])
@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 3.0, 20.0, 500.0])
def test_gaussians_have_the_closed_form(sigma: float, delta: float) -> None:
    expected = compute_balle_wang_epsilon(sigma, delta)
    for event in (Gaussian(noise_multiplier=sigma), SampledGaussian(noise_multiplier=sigma, sample_rate=1.0)):
        for count in (1, 4, 100):
            scaled: Event = event.model_copy(update={"noise_multiplier": sigma * math.sqrt(count)})
            ours = compute_spent(charge(scaled, count), delta=delta)
            assert ours == pytest.approx(expected, rel=1e-6, abs=1e-9)
            if expected > 0:
                assert ours >= expected * (1 - 1e-8)


def test_gaussians_of_several_multipliers_are_one_gaussian() -> None:
    multipliers = [(2.0, 3), (5.5, 10), (0.9, 1), (40.0, 1000)]
    sigma = sum(n / s**2 for s, n in multipliers) ** -0.5
    ours = [charge(Gaussian(noise_multiplier=s), n) for s, n in multipliers]
    exact = compute_balle_wang_epsilon(sigma, DELTA)
    assert compute_spent(*ours) == pytest.approx(exact, rel=1e-6)
    # beside an event of another kind they are merged too, and measured on the grid
    assert compute_spent(*ours, charge(Pure(epsilon=1e-4))) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("sigma", [1e-3, 0.1, 1.0, 50.0, 1e5])
@pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-12])
def test_gaussian_epsilon_never_claims_too_little(sigma: float, delta: float) -> None:
    epsilon = compute_gaussian_epsilon(noise_multiplier=sigma, delta=delta)
    assert compute_gaussian_delta(noise_multiplier=sigma, epsilon=epsilon) <= delta


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("count", [1, 2, 9, 60])
def test_pure_events_cost_what_randomised_response_costs(epsilon: float, count: int) -> None:
    """The optimal composition of ε-DP mechanisms (Kairouz, Oh and Viswanath), summed over how many coins told."""
    told = np.arange(count + 1)
    yes = stats.binom.pmf(told, count, 1 / (1 + math.exp(-epsilon)))
    no = stats.binom.pmf(told, count, 1 / (1 + math.exp(epsilon)))
    for at in (0.0, epsilon / 2, epsilon * math.sqrt(count), 0.8 * epsilon * count):
        exact = float(np.maximum(0, yes - math.exp(at) * no).sum())
        ours = compute_delta([charge(Pure(epsilon=epsilon), count)], epsilon=at)
        assert exact * (1 - 1e-9) - 1e-14 <= ours <= exact * (1 + 1e-3) + 2e-4 * count


@every_event
def test_a_pure_guarantee_is_never_exceeded(event: Event) -> None:
    if isinstance(event, Pure | DiscreteLaplace):
        for count in (1, 3, 20):
            assert compute_spent(charge(event, count), delta=1e-9) <= count * (event.epsilon + GRID)


# --- brute force ----------------------------------------------------------------------------------------------------


def compute_gaussian_pmf(sigma: float) -> Floats:
    k = np.arange(-round(14 * sigma) - 14, round(14 * sigma) + 15)
    weights = np.exp(-(k**2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum())


def compute_laplace_pmf(rate: float) -> Floats:
    k = np.arange(-math.ceil(38 / rate), math.ceil(38 / rate) + 1)
    weights = np.exp(-rate * np.abs(k))
    return np.asarray(weights / weights.sum())


def compute_exact_delta(pmf: Floats, shift: int, epsilon: float, count: int) -> float:
    """Σ max(0, P − e^ε·Q) over every outcome of `count` independent draws."""
    p = np.concatenate([pmf, np.zeros(shift)])
    q = np.concatenate([np.zeros(shift), pmf])
    for _ in range(count - 1):
        p, q = np.multiply.outer(p, p).ravel(), np.multiply.outer(q, q).ravel()
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.2, 0.5, 1.0, 2.5])
@pytest.mark.parametrize(
    ("event", "pmf", "shift"),
    [
        (DiscreteGaussian(sigma=0.4), compute_gaussian_pmf(0.4), 1),
        (DiscreteGaussian(sigma=1.0), compute_gaussian_pmf(1.0), 1),
        (DiscreteGaussian(sigma=3.7), compute_gaussian_pmf(3.7), 1),
        (DiscreteGaussian(sigma=20.0), compute_gaussian_pmf(20.0), 1),
        (DiscreteLaplace(rate=1.3), compute_laplace_pmf(1.3), 1),
        (DiscreteLaplace(rate=0.2), compute_laplace_pmf(0.2), 1),
        (DiscreteLaplace(rate=0.2, sensitivity=3), compute_laplace_pmf(0.2), 3),
        (DiscreteLaplace(rate=0.7, sensitivity=2), compute_laplace_pmf(0.7), 2),
    ],
    ids=lambda value: str(value) if not isinstance(value, np.ndarray) else "",
)
def test_integer_noise_has_the_delta_of_brute_force(
    event: Event, pmf: Floats, shift: int, epsilon: float, count: int
) -> None:
    exact = compute_exact_delta(pmf, shift, epsilon, count)
    ours = compute_delta([charge(event, count)], epsilon=epsilon)
    assert ours >= exact * (1 - 1e-9) - 1e-13
    if shift == 1:
        assert ours <= exact * (1 + 1e-3) + 1e-8
    else:  # accounted as the worst that its ε allows, which is more, but never more than that
        worst = compute_delta([charge(Pure(epsilon=event.epsilon), count)], epsilon=epsilon)  # type: ignore[union-attr]
        assert ours <= worst * (1 + 1e-3) + 1e-8


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("sigma", [31.9, 32.0, 40.0])
def test_wide_discrete_gaussians_cost_what_brute_force_says(sigma: float, count: int) -> None:
    """They may be accounted as continuous ones, as long as that is never less and hardly more."""
    for epsilon in (0.0, 0.01, 0.03, 0.08, 0.15):
        exact = compute_exact_delta(compute_gaussian_pmf(sigma), 1, epsilon, count)
        ours = compute_delta([charge(DiscreteGaussian(sigma=sigma), count)], epsilon=epsilon)
        assert ours >= exact * (1 - 1e-9) - 1e-13
        assert ours <= exact * (1 + 2e-2) + 1e-8


@pytest.mark.parametrize("sigma", [32.0, 1000.0, 1e5])
def test_wide_discrete_gaussians_cost_what_continuous_ones_do(sigma: float) -> None:
    for count in (1, 30):
        ours = compute_spent(charge(DiscreteGaussian(sigma=sigma), count))
        continuous = compute_balle_wang_epsilon(sigma / math.sqrt(count), DELTA)
        assert continuous * (1 - 1e-9) <= ours <= continuous * (1 + 2e-3) + 1e-9
        if sigma <= 1000:
            whole = reference_pld(DiscreteGaussian(sigma=sigma)).self_compose(count).get_epsilon_for_delta(DELTA)
            assert ours <= whole * (1 + 2e-3)


def test_two_different_integer_mechanisms_have_the_delta_of_brute_force() -> None:
    p, q = compute_gaussian_pmf(2.0), compute_laplace_pmf(0.5)
    pair = np.multiply.outer(np.append(p, 0), np.append(q, 0)).ravel()
    shifted = np.multiply.outer(np.append(0, p), np.append(0, q)).ravel()
    charges = [charge(DiscreteGaussian(sigma=2.0)), charge(DiscreteLaplace(rate=0.5))]
    for epsilon in (0.0, 0.4, 1.0, 2.0):
        exact = float(np.maximum(0, pair - math.exp(epsilon) * shifted).sum())
        ours = compute_delta(charges, epsilon=epsilon)
        assert exact * (1 - 1e-9) - 1e-13 <= ours <= exact * (1 + 1e-3) + 1e-8


# --- hostile sizes --------------------------------------------------------------------------------------------------


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
