"""Exact inference against sums over all combinations."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from sundog.models.marginals.bucket_tree import BucketTree, Clique, GrowingTree, TreeTooLargeError, eliminate
from sundog.models.marginals.inference import CliqueLayout, Floats, calibrate, compute_marginals

GRAPHS = range(100)


def random_graph(seed: int) -> tuple[tuple[int, ...], dict[Clique, Floats]]:
    """Return the sizes of some variables and factors over random cliques, a tenth of the cells impossible."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(k) for k in rng.integers(1, 5, rng.integers(1, 7)))
    factors = {}
    for _ in range(rng.integers(0, 9)):
        count = int(rng.integers(1, min(3, len(sizes)) + 1))
        clique = tuple(sorted(int(v) for v in rng.choice(len(sizes), count, replace=False)))
        factor = rng.normal(0, 3, [sizes[v] for v in clique])
        if seed % 2:
            factor[rng.random(factor.shape) < 0.1] = -math.inf
        factors[clique] = factor
    return sizes, factors


def sum_directly(sizes: tuple[int, ...], factors: dict[Clique, Floats]) -> Floats:
    """Return exp(Σ factors) for every combination of values."""
    weights = np.zeros(sizes)
    for values in itertools.product(*map(range, sizes)):
        weights[values] = sum(factor[tuple(values[v] for v in clique)] for clique, factor in factors.items())
    return np.exp(weights)


@pytest.mark.parametrize("seed", GRAPHS)
def test_partition_function_and_marginals_equal_direct_sums(seed: int) -> None:
    sizes, factors = random_graph(seed)
    tree = eliminate(sizes, factors)
    model = calibrate(tree, factors)
    weights = sum_directly(sizes, factors)
    if not weights.any():
        assert model.log_partition == -math.inf
        return
    assert model.log_partition == pytest.approx(math.log(weights.sum()), abs=1e-10)
    layout = CliqueLayout(tree, factors)
    for clique, found in layout.split(compute_marginals(model, layout)).items():
        others = tuple(v for v in range(len(sizes)) if v not in clique)
        np.testing.assert_allclose(found, weights.sum(axis=others) / weights.sum(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", GRAPHS)
def test_a_tree_that_grows_has_a_bucket_for_every_clique_and_counts_its_cells(seed: int) -> None:
    sizes, factors = random_graph(seed)
    growing = GrowingTree(sizes, [], limit=100)
    added: list[Clique] = []
    for clique in factors:
        fits = growing.add(clique)
        assert fits or eliminate(sizes, [*added, clique]).cells > 100
        added += [clique] * fits
    assert growing.tree.cells == growing.cells
    assert growing.tree == eliminate(sizes, added, growing.order)
    assert growing.cells <= 100 or not added


def test_a_tree_keeps_the_order_that_has_room() -> None:
    """A greedy order found anew may take more cells than the limit; the order in which pairs were added never does."""
    exceeded = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sizes = tuple(int(k) for k in rng.integers(2, 9, 10))
        growing = GrowingTree(sizes, [], limit=1500)
        for clique in rng.permutation(list(itertools.combinations(range(10), 2))).tolist():
            growing.add(tuple(clique))
        assert growing.tree.cells <= 1500
        exceeded += eliminate(sizes, growing.cliques).cells > 1500
    assert exceeded


def test_few_orders_are_sought_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def count(*given: Any, **rest: Any) -> BucketTree:
        calls.append(1)
        return eliminate(*given, **rest)

    monkeypatch.setattr("sundog.models.marginals.bucket_tree.eliminate", count)
    growing = GrowingTree([5] * 40, [], limit=400)
    for clique in itertools.combinations(range(40), 2):
        growing.add(clique)
    assert len(calls) < 100


def test_a_tree_above_its_limit_is_refused() -> None:
    with pytest.raises(TreeTooLargeError):
        eliminate([10] * 4, [(0, 1, 2, 3)], limit=1000)
