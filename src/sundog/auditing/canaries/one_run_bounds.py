"""Lower bounds on ε from the guesses of one run."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy import special

from sundog.auditing import guess_bound
from sundog.auditing.canaries.one_run_p_values import compute_gaussian_fpr, is_possible
from sundog.auditing.guess_p_value import compute_guess_p_value

_LARGEST_MU = 16.0  # no number of canaries proves more
_WIDTH, _ROUNDS, _HALVINGS = 33, 5, 40
_REACH = 1.25  # how much more than the claim all guesses must prove if they are right
_CANDIDATES = (0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0)  # guesses, of all canaries
_WORSE = 0.8  # than the best so far: the search ends


def bound_epsilon(*, canaries: int, guesses: int, correct: int, delta: float, confidence: float = 0.95) -> float:
    """Return a lower bound on ε after Steinke, Nasr and Jagielski 2023: smaller ones are refuted.

    >>> round(bound_epsilon(canaries=1000, guesses=100, correct=95, delta=1e-5), 2)
    2.17

    Args:
        canaries: how many there are, included or not.
        guesses: how many were guessed.
        correct: how many guesses were right.
        delta: at which ε is stated.
        confidence: that the bound holds.
    """

    def compute_p_value(epsilon: float) -> float:
        counts = {"candidates": canaries, "guesses": guesses, "right": correct}
        return compute_guess_p_value(**counts, epsilon=epsilon, delta=delta, either=True)

    return guess_bound.bound_epsilon(compute_p_value, failure=1 - confidence)


def bound_mu(*, canaries: int, guesses: int, correct: int, confidence: float = 0.95) -> float:
    """Return a lower bound on μ, for mechanisms with Gaussian DP (Mahloujifar, Melis and Chaudhuri 2024).

    >>> round(bound_mu(canaries=1000, guesses=100, correct=95), 2)
    0.79

    Args:
        canaries: how many there are, included or not.
        guesses: how many were guessed.
        correct: how many guesses were right.
        confidence: that the bound holds.
    """
    low, high = 0.0, _LARGEST_MU
    for _ in range(_ROUNDS):
        grid = np.linspace(low, high, _WIDTH)
        possible = is_possible(
            np.full(_WIDTH, 1 - confidence),
            canaries=canaries,
            guesses=guesses,
            correct=correct,
            least_fpr=partial(compute_gaussian_fpr, mu=grid),
        )
        first = int(np.argmax(possible))  # the first that is not refuted
        if first == 0:
            return low if possible[0] else high
        low, high = float(grid[first - 1]), float(grid[first])
    return low


def choose_guesses(canaries: int, *, mu: float, confidence: float = 0.95) -> int:
    """Return the number of guesses that gives the best bound if the claim is exact; it depends on no result.

    Of Gaussian scores, the highest are guessed to be included and the lowest not. The number of right guesses is taken
    one standard deviation below its mean. Few guesses are the surest, but all of them being right must prove clearly
    more than the claim, or no leak could refute it.

    >>> choose_guesses(1000, mu=0.925), choose_guesses(1000, mu=0.268)
    (150, 500)

    Args:
        canaries: how many there are, included or not.
        mu: of the claim, as Gaussian DP.
        confidence: of the bound.
    """
    counts = [max(1, round(share * canaries)) for share in _CANDIDATES]
    best, chosen = -1.0, canaries
    for guesses in counts:
        counted = {"canaries": canaries, "guesses": guesses}
        reached = partial(compute_gaussian_fpr, mu=_REACH * mu)
        if is_possible(1 - confidence, **counted, correct=guesses, least_fpr=reached):
            continue
        right = guesses * _expect_accuracy(guesses / canaries / 2, mu)
        correct = max(0, round(right - math.sqrt(right * (1 - right / guesses))))
        expected = bound_mu(**counted, correct=correct, confidence=confidence)
        if expected > best:
            best, chosen = expected, guesses
        elif expected < _WORSE * best:
            break  # more guesses are less sure
    return chosen


def _expect_accuracy(tail: float, mu: float) -> float:
    """Return the share of included canaries among those with the highest scores."""
    low, high = -40.0, 40.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = (special.ndtr(-middle) + special.ndtr(mu - middle)) / 2
        low, high = (middle, high) if above > tail else (low, middle)
    return float(special.ndtr(mu - low) / (2 * tail))
