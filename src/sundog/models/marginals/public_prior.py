"""A model of public records: where the model of private ones starts from, and what it stays near without evidence.

Its potentials are fixed factors of the private model, p(x) ∝ exp(θ_public + θ), so that pairs which nobody measured
are related as in the public records. Pairs that differ score high, and are measured. Nothing here sees a private
record, and nothing has noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.models.marginals.bucket_tree import Clique, GrowingTree
from sundog.models.marginals.clique_selection import choose_by_scores, expect_chance, score_cliques
from sundog.models.marginals.counting import count_cliques
from sundog.models.marginals.estimation import PAIR_PRIOR, Measurement, estimate_potentials
from sundog.models.marginals.expectation import Expectation
from sundog.models.marginals.inference import Factors, Floats

_PAIRS = (1.5, 2.5)  # in each round, for each column
_SHARE = 0.25  # of the cells that the whole model may take
_CAUTION = 2.0  # a distance by chance varies by about 0.6 √n
_VARIANCE = np.array(1 / PAIR_PRIOR)  # so that the potentials, of exact counts, have a prior of variance one
_ITERATIONS, _TOLERANCE = 300, 0.05

Integers = npt.NDArray[np.int64]


def fit_public_prior(
    values: Sequence[npt.NDArray[Any]],
    sizes: Sequence[int],
    *,
    rules: Factors,
    cells: int,
    rng: np.random.Generator,
) -> dict[Clique, Floats]:
    """Return the potentials of public records, over columns and the pairs that are most related.

    Args:
        values: of each column, one for each public record.
        sizes: how many values each column has.
        rules: how often records of a cell satisfy the rules, as logarithms: −∞ where none can.
        cells: that the tree of the whole model may take.
        rng: for records drawn from the model.
    """
    total = len(values[0])
    pairs: list[Clique] = list(combinations(range(len(sizes)), 2))
    chosen: list[Clique] = [(place,) for place in range(len(sizes))]
    counts = count_cliques(values, sizes, [*chosen, *pairs])
    growing = GrowingTree(sizes, rules, _SHARE * cells)
    potentials = _estimate(growing, {clique: counts[clique] for clique in chosen}, total, rules, {})
    for per_column in _PAIRS:
        left = [pair for pair in pairs if pair not in potentials]
        drawn = Expectation.draw(growing.tree, [potentials, rules], total, rng)
        expected = drawn.count(left)
        distances = score_cliques(counts, expected, cap=1).tolist()
        gains = {pair: far - expect_chance(expected[pair]) for pair, far in zip(left, distances, strict=True)}
        most = math.ceil(per_column * len(sizes))
        chosen += choose_by_scores(gains, growing, most, least=_CAUTION * math.sqrt(total))
        potentials = _estimate(growing, {clique: counts[clique] for clique in chosen}, total, rules, potentials)
    return potentials


def _estimate(
    growing: GrowingTree, counts: Mapping[Clique, Integers], total: int, rules: Factors, start: Factors
) -> dict[Clique, Floats]:
    return estimate_potentials(
        growing.tree,
        {clique: Measurement(cells.astype(np.float64), _VARIANCE) for clique, cells in counts.items()},
        total,
        fixed=rules,
        start=start,
        iterations=_ITERATIONS,
        tolerance=_TOLERANCE,
    )
