"""A lower bound on ε from guesses about many records of one fit.

The members are a random subset of the candidates, of fixed size. An attacker who knows nothing but the release guesses
which they are; every ε is ruled out for which so many right guesses are too unlikely.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from sundog.auditing.guess_p_value import compute_split_p_value

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

LARGEST = 50.0  # the largest ε that is looked for
_FACTOR = 10**0.5  # between two numbers of guesses
_FEWEST = 20  # guesses: fewer prove nothing
_STEPS = 25  # of the bisection


@dataclass(frozen=True)
class GuessBound:
    """What guesses prove.

    Args:
        epsilon: the lower bound; 0 where nothing is proven.
        guesses: the number of candidates that were guessed to be members.
        right: how many of them are.
        candidates: the number that were scored.
        members: how many of these are members.
    """

    epsilon: float
    guesses: int
    right: int
    candidates: int
    members: int

    def to_dict(self) -> dict[str, float | int]:
        """Return a JSON-compatible dictionary."""
        return asdict(self)


def bound_epsilon(compute_p_value: Callable[[float], float], *, failure: float) -> float:
    """Return the largest ε that is ruled out, 0 if none.

    >>> round(bound_epsilon(lambda epsilon: 0.01 * 2**epsilon, failure=0.04), 6)
    2.0

    Args:
        compute_p_value: of what was observed, by the ε that is claimed; it must not fall.
        failure: the probability with which the bound may be wrong.
    """
    if compute_p_value(0.0) > failure:
        return 0.0
    low, high = 0.0, LARGEST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if compute_p_value(middle) <= failure else (low, middle)
    return low


def find_best_bound(scores: Floats, members: Booleans, *, delta: float, failure: float, count: int = 1) -> GuessBound:
    """Return the best bound over several numbers of guesses, each of the highest scores; corrected for their number.

    The numbers of guesses (20, 63, 200, …) do not depend on the data. All candidates that score as high as the last
    one are guessed too.

    Args:
        scores: of the candidates; NaN for those that are not guessed about, which must not depend on membership.
        members: which candidates are members.
        delta: the δ for which ε is bounded.
        failure: the probability with which any of the bounds may be wrong.
        count: the number of bounds that share this probability.
    """
    guessed = ~np.isnan(scores)
    scores, members = scores[guessed], members[guessed]
    tries, total = list_guess_counts(len(scores)), int(members.sum())
    best = GuessBound(0.0, 0, 0, len(scores), total)
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True)) + 1  # where a set of equal scores ends
    right = np.cumsum(members[order])
    for planned in tries:
        guesses = int(ends[np.searchsorted(ends, planned)])
        compute_p_value = partial(
            _compute_p_value, len(scores), total, guesses, int(right[guesses - 1]), planned, delta
        )
        found = bound_epsilon(compute_p_value, failure=failure / (count * len(tries)))
        if found > best.epsilon or not best.guesses:
            best = GuessBound(found, guesses, int(right[guesses - 1]), len(scores), total)
    return best


def bound_right_guesses(members: Booleans, *, delta: float, failure: float, count: int = 1) -> GuessBound:
    """Return the best bound if every guess were right: what no attack on these candidates can exceed.

    >>> members = np.arange(1000) % 2 == 0
    >>> round(bound_right_guesses(members, delta=1e-9, failure=0.005).epsilon, 2)
    2.97

    Args:
        members: which candidates are members.
        delta: the δ for which ε is bounded.
        failure: the probability with which any of the bounds may be wrong.
        count: the number of bounds that share this probability.
    """
    ranks = np.argsort(np.argsort(members, kind="stable"), kind="stable").astype(np.float64)
    return find_best_bound(ranks, members, delta=delta, failure=failure, count=count)


def list_guess_counts(candidates: int) -> Sequence[int]:
    """Return the numbers of guesses to try: up to half of the candidates.

    >>> list_guess_counts(1000)
    [20, 63, 200]
    """
    steps = range(max(0, math.floor(math.log(max(candidates / 2, 1) / _FEWEST, _FACTOR)) + 1))
    return [round(_FEWEST * _FACTOR**step) for step in steps]


def _compute_p_value(
    candidates: int, members: int, guesses: int, right: int, planned: int, delta: float, epsilon: float
) -> float:
    return compute_split_p_value(
        candidates=candidates,
        members=members,
        guesses=guesses,
        right=right,
        epsilon=epsilon,
        delta=delta,
        planned=planned,
    )
