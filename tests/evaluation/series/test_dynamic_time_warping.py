"""Nearest neighbours under dynamic time warping, against the textbook recursion."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from sundog.errors import SundogError
from sundog.evaluation.series.dynamic_time_warping import choose_window, find_nearest_series

Floats = NDArray[np.float64]


def warp(a: Floats, b: Floats, window: int) -> float:
    """The recursion, cell by cell."""
    n = len(a)
    cost = np.full((n + 1, n + 1), math.inf)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(max(1, i - window), min(n, i + window) + 1):
            before = min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
            cost[i, j] = (a[i - 1] - b[j - 1]) ** 2 + before
    return math.sqrt(cost[n, n])


def brute_force(series: Floats, among: Floats, window: int) -> Floats:
    return np.array([min(warp(one, other, window) for other in among) for one in series])


@pytest.mark.parametrize("kind", ["walks", "noise", "spikes", "few levels"])
@pytest.mark.parametrize("window", [0, 1, 3, 20])
def test_distances_are_those_of_brute_force(kind: str, window: int) -> None:
    rng = np.random.default_rng(window)
    values = {
        "walks": rng.normal(size=(45, 16)).cumsum(axis=1),
        "noise": rng.normal(size=(45, 16)),
        "spikes": rng.random((45, 16)) ** 8,
        "few levels": rng.integers(0, 3, (45, 16)).astype(float),
    }[kind]
    series, among = values[:5], values[5:]
    places, distances = find_nearest_series(series, among, window=window)
    np.testing.assert_allclose(distances, brute_force(series, among, window), atol=1e-12)
    reached = [warp(one, among[place], window) for one, place in zip(series, places, strict=True)]
    np.testing.assert_allclose(reached, distances, atol=1e-12)


def test_of_many_candidates_the_nearest_is_found_whatever_its_bound() -> None:
    """With so wide a window all bounds are near zero, and say little about who is near."""
    rng = np.random.default_rng(0)
    series, among = rng.normal(size=(4, 10)), rng.normal(size=(1500, 10))
    expected = np.array([[warp(one, other, 5) for other in among] for one in series])
    places, distances = find_nearest_series(series, among, window=5)
    np.testing.assert_allclose(distances, expected.min(axis=1))
    np.testing.assert_array_equal(places, expected.argmin(axis=1))


def test_without_a_shift_it_is_the_euclidean_distance() -> None:
    rng = np.random.default_rng(0)
    series, among = rng.normal(size=(4, 9)), rng.normal(size=(30, 9))
    euclidean = np.linalg.norm(series[:, None] - among[None], axis=2).min(axis=1)
    np.testing.assert_allclose(find_nearest_series(series, among, window=0)[1], euclidean)


def test_a_copy_is_found_at_distance_zero() -> None:
    among = np.random.default_rng(0).normal(size=(300, 24))
    places, distances = find_nearest_series(among[[7, 250]], among)
    assert places.tolist() == [7, 250]
    assert distances.tolist() == [0.0, 0.0]


def test_a_shift_within_the_window_costs_nothing_and_beyond_it_something() -> None:
    bump = np.zeros((1, 20))
    bump[0, 10] = 1.0
    moved = np.roll(bump, 3, axis=1)
    assert find_nearest_series(moved, bump, window=3)[1][0] == 0.0
    assert find_nearest_series(moved, bump, window=2)[1][0] > 0.5


def test_a_single_constant_candidate_is_the_nearest() -> None:
    places, distances = find_nearest_series(np.zeros((2, 4)), np.ones((1, 4)))
    assert places.tolist() == [0, 0]
    np.testing.assert_allclose(distances, 2.0)


def test_series_of_one_value_are_compared() -> None:
    places, distances = find_nearest_series(np.array([[2.0]]), np.array([[0.0], [5.0], [3.0]]))
    assert places.tolist() == [2]
    assert distances.tolist() == [1.0]


def test_the_default_window_is_a_tenth() -> None:
    assert [choose_window(length) for length in (1, 19, 96)] == [1, 1, 9]


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dtaidistance", None)
    with pytest.raises(SundogError, match=r"needs the dtaidistance library: pip install 'sundog\[series\]'$"):
        find_nearest_series(np.zeros((1, 4)), np.zeros((1, 4)))
