"""How likely so many right guesses about planted records are, if a claim of privacy holds.

Each of m canaries is included by a fair coin of its own. The mechanism runs once; an auditor then guesses, for at most
r of the canaries, whether they were included, and c guesses are right. Both tests hold for any mechanism and any way to
guess; docs/audit_canaries.md has the proofs.

* (ε, δ): after Steinke, Nasr and Jagielski 2023. Guesses are dominated by randomised response (`guess_p_value.py`).
* A trade-off curve f: Mahloujifar, Melis and Chaudhuri 2024. Guesses of a correct mechanism satisfy one inequality for
  each possible number of right ones, which leaves little room for large numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
LeastFpr = Callable[[Floats], Floats]
"""The least false positive rate of a test with this true positive rate: the inverse of 1 − f. Convex, from 0 to 1."""

_LEAST_LOG = -690.0  # of p-values: smaller ones are as good as zero
_WIDTH, _ROUNDS = 33, 8  # of the search for a p-value: the interval becomes 32 times narrower in each round


def compute_gaussian_fpr(tpr: Floats | float, *, mu: Floats | float) -> Floats:
    """Return Φ(Φ⁻¹(tpr) − μ), the least false positive rate of a test against a mechanism with μ-GDP.

    >>> round(float(compute_gaussian_fpr(0.5, mu=1.0)), 4)
    0.1587
    """
    return np.asarray(special.ndtr(special.ndtri(tpr) - mu))


def compute_tradeoff_p_value(*, canaries: int, guesses: int, correct: int, least_fpr: LeastFpr) -> float:
    """Return a bound on the probability of so many right guesses if the mechanism has a trade-off curve.

    It is the largest probability that `is_possible` admits, rounded up by less than one part in a million.

    >>> from functools import partial
    >>> counts = {"canaries": 100, "guesses": 100, "correct": 60}
    >>> compute_tradeoff_p_value(**counts, least_fpr=partial(compute_gaussian_fpr, mu=0.0)) > 0.0284
    True

    Args:
        canaries: how many there are, included or not.
        guesses: how many were guessed, at most.
        correct: how many guesses were right.
        least_fpr: of a test, by its true positive rate, for an array of rates.
    """
    _check_counts(canaries, guesses, correct)
    if correct == 0:
        return 1.0
    low, high = _LEAST_LOG, 0.0
    for _ in range(_ROUNDS):
        logs = np.linspace(low, high, _WIDTH)
        possible = is_possible(np.exp(logs), canaries=canaries, guesses=guesses, correct=correct, least_fpr=least_fpr)
        last = int(np.flatnonzero(possible).max(initial=0))
        if last == _WIDTH - 1:
            return 1.0
        low, high = float(logs[last]), float(logs[last + 1])
    return math.exp(high)


def is_possible(
    probability: Floats | float, *, canaries: int, guesses: int, correct: int, least_fpr: LeastFpr
) -> npt.NDArray[np.bool_]:
    """Return whether so many right guesses can have this probability under a trade-off curve.

    Let pᵢ be the probability of i right guesses. For every i, what is to the right of it is bounded by what is to the
    left: Rᵢ = Σ k·pₖ/m over k ≥ i is a true positive rate, and Hᵢ₋₁ = Σ (r − k)·pₖ/m over k ≥ i − 1 a false
    positive rate, of tests for single canaries, on average. Going down from c, each pᵢ is as small as the curve allows;
    if all add up to more than one, no mechanism with this curve gives c right guesses that often.

    Args:
        probability: of `correct` or more right guesses; an array, or a number beside a `least_fpr` for many curves.
        canaries: how many there are, m.
        guesses: how many were guessed, r.
        correct: how many guesses were right, c.
        least_fpr: of a test, by its true positive rate.
    """
    total = np.asarray(probability, np.float64)
    right, wrong = total * correct / canaries, total * (guesses - correct) / canaries
    for number in range(correct - 1, -1, -1):
        added = np.maximum(0.0, least_fpr(np.minimum(right, 1.0)) - wrong)  # to the false positive rate
        share = added * canaries / (guesses - number)
        right, wrong, total = right + share * number / canaries, wrong + added, total + share
    return np.asarray(total <= 1.0)


def _check_counts(canaries: int, guesses: int, correct: int) -> None:
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError(f"{correct} of {guesses} guesses about {canaries} canaries cannot be right")
