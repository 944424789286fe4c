"""Even draws: each has its probability, counts have none, and what is drawn together knows nothing of each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundog.models.systematic_sampling import draw_cells, draw_items, draw_points


@settings(max_examples=100)
@given(
    st.lists(st.floats(0, 1e6, width=32), min_size=1, max_size=40).filter(lambda weights: sum(weights) > 1e-3),
    st.integers(0, 300),
)
def test_a_cell_is_drawn_as_often_as_its_probability_says(weights: list[float], n: int) -> None:
    p = np.array(weights) / np.sum(weights)
    counts = np.bincount(draw_cells(p, n, np.random.default_rng(0)), minlength=len(p))
    assert counts.sum() == n
    assert np.abs(counts - n * p).max() <= 1 + 1e-6
    assert not counts[p == 0].any()


def test_the_last_cell_may_be_impossible() -> None:
    """Whatever rounding leaves over."""
    p = np.append(np.full(7, 1 / 7), 0.0)
    for seed in range(200):
        assert draw_cells(p, 1000, np.random.default_rng(seed)).max() == 6


@pytest.mark.parametrize("n", [1, 2, 5])
def test_each_place_has_the_distribution(n: int) -> None:
    p, rng, draws = np.array([0.1, 0.6, 0.3]), np.random.default_rng(1), 20_000
    drawn = np.stack([draw_cells(p, n, rng) for _ in range(draws)])
    found = (drawn[..., None] == np.arange(3)).mean(axis=0)
    assert np.abs(found - p).max() < 5 * 0.5 / math.sqrt(draws)


def test_columns_that_are_drawn_by_themselves_know_nothing_of_each_other() -> None:
    p, rng, draws = np.array([0.5, 0.5]), np.random.default_rng(2), 5000
    pairs = [(draw_cells(p, 6, rng), draw_cells(p, 6, rng)) for _ in range(draws)]
    assert abs(np.mean([(a == b).mean() for a, b in pairs]) - 0.5) < 5 * 0.5 / math.sqrt(6 * draws)


def test_each_position_has_its_own_distribution() -> None:
    p = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
    drawn = draw_cells(p, 1000, np.random.default_rng(0))
    assert drawn.shape == (1000, 3)
    assert set(drawn[:, 0]) == {0}
    assert set(drawn[:, 1]) == {2}
    assert (drawn[:, 2] == 0).sum() == 500


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_points_are_uniform_and_spread(n: int) -> None:
    points = draw_points(n, np.random.default_rng(0))
    assert sorted((n * points).astype(int)) == list(range(n))
    assert ((points >= 0) & (points < 1)).all()


def test_items_are_drawn_as_often_as_their_probabilities_add_up_to() -> None:
    p = np.random.default_rng(0).random((700, 12)) ** 3
    p[:, 3], p[:, 4], p[::2, 5] = 0.0, 1.0, 0.0
    held = draw_items(p, np.random.default_rng(1))
    assert np.abs(held.sum(axis=0) - p.sum(axis=0)).max() < 1
    assert not held[p == 0].any()
    assert held[p == 1].all()
    assert draw_items(p[:0], np.random.default_rng(1)).shape == (0, 12)


def test_rows_hold_each_item_with_its_probability_and_know_nothing_of_other_items() -> None:
    """Over many draws: the mean of each place, and of each two places of a row, the same probability among them."""
    p = np.array([[0.5, 0.5, 0.1], [0.5, 0.5, 0.9], [0.2, 0.5, 0.3], [0.05, 0.5, 0.999]])
    rng, draws = np.random.default_rng(2), 20_000
    held = np.stack([draw_items(p, rng) for _ in range(draws)]).astype(float)
    tolerance = 5 * 0.5 / math.sqrt(draws)
    assert np.abs(held.mean(axis=0) - p).max() < tolerance
    both = np.einsum("dri,drj->rij", held, held) / draws
    expected = p[:, :, None] * p[:, None, :]
    apart = ~np.eye(3, dtype=bool)
    assert np.abs(both - expected)[:, apart].max() < tolerance
