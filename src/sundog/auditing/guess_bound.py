"""A lower bound on ε from guesses about many records of one fit (Steinke, Nasr and Jagielski 2023).

Suppose that each candidate was made a member independently with probability p, and that an attacker guesses of k
candidates that they are members. If the release is ε-DP, the number of right guesses is not larger, in distribution,
than a binomial number of k trials with success probability p·e^ε / (p·e^ε + 1 − p). With δ, the probability of a large
number is larger by at most δ·m·α, m being the number of candidates and α as in their Theorem 5.2, where 1 / min(p, 1 −
p) replaces their 2 (they have p = ½). All ε at which the observed number is too unlikely are ruled out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

LARGEST = 30.0  # the largest ε that is looked for
_FEWEST = 10  # guesses
_FACTOR = 10**0.5  # between two numbers of guesses
_STEPS = 40  # of the bisection


@dataclass(frozen=True)
class GuessBound:
    """What guesses prove.

    Args:
        epsilon: the lower bound; 0 where nothing is proven.
        guesses: the number of candidates that were guessed to be members.
        right: how many of them are.
        candidates: the number that were scored.
    """

    epsilon: float
    guesses: int
    right: int
    candidates: int

    def to_dict(self) -> dict[str, float | int]:
        """Return a JSON-compatible dictionary."""
        return asdict(self)


def bound_epsilon(*, right: int, guesses: int, candidates: int, share: float, delta: float, failure: float) -> float:
    """Return the largest ε that the guesses rule out, 0 if none.

    >>> found = bound_epsilon(right=100, guesses=100, candidates=1000, share=0.5, delta=0.0, failure=0.05)
    >>> round(found, 2)
    3.49

    Args:
        right: guesses that were right.
        guesses: candidates that were guessed to be members.
        candidates: all of which the attacker might have guessed.
        share: the probability with which a candidate was made a member.
        delta: the δ for which ε is bounded.
        failure: the probability with which the bound may be wrong.
    """

    def is_ruled_out(epsilon: float) -> bool:
        limit = _bound_probability(epsilon, right, guesses, candidates, share=share, delta=delta)
        return limit <= failure

    if not is_ruled_out(0.0):
        return 0.0
    low, high = 0.0, LARGEST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_ruled_out(middle) else (low, middle)
    return low


def find_best_bound(
    scores: Floats, members: Booleans, *, share: float, delta: float, failure: float, count: int = 1
) -> GuessBound:
    """Return the best bound over several numbers of guesses, each of the highest scores; corrected for their number.

    The numbers of guesses (10, 32, 100, …) do not depend on the data. All candidates that score as high as the last one
    are guessed too.

    Args:
        scores: of the candidates; NaN for those that are not guessed about.
        members: which candidates are members.
        share: the probability with which a candidate was made a member.
        delta: the δ for which ε is bounded.
        failure: the probability with which any of the bounds may be wrong.
        count: the number of attacks that share this probability.
    """
    guessed = ~np.isnan(scores)
    scores, members = scores[guessed], members[guessed]
    tries = list_guess_counts(len(scores))
    best = GuessBound(0.0, 0, 0, len(scores))
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True)) + 1  # where a set of equal scores ends
    right = np.cumsum(members[order])
    for most in tries:
        guesses = int(ends[np.searchsorted(ends, most)])
        found = bound_epsilon(
            right=int(right[guesses - 1]),
            guesses=guesses,
            candidates=len(scores),
            share=share,
            delta=delta,
            failure=failure / (count * len(tries)),
        )
        if found > best.epsilon or not best.guesses:
            best = GuessBound(found, guesses, int(right[guesses - 1]), len(scores))
    return best


def list_guess_counts(candidates: int) -> Sequence[int]:
    """Return the numbers of guesses to try: up to half of the candidates.

    >>> list_guess_counts(1000)
    [10, 32, 100, 316]
    """
    steps = range(max(0, math.floor(math.log(max(candidates / 2, 1) / _FEWEST, _FACTOR)) + 1))
    return [round(_FEWEST * _FACTOR**step) for step in steps]


def _bound_probability(
    epsilon: float, right: int, guesses: int, candidates: int, *, share: float, delta: float
) -> float:
    """Return an upper bound on the probability of so many right guesses under (ε, δ)-DP."""
    from scipy.stats import binom

    odds = math.exp(epsilon) * share / (1 - share)
    chance = odds / (1 + odds)
    tail = float(binom.sf(right - 1, guesses, chance))
    if delta == 0 or right == 0:
        return tail
    fewer = np.arange(1, right + 1)
    between = binom.cdf(right - 1, guesses, chance) - binom.cdf(right - fewer - 1, guesses, chance)
    alpha = float((np.maximum(between, 0.0) / fewer).max()) / min(share, 1 - share)
    return min(1.0, tail + alpha * delta * candidates)
