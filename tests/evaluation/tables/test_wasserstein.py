"""Wasserstein distances by hand and against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tests.evaluation.tables.two_tables import (
    evaluate_codes,
    get_value,
)

from sundog.evaluation.tables.wasserstein import estimate_sliced_distance


def test_wasserstein_of_columns_by_hand() -> None:
    columns = {
        "n": {"type": "integer", "min": 100, "max": 125, "step": 10},
        "t": {"type": "datetime", "min": "2020-01-01", "max": "2020-01-11", "resolution": "day"},
    }
    section = evaluate_codes(columns, {"n": [0, 0], "t": [0, 4]}, {"n": [2, 3], "t": [1, 5]})
    # n moves from 100 to 120 and 125, of a range of 25; t by one day of ten.
    assert section.details["fidelity"]["wasserstein_1d"] == pytest.approx({"n": 22.5 / 25, "t": 0.1})
    assert get_value(section, "wasserstein_1d") == pytest.approx(0.5)


def test_the_sliced_distance_of_a_moved_cloud() -> None:
    """Along a direction θ a cloud that moved by δ is |δ·θ| away; in the plane that is 2|δ|/π in the mean."""
    points = np.random.default_rng(0).random((500, 2))
    found = estimate_sliced_distance(points, points + np.array([0.3, 0.4]), np.random.default_rng(1))
    assert found[0] == pytest.approx(2 * 0.5 / math.pi, rel=0.1)
    assert found[1:].mean() == pytest.approx(found[0], rel=0.05)


def test_the_sliced_distance_is_the_mean_of_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    real, synthetic = rng.normal(0, 1, (120, 3)), rng.normal(0.5, 2, (360, 3))
    directions = np.random.default_rng(2).standard_normal((128, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    expected = [stats.wasserstein_distance(real @ each, synthetic @ each) for each in directions]
    assert estimate_sliced_distance(real, synthetic, np.random.default_rng(2))[0] == pytest.approx(np.mean(expected))


def test_one_numeric_column_has_no_sliced_distance() -> None:
    section = evaluate_codes({"n": {"type": "integer", "min": 0, "max": 9}}, {"n": [1, 2]}, {"n": [1, 2]})
    assert "fidelity.wasserstein_1d" in section.measures
    assert "fidelity.wasserstein_sliced" not in section.measures
