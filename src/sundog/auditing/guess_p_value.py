"""How likely so many right guesses are if a release is (ε, δ)-DP (after Steinke, Nasr and Jagielski 2023).

An attacker sees the release and guesses of some candidates that they are members. Two ways to choose the members are
covered: a coin for each candidate, and a random subset of fixed size. Nothing is assumed about the release or the
attack, except that guesses depend on membership through the release alone. docs/audit.md has the proofs.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

_DEVIATIONS = 6  # above the number of members: what is left out of a sum makes p-values larger


def compute_guess_p_value(
    *,
    candidates: int,
    guesses: int,
    right: int,
    epsilon: float,
    delta: float,
    share: float = 0.5,
    either: bool = False,
    planned: int | None = None,
) -> float:
    """Return a bound on the probability of so many right guesses if each candidate is a member by a coin of its own.

    >>> round(compute_guess_p_value(candidates=100, guesses=100, right=60, epsilon=0.0, delta=0.0), 4)
    0.0284

    Args:
        candidates: all of which the attacker might have guessed.
        guesses: how many were made.
        right: how many of them were right.
        epsilon: of the claim.
        delta: of the claim.
        share: the probability with which a candidate is a member.
        either: whether some guesses were that a candidate is not a member; only for a share of one half.
        planned: how many guesses were to be made; more are made if scores are equal. By default all.
    """
    _check_counts(candidates, guesses, right)
    if either and share != 0.5:
        raise ValueError("guesses of both kinds need fair coins")
    if right == 0:
        return 1.0
    odds = math.exp(epsilon) * share / (1 - share)
    tail = float(stats.binom.sf(right - 1, guesses, odds / (1 + odds)))
    variance = share * (1 - share)
    fewest = min(planned or guesses, guesses)
    largest = min(1.0, 1 / fewest + 2 / math.sqrt(2 * math.e * fewest * variance))
    return min(1.0, tail + candidates * delta * variance * (2 if either else 1) * largest)


def compute_split_p_value(
    *, candidates: int, members: int, guesses: int, right: int, epsilon: float, delta: float, planned: int | None = None
) -> float:
    """Return the same if the members are a random subset of the candidates of fixed size.

    >>> counts = {"candidates": 1000, "members": 500, "guesses": 100, "right": 90}
    >>> round(compute_split_p_value(**counts, epsilon=1.5, delta=0.0), 3)
    0.534

    Args:
        candidates: all of which the attacker might have guessed.
        members: how many of them are members.
        guesses: of candidates to be members.
        right: how many of them were right.
        epsilon: of the claim.
        delta: of the claim.
        planned: how many guesses were to be made; more are made if scores are equal. By default all.
    """
    if not 0 < members < candidates:
        return 1.0  # there is nothing to guess
    share = members / candidates
    counts = {"candidates": candidates, "guesses": guesses, "right": right, "planned": planned}
    by_coins = compute_guess_p_value(**counts, epsilon=epsilon, delta=delta, share=share)  # type: ignore[arg-type]
    deviation = math.sqrt(candidates * share * (1 - share))
    more = np.arange(min(candidates - members, math.ceil(_DEVIATIONS * deviation)) + 1)
    as_likely = float(stats.binom.pmf(members + more, candidates, share) @ np.exp(-epsilon * more))
    return min(1.0, (by_coins + delta * deviation / 2) / as_likely)


def _check_counts(candidates: int, guesses: int, right: int) -> None:
    if not 0 <= right <= guesses <= candidates:
        raise ValueError(f"{right} of {guesses} guesses about {candidates} candidates cannot be right")
