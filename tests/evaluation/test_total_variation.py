"""Shares and total variation: against sums by hand, and what an empty table gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.total_variation import compute_marginal_distance, compute_total_variation, divide, normalise


def test_shares_of_nothing_are_undefined_unless_said_otherwise() -> None:
    counts = np.array([[3, 1, 0], [0, 0, 0]])
    assert np.array_equal(normalise(counts), [[0.75, 0.25, 0.0], [np.nan] * 3], equal_nan=True)
    assert normalise(counts, empty=0.0).tolist() == [[0.75, 0.25, 0.0], [0.0] * 3]
    assert np.isnan(divide(np.array([0]), np.array([0])))


def test_the_distance_is_that_of_each_row() -> None:
    p, q = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])
    assert compute_total_variation(p, q).tolist() == [0.0, 1.0]
    assert float(compute_total_variation(p[0], q[1])) == 0.5


def test_joint_marginals_are_compared_cell_by_cell() -> None:
    columns = {name: {"type": "categorical", "values": ["a", "b", "c"]} for name in ("x", "y")}
    schema = Schema.from_dict({"columns": columns})
    rng = np.random.default_rng(0)
    real, synthetic = (Records(schema, {name: rng.integers(0, 3, 40) for name in columns}, 40) for _ in range(2))
    expected = 0.0
    for cell in itertools.product(range(3), repeat=2):
        shares = [np.mean((each.codes["x"] == cell[0]) & (each.codes["y"] == cell[1])) for each in (real, synthetic)]
        expected += abs(shares[0] - shares[1]) / 2
    assert compute_marginal_distance(real, synthetic, "x", "y") == pytest.approx(expected)
    assert compute_marginal_distance(real, synthetic, "x") <= expected
    assert compute_marginal_distance(real, real, "x", "y") == 0
