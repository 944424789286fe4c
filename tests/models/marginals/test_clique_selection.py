"""Choosing what to measure."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from sundog.models.marginals.bucket_tree import Clique, GrowingTree
from sundog.models.marginals.clique_selection import (
    Forest,
    Integers,
    choose_by_exponential_mechanism,
    choose_by_scores,
    divide_units,
    expect_noise,
    score_cliques,
)
from sundog.privacy.noise import NoiseSource

SIZES = (10, 10, 10)


def test_a_record_changes_a_score_by_at_most_one_and_a_person_too() -> None:
    expected: dict[Clique, Integers] = {(0, 1): np.array([[3, 4], [0, 5]])}
    counts = np.array([[7, 1], [2, 5]])
    alone = score_cliques({(0, 1): counts}, expected, cap=1)
    for cell in np.ndindex(2, 2):
        more = counts.copy()
        more[cell] += 1
        assert abs(score_cliques({(0, 1): more}, expected, cap=1) - alone).max() <= 1
        more[cell] += 2
        person = score_cliques({(0, 1): more}, expected, cap=3)
        assert abs(person - score_cliques({(0, 1): counts}, expected, cap=3)).max() <= 1


def test_only_what_is_worth_its_noise_is_chosen_the_best_first_and_as_much_as_fits() -> None:
    gains: dict[Clique, float] = {(0, 1): 5.0, (0, 2): 9.0, (1, 2): -1.0}
    assert choose_by_scores(gains, GrowingTree(SIZES, [], 1e6), 3, least=0.0) == [(0, 2), (0, 1)]
    assert choose_by_scores(gains, GrowingTree(SIZES, [], 1e6), 1, least=0.0) == [(0, 2)]
    assert choose_by_scores({**gains, (1, 2): 1.0}, GrowingTree(SIZES, [], 300), 3, least=0.0) == [(0, 2), (0, 1)]


def test_a_forest_connects_columns_once() -> None:
    gains: dict[Clique, float] = {(0, 1): 5.0, (1, 2): 4.0, (0, 2): 3.0, (2, 3): 2.0, (0, 3): 1.0}
    sizes = (4, 4, 4, 4)
    assert choose_by_scores(gains, GrowingTree(sizes, [], 1e6), 9, least=0.0, forest=Forest()) == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]
    noise = NoiseSource.seeded(5)
    drawn = [
        choose_by_exponential_mechanism(gains, GrowingTree(sizes, [], 1e6), 9, scale=0.1, noise=noise, forest=Forest())
        for _ in range(200)
    ]
    assert all(len(chosen) == 3 and {v for pair in chosen for v in pair} == {0, 1, 2, 3} for chosen in drawn)
    assert len({tuple(sorted(chosen)) for chosen in drawn}) == 8  # trees on these five pairs


def test_the_exponential_mechanism_has_its_probabilities() -> None:
    gains: dict[Clique, float] = {(0, 1): 0.0, (0, 2): 1.0, (1, 2): 2.0}
    noise, runs = NoiseSource.seeded(1), 20_000
    drawn = Counter(
        choose_by_exponential_mechanism(gains, GrowingTree(SIZES, [], 1e6), 1, scale=0.7, noise=noise)[0]
        for _ in range(runs)
    )
    weights = {clique: math.exp(0.7 * gain) for clique, gain in gains.items()}
    for clique, weight in weights.items():
        assert drawn[clique] / runs == pytest.approx(weight / sum(weights.values()), abs=0.02)


def test_what_does_not_fit_is_not_drawn() -> None:
    tree = GrowingTree(SIZES, [(0, 1), (1, 2)], 300)
    chosen = choose_by_exponential_mechanism(
        {(0, 1): 0.0, (0, 2): 100.0}, tree, 2, scale=1.0, noise=NoiseSource.seeded(1)
    )
    assert chosen == [(0, 1)]


def test_a_measurement_of_few_records_leaves_less_than_its_noise() -> None:
    assert expect_noise(np.array([10**9]), 5.0) == pytest.approx(5 * math.sqrt(2 / math.pi))
    assert expect_noise(np.array([0]), 5.0) == 0
    assert 0 < expect_noise(np.array([4]), 5.0) < expect_noise(np.array([400]), 5.0)


@pytest.mark.parametrize(("weights", "units"), [([1], 16), ([4, 400, 40], 48), ([7] * 5, 5)], ids=str)
def test_units_are_divided_without_rest(weights: list[float], units: int) -> None:
    found = divide_units(weights, units)
    assert sum(found) == units
    assert min(found) >= 1
    assert [found[place] for place in np.argsort(weights, kind="stable")] == sorted(found)
