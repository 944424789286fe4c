"""Records from a model: the right ones, and never an impossible one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sundog.models.marginals.bucket_tree import Clique, eliminate
from sundog.models.marginals.inference import Floats, calibrate
from sundog.models.marginals.tree_sampling import _sort_stably, draw_records


def test_counts_are_those_of_the_model_up_to_rounding() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(12)).reshape(3, 4)
    drawn = draw_records(calibrate(eliminate((3, 4), [(0, 1)]), {(0, 1): np.log(p)}), 100_000, rng)
    counts = np.bincount(4 * drawn[0] + drawn[1], minlength=12)
    assert np.abs(counts - 100_000 * p.ravel()).max() < 6  # independent draws would be off by hundreds


def test_what_is_impossible_is_never_drawn() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        factors: dict[Clique, Floats] = {(0, 1): rng.normal(0, 5, (6, 5)), (1, 2): rng.normal(0, 5, (5, 7))}
        for factor in factors.values():
            factor[rng.random(factor.shape) < 0.4] = -math.inf
        model = calibrate(eliminate((6, 5, 7), factors), factors)
        if math.isinf(model.log_partition):
            continue
        drawn = draw_records(model, 20_000, rng)
        for (first, second), factor in factors.items():
            assert np.isfinite(factor[drawn[first], drawn[second]]).all()


def test_a_tail_of_impossible_values_is_not_reached_by_rounding() -> None:
    factor = np.full((1000, 3), -math.inf)
    factor[:, 0] = 0.0
    tree = eliminate((1000, 3), [(0, 1)])
    drawn = draw_records(calibrate(tree, {(0, 1): factor}), 1_000_000, np.random.default_rng(0))
    assert not drawn[1].any()


@pytest.mark.parametrize("size", [1, 7, 2**16, 2**16 + 1, 2**33])
def test_the_order_by_16_bits_is_the_stable_one(size: int) -> None:
    keys = np.random.default_rng(size).integers(0, size, 5000) // 3
    assert np.array_equal(_sort_stably(keys, size), np.argsort(keys, kind="stable"))


def test_separators_of_more_than_16_bits() -> None:
    rng = np.random.default_rng(0)
    sizes, clique = (300, 300, 2), (0, 1, 2)
    factor = rng.normal(0, 1, sizes)
    drawn = draw_records(calibrate(eliminate(sizes, [clique]), {clique: factor}), 50_000, rng)
    assert drawn.dtype == np.uint16
    p = np.exp(factor) / np.exp(factor).sum()
    for axis in range(3):
        expected = 50_000 * p.sum(axis=tuple({0, 1, 2} - {axis}))
        counts = np.bincount(drawn[axis], minlength=sizes[axis])
        assert np.abs(counts - expected).max() < 5 * np.sqrt(expected.max())
