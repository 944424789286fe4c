"""The accountant against closed forms and brute force."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, stats
from tests.privacy.accounting import compute_spent, every_event
from tests.privacy.charges import DELTA, charge
from tests.privacy.reference import compute_skellam_pmf, reference_pld

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

Floats = npt.NDArray[np.float64]


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
        (Skellam(sigma=0.4), compute_skellam_pmf(0.4), 1),
        (Skellam(sigma=1.0), compute_skellam_pmf(1.0), 1),
        (Skellam(sigma=3.7), compute_skellam_pmf(3.7), 1),
        (Skellam(sigma=20.0), compute_skellam_pmf(20.0), 1),
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
