"""The lower bound on ε from guesses: against a slow oracle, and on a mechanism whose ε is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from sundog.auditing.guess_bound import bound_epsilon, find_best_bound

FAILURE = 0.05


def find_bound_slowly(right: int, guesses: int, candidates: int, share: float, delta: float) -> float:
    """Try all ε on a grid, with sums in place of distribution functions."""
    ruled_out = [0.0]
    for epsilon in np.arange(0.0, 8.0, 0.04):
        chance = share * math.exp(epsilon) / (share * math.exp(epsilon) + 1 - share)
        mass = [float(binom.pmf(k, guesses, chance)) for k in range(guesses + 1)]
        alpha = max(sum(mass[max(0, right - i) : right]) / i for i in range(1, candidates + 1))
        if sum(mass[right:]) + delta * candidates * alpha / min(share, 1 - share) <= FAILURE:
            ruled_out.append(float(epsilon))
    return max(ruled_out)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize(("right", "guesses"), [(20, 20), (18, 20), (35, 50), (10, 20)])
@pytest.mark.parametrize("share", [0.5, 2 / 3])
def test_the_bound_is_that_of_a_slow_oracle(right: int, guesses: int, share: float, delta: float) -> None:
    found = bound_epsilon(right=right, guesses=guesses, candidates=80, share=share, delta=delta, failure=FAILURE)
    assert found == pytest.approx(find_bound_slowly(right, guesses, 80, share, delta), abs=0.041)


def test_more_of_anything_that_favours_chance_proves_less() -> None:
    base = {"right": 95, "guesses": 100, "candidates": 1000, "share": 0.5, "delta": 1e-6, "failure": FAILURE}
    best = bound_epsilon(**base)  # type: ignore[arg-type]
    for worse in ({"right": 90}, {"share": 0.6}, {"delta": 1e-4}, {"candidates": 100_000}, {"failure": 0.001}):
        assert bound_epsilon(**{**base, **worse}) < best  # type: ignore[arg-type]


def answer_randomly(members: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Randomised response: tells of each candidate whether it is a member, truthfully as often as ε allows."""
    truthful = rng.random(len(members)) < math.exp(epsilon) / (1 + math.exp(epsilon))
    return np.asarray(members == truthful, float)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_randomised_response_is_bounded_by_its_own_epsilon_and_not_far_below(epsilon: float) -> None:
    bounds = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        members = rng.random(4000) < 0.5
        scores = answer_randomly(members, epsilon, rng)
        found = find_best_bound(scores, members, share=0.5, delta=0.0, failure=FAILURE)
        bounds.append(found.epsilon)
    assert sum(bound > epsilon for bound in bounds) <= 10  # 5% of 200; the seeds are fixed
    assert float(np.mean(bounds)) > 0.8 * epsilon - 0.05


def test_a_mechanism_that_tells_more_than_it_claims_is_found() -> None:
    rng = np.random.default_rng(0)
    members = rng.random(4000) < 0.5
    for claimed, told, caught in ((1.0, 1.0, False), (1.0, 1.5, True)):
        scores = answer_randomly(members, told, rng)
        found = find_best_bound(scores, members, share=0.5, delta=1e-6, failure=FAILURE)
        assert (found.epsilon > claimed) == caught


def test_scores_that_few_share_are_guessed_together() -> None:
    members = np.repeat([True, False], 500)
    scores = np.zeros(1000)
    scores[:17] = 1.0
    found = find_best_bound(scores, members, share=0.5, delta=0.0, failure=FAILURE)
    assert (found.guesses, found.right) == (17, 17)
    everything = find_best_bound(np.zeros(1000), members, share=0.5, delta=0.0, failure=FAILURE)
    assert everything.epsilon == 0


def test_candidates_that_are_not_guessed_about_do_not_count() -> None:
    members = np.repeat([True, False], 500)
    scores = np.full(1000, np.nan)
    scores[:40] = 1.0
    scores[500:540] = 0.0
    found = find_best_bound(scores, members, share=0.5, delta=1e-5, failure=FAILURE)
    assert found.candidates == 80
    assert found.right == found.guesses == 40
