"""p-values of guesses: no mechanism whatever gets so many right more often, as linear programs show."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, sparse, stats

from sundog.auditing.guess_p_value import compute_guess_p_value, compute_split_p_value

Floats = npt.NDArray[np.float64]
MOST = 4  # candidates


def find_likeliest(
    weights: Floats, outputs: list[Any], wins: npt.NDArray[np.bool_], epsilon: float, delta: float
) -> float:
    """Return the largest probability of a win over all (ε, δ)-DP mechanisms, by a linear program.

    Args:
        weights: the probability of each input, numbered by the bits of its candidates.
        outputs: of the mechanism: any list of guesses.
        wins: whether an output is a win, by input and output.
        epsilon: of the mechanism.
        delta: of the mechanism.
    """
    inputs, many = len(weights), len(outputs)
    bits = inputs.bit_length() - 1
    pairs = [(one, one ^ (1 << bit)) for one in range(inputs) for bit in range(bits)]
    chances, excess = inputs * many, len(pairs) * many
    rows = sparse.lil_array((excess + len(pairs), chances + excess))
    for number, (one, other) in enumerate(pairs):
        for output in range(many):  # M(one) − e^ε M(other) ≤ excess, and the excesses add up to δ at most
            row = number * many + output
            rows[row, one * many + output], rows[row, other * many + output] = 1.0, -math.exp(epsilon)
            rows[row, chances + row] = -1.0
            rows[excess + number, chances + row] = 1.0
    sums = sparse.lil_array((inputs, chances + excess))
    for one in range(inputs):
        sums[one, one * many : (one + 1) * many] = 1.0
    gains = np.concatenate([-(weights[:, None] * wins).ravel(), np.zeros(excess)])
    most = np.concatenate([np.zeros(excess), np.full(len(pairs), delta)])
    found = optimize.linprog(gains, rows.tocsr(), most, sums.tocsr(), np.ones(inputs), method="highs")
    return float(-found.fun)


def list_inputs(candidates: int) -> npt.NDArray[np.int64]:
    """Return the bits of all inputs, one row for each."""
    return np.arange(2**candidates)[:, None] >> np.arange(candidates) & 1


def weigh_inputs(inputs: npt.NDArray[np.int64], share: float) -> Floats:
    return np.asarray(np.prod(np.where(inputs == 1, share, 1 - share), axis=1))


CLAIMS = [(0.0, 0.0), (0.7, 0.0), (1.5, 0.0), (0.0, 0.1), (0.7, 0.02), (1.5, 0.1)]


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
@pytest.mark.parametrize("guesses", [1, 2, 3])
def test_no_mechanism_gets_more_guesses_right_by_coins(guesses: int, epsilon: float, delta: float) -> None:
    inputs, outputs = list_inputs(MOST), list(itertools.combinations(range(MOST), guesses))
    right = np.stack([inputs[:, list(guessed)].sum(axis=1) for guessed in outputs], axis=1)
    for share, needed in itertools.product((0.3, 0.5, 0.8), range(1, guesses + 1)):
        likeliest = find_likeliest(weigh_inputs(inputs, share), outputs, right >= needed, epsilon, delta)
        counts = {"candidates": MOST, "guesses": guesses, "right": needed}
        found = compute_guess_p_value(**counts, epsilon=epsilon, delta=delta, share=share)  # type: ignore[arg-type]
        assert likeliest <= found + 1e-9
        if delta == 0 and share == 0.5 and needed == guesses < 3:
            assert likeliest > 0.8 * found


@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 0.0), (0.7, 0.02), (1.5, 0.1)])
def test_no_mechanism_gets_more_guesses_of_both_kinds_right(epsilon: float, delta: float) -> None:
    inputs, guesses = list_inputs(3), 2
    outputs = [
        (g, sides) for g in itertools.combinations(range(3), guesses) for sides in itertools.product((0, 1), repeat=2)
    ]
    right = np.stack([(inputs[:, list(g)] == sides).sum(axis=1) for g, sides in outputs], axis=1)
    for needed in (1, 2):
        likeliest = find_likeliest(weigh_inputs(inputs, 0.5), outputs, right >= needed, epsilon, delta)
        counts = {"candidates": 3, "guesses": guesses, "right": needed}
        assert likeliest <= compute_guess_p_value(**counts, epsilon=epsilon, delta=delta, either=True) + 1e-9


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
@pytest.mark.parametrize("guesses", [1, 2])
def test_no_mechanism_gets_more_guesses_right_about_a_split(guesses: int, epsilon: float, delta: float) -> None:
    """Beside a planted fault: coins with the same share, in place of a split of fixed size, allow too little."""
    inputs, outputs = list_inputs(MOST), list(itertools.combinations(range(MOST), guesses))
    right = np.stack([inputs[:, list(guessed)].sum(axis=1) for guessed in outputs], axis=1)
    exceeded = []
    for members, needed in itertools.product(range(1, MOST), range(1, guesses + 1)):
        weights = (inputs.sum(axis=1) == members) / math.comb(MOST, members)
        likeliest = find_likeliest(weights, outputs, right >= needed, epsilon, delta)
        counts = {"candidates": MOST, "guesses": guesses, "right": needed, "epsilon": epsilon, "delta": delta}
        assert likeliest <= compute_split_p_value(**counts, members=members) + 1e-9  # type: ignore[arg-type]
        by_coins = compute_guess_p_value(**counts, share=members / MOST)  # type: ignore[arg-type]
        exceeded.append(needed == guesses and likeliest > by_coins + 1e-6)
    assert any(exceeded) == (epsilon > 0) or delta > 0


def test_p_values_fall_with_right_guesses_and_rise_with_the_claim() -> None:
    counts = {"candidates": 300, "members": 120, "guesses": 60}
    by_right = [compute_split_p_value(**counts, right=right, epsilon=0.5, delta=1e-6) for right in range(61)]
    assert by_right == sorted(by_right, reverse=True)
    assert by_right[0] == 1.0
    by_epsilon = [compute_split_p_value(**counts, right=55, epsilon=e, delta=1e-6) for e in (0.0, 0.1, 0.5, 1.0, 3.0)]
    assert by_epsilon == sorted(by_epsilon)
    assert by_epsilon[0] < 1e-3
    more_delta = compute_split_p_value(**counts, right=55, epsilon=0.5, delta=1e-4)
    assert more_delta > compute_split_p_value(**counts, right=55, epsilon=0.5, delta=1e-6)
    assert compute_split_p_value(candidates=9, members=9, guesses=5, right=5, epsilon=0.0, delta=0.0) == 1.0


def test_a_binomial_probability_is_as_small_as_the_proof_needs() -> None:
    """Herzog (1947): none exceeds 1/√(2e·n·q·(1 − q))."""
    for trials, chance in itertools.product((1, 2, 5, 30, 1000), np.linspace(0.001, 0.999, 200)):
        largest = stats.binom.pmf(np.arange(trials + 1), trials, chance).max()
        assert largest <= 1 / math.sqrt(2 * math.e * trials * chance * (1 - chance)) + 1e-12


def test_tiny_p_values_keep_their_precision() -> None:
    """At ε = 0 each guess is a fair coin, and all of a thousand are right with probability 2⁻¹⁰⁰⁰."""
    found = compute_guess_p_value(candidates=1000, guesses=1000, right=1000, epsilon=0.0, delta=0.0)
    assert np.log2(found) == pytest.approx(-1000)


@pytest.mark.parametrize("counts", [(10, 11, 5), (10, 5, 6), (10, 5, -1)])
def test_impossible_counts_are_refused(counts: tuple[int, int, int]) -> None:
    candidates, guesses, right = counts
    with pytest.raises(ValueError, match="cannot be right"):
        compute_guess_p_value(candidates=candidates, guesses=guesses, right=right, epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match="fair coins"):
        compute_guess_p_value(candidates=9, guesses=5, right=5, epsilon=1.0, delta=0.0, share=0.4, either=True)
