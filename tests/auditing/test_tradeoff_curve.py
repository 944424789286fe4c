"""Curves are those of the mechanisms: in closed form where there is one, and never above the errors of a real test."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from sundog.auditing.tradeoff_curve import (
    TradeoffCurve,
    compute_gaussian_mu,
    compute_tradeoff_curve,
    make_gaussian_curve,
    scale_charges,
)
from sundog.privacy import accountant
from sundog.privacy.accountant import compute_epsilon
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
from sundog.privacy.record_count import COUNT

Floats = npt.NDArray[np.float64]

ALPHA = np.linspace(0, 1, 501)
ROUNDING = 2e-3  # what the envelope of a few hundred lines may be too low


def charge(event: Event, count: int = 1, purpose: str = "test") -> Charge:
    return Charge(event=event, count=count, purpose=purpose)


def is_just_below(curve: TradeoffCurve, alpha: Floats, beta: Floats) -> bool:
    found = curve(alpha)
    return bool((found <= beta + 1e-9).all() and (found >= beta - ROUNDING).all())


@pytest.mark.parametrize("mu", [0.1, 0.927, 4.0])
def test_the_gaussian_curve_is_the_closed_form(mu: float) -> None:
    beta = stats.norm.cdf(stats.norm.ppf(1 - ALPHA) - mu)
    assert is_just_below(make_gaussian_curve(mu), ALPHA, beta)
    halves = compute_tradeoff_curve([charge(Gaussian(noise_multiplier=2 / mu), 4)])
    assert is_just_below(halves, ALPHA, beta)


def test_randomised_response_has_two_lines() -> None:
    curve = compute_tradeoff_curve([charge(Pure(epsilon=1.2))])
    beta = np.maximum(1 - np.exp(1.2) * ALPHA, np.exp(-1.2) * (1 - ALPHA))
    assert is_just_below(curve, ALPHA, np.maximum(0, beta))


def test_a_failure_lowers_the_curve_by_its_probability() -> None:
    curve = compute_tradeoff_curve([charge(Failure(delta=0.1))])
    assert is_just_below(curve, ALPHA, np.maximum(0, 0.9 - ALPHA))


@pytest.mark.parametrize(("sigma", "rate"), [(0.5, 0.5), (1.0, 0.1), (2.0, 0.9)])
def test_a_sampled_gaussian_has_the_errors_of_the_best_test(sigma: float, rate: float) -> None:
    """Its likelihood ratio increases, so that the best tests are thresholds; the curve is not symmetric."""
    thresholds = np.linspace(-8 * sigma, 8 * sigma + 1, 2001)
    alpha = stats.norm.sf(thresholds / sigma)
    beta = (1 - rate) * stats.norm.cdf(thresholds / sigma) + rate * stats.norm.cdf((thresholds - 1) / sigma)
    curve = compute_tradeoff_curve([charge(SampledGaussian(noise_multiplier=sigma, sample_rate=rate))])
    assert is_just_below(curve, alpha, beta)
    if rate < 0.9:
        assert not is_just_below(curve, beta, alpha)


@pytest.mark.parametrize("event", [DiscreteGaussian(sigma=1.3), DiscreteLaplace(rate=0.7)])
def test_integer_noise_has_the_errors_of_the_best_test(event: DiscreteGaussian | DiscreteLaplace) -> None:
    k = np.arange(-60, 61)
    mass = np.exp(-0.7 * np.abs(k)) if isinstance(event, DiscreteLaplace) else np.exp(-(k**2) / (2 * 1.3**2))
    below = np.cumsum(mass / mass.sum())
    curve = compute_tradeoff_curve([charge(event)])
    assert is_just_below(curve, 1 - below[1:], below[:-1])  # P(noise > t), and P(noise + 1 ≤ t)


def test_the_epsilon_of_a_count_is_added_to_that_of_the_rest() -> None:
    """So δ(0.3 + ε) is that of the rest at ε, for every ε."""
    count = charge(DiscreteLaplace(rate=0.3), purpose=COUNT)
    epsilons = np.linspace(0, 0.5, 2001)[:, None]
    delta = (np.exp(0.5) - np.exp(epsilons)) / (1 + np.exp(0.5))  # of randomised response
    factor = np.exp(epsilons + 0.3)
    beta = np.maximum(1 - delta - factor * ALPHA, (1 - delta - ALPHA) / factor).max(axis=0)
    curve = compute_tradeoff_curve([count, charge(Pure(epsilon=0.5))])
    assert is_just_below(curve, ALPHA, np.maximum(0, beta))


def test_where_pld_cannot_be_used_the_curve_is_lower_but_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    charges = [charge(SampledGaussian(noise_multiplier=1.1, sample_rate=0.3), 7)]
    exact = compute_tradeoff_curve(charges)(ALPHA)
    monkeypatch.setattr(accountant, "_is_beyond_pld", lambda totals, quick: True)
    rough = compute_tradeoff_curve(charges, points=299)(ALPHA)  # another number of points: results are kept
    assert (rough <= exact + 1e-9).all()
    assert rough[100] > 0.3 * exact[100] > 0


def test_every_point_of_the_profile_is_on_the_curve() -> None:
    charges = [charge(DiscreteGaussian(sigma=3.0), 5), charge(Pure(epsilon=0.2))]
    curve = compute_tradeoff_curve(charges)
    for delta in (1e-6, 1e-3, 0.1):
        epsilon = compute_epsilon(charges, delta=delta)
        line = np.maximum(1 - delta - np.exp(epsilon) * ALPHA, np.exp(-epsilon) * (1 - delta - ALPHA))
        assert (curve(ALPHA) >= line - ROUNDING).all()


@pytest.mark.parametrize("mu", [0.05, 1.0, 12.0])
def test_mu_and_epsilon_are_inverse(mu: float) -> None:
    epsilon = compute_epsilon([charge(Gaussian(noise_multiplier=1 / mu))], delta=1e-5)
    assert compute_gaussian_mu(epsilon=epsilon, delta=1e-5) == pytest.approx(mu, rel=1e-6)


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(noise_multiplier=2.0),
        SampledGaussian(noise_multiplier=2.0, sample_rate=0.1),
        DiscreteGaussian(sigma=2.0),
        Skellam(sigma=2.0),
        Skellam(sigma=6.0, l1=5, l2_squared=9),
        DiscreteLaplace(rate=0.5, sensitivity=2),
        Pure(epsilon=0.5),
    ],
)
def test_less_noise_is_a_lower_curve(event: Event) -> None:
    charges = [charge(event, 3)]
    curves = [compute_tradeoff_curve(scale_charges(charges, factor))(ALPHA) for factor in (0.5, 1.0, 2.0)]
    assert (curves[0] >= curves[1] - ROUNDING).all()
    assert (curves[1] >= curves[2] - ROUNDING).all()
    assert curves[0][50] > curves[1][50] > curves[2][50]
    assert scale_charges(charges, 1.0) == charges
