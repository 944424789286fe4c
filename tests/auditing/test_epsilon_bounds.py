"""Lower bounds are below the truth as often as they say, and close to it; so is the interval of μ."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sundog.auditing.epsilon_bounds import bound_epsilon, bound_epsilon_at_threshold, estimate_mu
from sundog.auditing.error_test import Errors, choose_thresholds, count_errors
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, Gaussian, Pure

DELTA = 1e-5
MU = 0.925  # ε = 4


def play(rng: np.random.Generator, mu: float, runs: int) -> tuple[Errors, ...]:
    absent, present = rng.normal(0, 1, runs // 2), rng.normal(mu, 1, runs // 2)
    first = runs // 10
    thresholds = choose_thresholds(absent[:first], present[:first])
    return tuple(count_errors(absent[first:], present[first:], threshold) for threshold in thresholds)


def gaussian(mu: float) -> list[Charge]:
    return [Charge(event=Gaussian(noise_multiplier=1 / mu), purpose="test")]


def test_the_bound_is_rarely_above_the_truth_and_much_tighter_than_one_threshold() -> None:
    rng, truth = np.random.default_rng(0), compute_epsilon(gaussian(MU), delta=DELTA)
    outcomes = [play(rng, MU, 5000) for _ in range(30)]
    bounds = np.array([bound_epsilon(found, gaussian(MU), delta=DELTA) for found in outcomes])
    peers = np.array([max(bound_epsilon_at_threshold(each, delta=DELTA) for each in found) for found in outcomes])
    assert (bounds > truth).sum() <= 2
    assert bounds.mean() >= 0.74 * truth
    assert peers.mean() <= 0.5 * truth


def test_the_bound_finds_the_truth_where_the_claim_is_wrong() -> None:
    """Charged for half the signal: what is proven is above the claim, and below the truth."""
    found = play(np.random.default_rng(1), 2 * MU, 5000)
    claim, truth = (compute_epsilon(gaussian(mu), delta=DELTA) for mu in (MU, 2 * MU))
    assert claim < 0.7 * truth < bound_epsilon(found, gaussian(MU), delta=DELTA) <= truth


def test_nothing_is_proven_by_guessing() -> None:
    assert bound_epsilon([Errors(50, 100, 50, 100)], gaussian(MU), delta=DELTA) == 0.0
    assert bound_epsilon_at_threshold(Errors(50, 100, 50, 100), delta=DELTA) == 0.0
    assert bound_epsilon_at_threshold(Errors(100, 100, 0, 100), delta=DELTA) == 0.0


def test_one_threshold_is_clopper_and_pearson() -> None:
    errors = Errors(3, 400, 300, 500)
    alarms, misses = (
        stats.binomtest(count, runs).proportion_ci(0.95, method="exact").high
        for count, runs in ((errors.false_alarms, errors.absent), (errors.misses, errors.present))
    )
    expected = max(np.log((1 - misses - DELTA) / alarms), np.log((1 - alarms - DELTA) / misses))
    assert bound_epsilon_at_threshold(errors, delta=DELTA) == pytest.approx(expected, rel=1e-6)


def test_a_pure_mechanism_is_bounded_too() -> None:
    charges = [Charge(event=Pure(epsilon=1.0), purpose="test")]
    rate = 1 / (1 + np.e)
    rng = np.random.default_rng(0)
    errors = Errors(int(rng.binomial(2000, rate)), 2000, int(rng.binomial(2000, rate)), 2000)
    assert 0.8 <= bound_epsilon([errors], charges, delta=DELTA) <= 1.0


@pytest.mark.parametrize("mu", [0.0, 0.3, 3.0])
def test_the_interval_of_mu_covers_it(mu: float) -> None:
    rng = np.random.default_rng(0)
    estimates = [estimate_mu(rng.normal(5, 2, 200), rng.normal(5 + 2 * mu, 2, 300)) for _ in range(400)]
    covered = np.mean([each.low <= mu <= each.high for each in estimates])
    assert 0.92 <= covered <= 0.98
    assert np.mean([each.value for each in estimates]) == pytest.approx(mu, abs=0.03)


def test_scores_without_noise() -> None:
    assert estimate_mu(np.zeros(5), np.ones(5)).value == np.inf
    assert estimate_mu(np.zeros(5), np.zeros(5)).value == 0.0
    assert estimate_mu(np.zeros(5), np.full(5, np.inf)).high == np.inf
