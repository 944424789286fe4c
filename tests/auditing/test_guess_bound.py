"""The lower bound on ε from guesses: against a slow oracle, and on a mechanism whose ε is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sundog.auditing.guess_bound import bound_right_guesses, find_best_bound, list_guess_counts

FAILURE = 0.05


def find_bound_slowly(right: int, guesses: int, candidates: int, members: int, delta: float) -> float:
    """Try all ε on a grid, with sums in place of distribution functions; the rule is that of docs/audit.md."""
    ruled_out, share = [0.0], members / candidates
    variance = share * (1 - share)
    excess = candidates * delta * variance * min(1, 1 / 20 + 2 / math.sqrt(2 * math.e * 20 * variance))  # of 20 guesses
    more_or_fewer = delta * math.sqrt(candidates * variance) / 2
    for epsilon in np.arange(0.0, 8.0, 0.04):
        chance = share * math.exp(epsilon) / (share * math.exp(epsilon) + 1 - share)
        tail = sum(float(binom.pmf(k, guesses, chance)) for k in range(right, guesses + 1))
        sizes = range(members, candidates + 1)
        likely = sum(float(binom.pmf(k, candidates, share)) * math.exp(-epsilon * (k - members)) for k in sizes)
        if (tail + excess + more_or_fewer) / likely <= FAILURE:
            ruled_out.append(float(epsilon))
    return max(ruled_out)


def make_scores(right: int, guesses: int, members: int, candidates: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of which the highest are equal, and who is a member."""
    truth = np.arange(candidates) < members
    scores = np.zeros(candidates)
    scores[:right] = 1.0
    scores[members : members + guesses - right] = 1.0
    return scores, truth


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize(("right", "guesses"), [(32, 32), (30, 32), (27, 32), (16, 32)])
@pytest.mark.parametrize("members", [40, 60])
def test_the_bound_is_that_of_a_slow_oracle(right: int, guesses: int, members: int, delta: float) -> None:
    assert list_guess_counts(90) == [20]
    found = find_best_bound(*make_scores(right, guesses, members, 90), delta=delta, failure=FAILURE)
    assert (found.right, found.guesses, found.members, found.candidates) == (right, guesses, members, 90)
    assert found.epsilon == pytest.approx(find_bound_slowly(right, guesses, 90, members, delta), abs=0.041)


def test_more_of_anything_that_favours_chance_proves_less() -> None:
    base = {"right": 95, "guesses": 100, "members": 500, "candidates": 1000, "delta": 1e-6, "failure": FAILURE}

    def prove(**changed: float) -> float:
        given: dict[str, Any] = {**base, **changed}
        delta, failure = given.pop("delta"), given.pop("failure")
        return find_best_bound(*make_scores(**given), delta=delta, failure=failure).epsilon

    for worse in ({"right": 90}, {"members": 600}, {"delta": 1e-4}, {"candidates": 4000, "members": 2000}):
        assert prove(**worse) < prove()
    assert prove(failure=0.001) < prove()


def answer_randomly(members: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Randomised response: tells of each candidate whether it is a member, truthfully as often as ε allows."""
    truthful = rng.random(len(members)) < math.exp(epsilon) / (1 + math.exp(epsilon))
    return np.asarray(members == truthful, float)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_randomised_response_is_bounded_by_its_own_epsilon_and_not_far_below(epsilon: float) -> None:
    bounds = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        members = rng.permutation(4000) < 2000
        scores = answer_randomly(members, epsilon, rng)
        found = find_best_bound(scores, members, delta=0.0, failure=FAILURE)
        bounds.append(found.epsilon)
    assert sum(bound > epsilon for bound in bounds) <= 5  # 5% of 100; the seeds are fixed
    assert float(np.mean(bounds)) > 0.8 * epsilon - 0.06


def test_a_mechanism_that_tells_more_than_it_claims_is_found() -> None:
    rng = np.random.default_rng(0)
    members = rng.permutation(4000) < 2000
    for claimed, told, caught in ((1.0, 1.0, False), (1.0, 1.5, True)):
        scores = answer_randomly(members, told, rng)
        found = find_best_bound(scores, members, delta=1e-6, failure=FAILURE)
        assert (found.epsilon > claimed) == caught


def test_scores_that_few_share_are_guessed_together() -> None:
    members = np.repeat([True, False], 500)
    scores = np.zeros(1000)
    scores[:47] = 1.0
    found = find_best_bound(scores, members, delta=0.0, failure=FAILURE)
    assert (found.guesses, found.right) == (47, 47)
    everything = find_best_bound(np.zeros(1000), members, delta=0.0, failure=FAILURE)
    assert everything.epsilon == 0


def test_candidates_that_are_not_guessed_about_do_not_count() -> None:
    members = np.repeat([True, False], 500)
    scores = np.full(1000, np.nan)
    scores[:40] = 1.0
    scores[500:540] = 0.0
    found = find_best_bound(scores, members, delta=1e-5, failure=FAILURE)
    assert found.candidates == 80
    assert found.right == found.guesses == 40


@pytest.mark.parametrize("count", [1, 2])
def test_no_guesses_prove_more_than_right_ones(count: int) -> None:
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {"delta": 1e-9, "failure": 0.005, "count": count}
    for share in (0.03, 0.5):
        members = rng.permutation(1000) < 1000 * share
        most = bound_right_guesses(members, **given).epsilon
        found = [
            find_best_bound(weight * members + rng.random(1000), members, **given).epsilon for weight in (0, 0.7, 1.0)
        ]
        assert found[0] == 0
        assert 0 < found[1] <= most
        assert found[2] == most
    assert bound_right_guesses(np.arange(40) < 20, **given).epsilon < 1.2  # few records prove little
