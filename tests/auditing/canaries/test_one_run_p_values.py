"""The tests for one run: against exact tails, a linear program and worst-case mechanisms, and as curves of guesses."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, special, stats

from sundog.auditing.canaries.canary_guesses import CanaryGuesses, compute_curve_fpr
from sundog.auditing.canaries.one_run_p_values import (
    compute_gaussian_fpr,
    compute_tradeoff_p_value,
)
from sundog.auditing.guess_p_value import compute_guess_p_value
from sundog.auditing.tradeoff_curve import TradeoffCurve, make_gaussian_curve

Floats = npt.NDArray[np.float64]

PROFILES = [([0.0], [0.3]), ([1.0], [0.0]), ([1.0], [0.05]), ([0.0, 0.5, 2.0], [0.4, 0.2, 0.01])]


def make_curve(epsilons: list[float], deltas: list[float]) -> TradeoffCurve:
    return TradeoffCurve(np.array(epsilons), np.array(deltas), np.array(deltas))


def solve_program(canaries: int, guesses: int, correct: int, epsilons: list[float], deltas: list[float]) -> float:
    """The largest probability of so many right guesses, by a linear program with every inequality of the theorem."""
    number = np.arange(guesses + 1)
    rows, most = [], []
    for least, epsilon, delta in ((i, e, d) for i in range(guesses + 1) for e, d in zip(epsilons, deltas, strict=True)):
        right = np.where(number >= least, number, 0) / canaries
        wrong = np.where(number >= least - 1, guesses - number, 0) / canaries
        rows += [right - np.exp(epsilon) * wrong, right - np.exp(-epsilon) * wrong]
        most += [delta, 1 - np.exp(-epsilon) * (1 - delta)]
    found = optimize.linprog(-1.0 * (number >= correct), rows, most, np.ones((1, guesses + 1)), [1.0], method="highs")
    return float(-found.fun)


@pytest.mark.parametrize(("epsilons", "deltas"), PROFILES)
@pytest.mark.parametrize(("canaries", "guesses"), [(1, 1), (4, 4), (7, 3), (12, 12), (20, 9)])
def test_the_recursion_solves_the_linear_program(
    canaries: int, guesses: int, epsilons: list[float], deltas: list[float]
) -> None:
    least_fpr = partial(compute_curve_fpr, curve=make_curve(epsilons, deltas))
    for correct in range(guesses + 1):
        found = compute_tradeoff_p_value(canaries=canaries, guesses=guesses, correct=correct, least_fpr=least_fpr)
        slow = solve_program(canaries, guesses, correct, epsilons, deltas)
        assert found == pytest.approx(slow, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.02), (2.0, 0.1)])
@pytest.mark.parametrize("together", [False, True], ids=["each canary leaks", "all leak together"])
def test_no_worst_case_mechanism_is_refuted_too_often(epsilon: float, delta: float, together: bool) -> None:
    """Randomised response that tells the truth with probability δ is (ε, δ)-DP: its exact tail is below both bounds."""
    canaries, counts = 25, np.arange(26)
    success = float(special.expit(epsilon))
    tail = stats.binom.sf(counts - 1, canaries, success if together else delta + (1 - delta) * success)
    tail = delta + (1 - delta) * tail if together else tail
    least_fpr = partial(compute_curve_fpr, curve=make_curve([epsilon], [delta]))
    for correct in range(canaries + 1):
        counted = {"canaries": canaries, "guesses": canaries, "correct": correct}
        guessed = {"candidates": canaries, "guesses": canaries, "right": correct}
        assert tail[correct] <= compute_guess_p_value(**guessed, epsilon=epsilon, delta=delta, either=True) * (1 + 1e-9)
        assert tail[correct] <= compute_tradeoff_p_value(**counted, least_fpr=least_fpr) * (1 + 1e-9)


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_a_gaussian_mechanism_is_not_refuted_too_often(mu: float) -> None:
    """If all canaries are guessed by the sign of their score, the number of right guesses is binomial."""
    for correct in range(31):
        found = compute_tradeoff_p_value(
            canaries=30, guesses=30, correct=correct, least_fpr=partial(compute_gaussian_fpr, mu=mu)
        )
        assert stats.binom.sf(correct - 1, 30, special.ndtr(mu / 2)) <= found * (1 + 1e-9)


def draw_guesses(mu: float, rng: np.random.Generator, *, canaries: int = 1000, guesses: int = 150) -> CanaryGuesses:
    """The guesses of one run of a Gaussian mechanism."""
    included = rng.random(canaries) < 0.5
    return CanaryGuesses.make(rng.normal(size=canaries) + mu * (included - 0.5), included, guesses=guesses)


def test_a_right_claim_is_refuted_in_few_of_200_runs_and_a_wrong_one_in_most() -> None:
    rng, curve = np.random.default_rng(0), make_gaussian_curve(0.925, points=100)
    right = [draw_guesses(0.925, rng).compute_p_value(curve) <= 0.05 for _ in range(200)]
    wrong = [draw_guesses(2 * 0.925, rng).compute_p_value(curve) <= 0.05 for _ in range(20)]
    assert sum(right) <= 10
    assert sum(wrong) >= 15


def test_p_values_fall_with_right_guesses_and_rise_with_the_claim() -> None:
    def test(correct: int, mu: float) -> float:
        return compute_tradeoff_p_value(
            canaries=300, guesses=60, correct=correct, least_fpr=partial(compute_gaussian_fpr, mu=mu)
        )

    by_correct = [test(correct, 0.5) for correct in range(61)]
    assert by_correct == sorted(by_correct, reverse=True)
    assert by_correct[0] == 1.0
    by_mu = [test(55, mu) for mu in (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)]
    assert by_mu == sorted(by_mu)
    assert by_mu[0] < 1e-9


def test_tiny_p_values_keep_their_precision() -> None:
    """At μ = 0 each guess is a fair coin, and all of 900 are right with probability 2⁻⁹⁰⁰."""
    found = compute_tradeoff_p_value(
        canaries=1000, guesses=900, correct=900, least_fpr=partial(compute_gaussian_fpr, mu=0.0)
    )
    assert np.log2(found) == pytest.approx(-900, rel=1e-5)


def test_a_curve_is_inverted_for_both_directions() -> None:
    curve = make_gaussian_curve(1.5)
    tpr = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])
    found = compute_curve_fpr(tpr, curve=curve)
    assert found == pytest.approx(compute_gaussian_fpr(tpr, mu=1.5), rel=0.02)
    assert (found <= compute_gaussian_fpr(tpr, mu=1.5)).all()  # never more than the curve allows
    lopsided = TradeoffCurve(np.array([1.0]), np.array([0.2]), np.array([0.0]))
    assert compute_curve_fpr(np.array([0.5]), curve=lopsided) == pytest.approx((0.5 - 0.2) / np.e)


@pytest.mark.parametrize("counts", [(10, 11, 5), (10, 5, 6), (10, 5, -1)])
def test_impossible_counts_are_refused(counts: tuple[int, int, int]) -> None:
    canaries, guesses, correct = counts
    with pytest.raises(ValueError, match="cannot be right"):
        compute_tradeoff_p_value(
            canaries=canaries, guesses=guesses, correct=correct, least_fpr=partial(compute_gaussian_fpr, mu=0.0)
        )
