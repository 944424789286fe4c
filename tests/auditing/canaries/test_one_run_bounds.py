"""Lower bounds from one run: they are where the tests stop to refute, and near the truth for a Gaussian mechanism."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from sundog.auditing.canaries.canary_guesses import CanaryGuesses
from sundog.auditing.canaries.one_run_bounds import bound_epsilon, bound_mu, choose_guesses
from sundog.auditing.canaries.one_run_p_values import (
    compute_gaussian_fpr,
    compute_tradeoff_p_value,
)
from sundog.auditing.guess_p_value import compute_guess_p_value
from sundog.auditing.tradeoff_curve import compute_gaussian_mu


@pytest.mark.parametrize("correct", [80, 95, 100])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_smaller_values_are_refuted_and_larger_ones_are_not(correct: int, confidence: float) -> None:
    counts = {"canaries": 1000, "guesses": 100, "correct": correct}
    mu = bound_mu(**counts, confidence=confidence)
    epsilon = bound_epsilon(**counts, delta=1e-5, confidence=confidence)
    for factor, refuted in ((0.999, True), (1.001, False)):
        by_curve = compute_tradeoff_p_value(**counts, least_fpr=partial(compute_gaussian_fpr, mu=factor * mu))
        assert (by_curve <= 1 - confidence) == refuted
        guessed = {"candidates": 1000, "guesses": 100, "right": correct}
        steinke = compute_guess_p_value(**guessed, epsilon=factor * epsilon, delta=1e-5, either=True)
        assert (steinke <= 1 - confidence) == refuted


def test_half_of_the_guesses_right_proves_nothing() -> None:
    assert bound_mu(canaries=1000, guesses=100, correct=50) == 0
    assert bound_epsilon(canaries=1000, guesses=100, correct=50, delta=1e-5) == 0
    assert CanaryGuesses(1000, 100, 50).bound_gaussian_epsilon(delta=1e-5) == 0


def test_a_larger_delta_proves_less() -> None:
    found = [bound_epsilon(canaries=1000, guesses=100, correct=95, delta=delta) for delta in (0.0, 1e-5, 1e-3, 1e-2)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 2 * found[-1]


@pytest.mark.parametrize(("canaries", "least"), [(1000, 0.48), (5000, 0.58)])
def test_about_half_of_epsilon_is_proven_for_a_gaussian_sum(canaries: int, least: float) -> None:
    rng, mu = np.random.default_rng(0), compute_gaussian_mu(epsilon=4.0, delta=1e-5)
    guesses = choose_guesses(canaries, mu=mu)
    by_curve, steinke = [], []
    for _ in range(20):
        included = rng.random(canaries) < 0.5
        scores = rng.normal(size=canaries) + mu * (included - 0.5)
        found = CanaryGuesses.make(scores, included, guesses=guesses)
        by_curve.append(found.bound_gaussian_epsilon(delta=1e-5))
        steinke.append(found.bound_epsilon(delta=1e-5))
    assert 4 * least <= np.mean(by_curve) <= 4
    assert np.mean(steinke) < 0.75 * np.mean(by_curve)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 8.0])
def test_enough_is_guessed_to_refute_the_claim(epsilon: float) -> None:
    mu = compute_gaussian_mu(epsilon=epsilon, delta=1e-5)
    guesses = choose_guesses(1000, mu=mu)
    assert bound_mu(canaries=1000, guesses=guesses, correct=guesses) > 1.2 * mu


def test_impossible_claims_get_all_guesses() -> None:
    assert choose_guesses(50, mu=8.0) == 50
