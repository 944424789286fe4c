"""Records from a model: the right ones, and never an impossible one."""

from __future__ import annotations

import math

import numpy as np

from sundog.models.marginals.bucket_tree import Clique, eliminate
from sundog.models.marginals.inference import Floats, calibrate
from sundog.models.marginals.tree_sampling import draw_records


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
