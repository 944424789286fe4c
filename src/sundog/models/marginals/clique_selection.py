"""Which marginals to measure: those that the model explains worst, beyond what noise would leave unexplained.

The score of a clique is the L1 distance between its counts and the model's, which a record changes by at
most one.

The first round chooses a forest (Chow and Liu 1968): a pair is left out if chosen pairs connect its columns already.
What those explain of it shows in the scores of the next round only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sundog.data.schema import Schema
from sundog.models.marginals.bucket_tree import Clique, GrowingTree
from sundog.privacy.mechanisms.selection import draw_by_score
from sundog.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


WEIGHT = 2.0  # of the target column's pairs, beside 1 for others


def bound_weight(schema: Schema) -> float:
    """Return the largest weight of a pair: how much a record can change its gain."""
    return 1.0 if schema.target is None else WEIGHT


def score_cliques(counts: Mapping[Clique, Integers], expected: Mapping[Clique, Integers], *, cap: int) -> Integers:
    """Return the L1 distances in units of `cap` records, so that a unit with that many changes each by at most one."""
    distances = [int(np.abs(counts[clique] - cells).sum()) for clique, cells in expected.items()]
    return np.array(distances, np.int64) // cap


def expect_noise(expected: Integers, deviation: float | Floats) -> float:
    """Return the L1 distance that a measurement with this noise, in all cells or in each, would leave.

    In a cell that is expected to hold many records it is that of the noise. In one that is expected to hold few it is
    less: there the estimate stays near what was expected.
    """
    kept = np.sqrt(expected / (expected + deviation**2))
    return float(math.sqrt(2 / math.pi) * (deviation * kept).sum())


def expect_chance(expected: Integers) -> float:
    """Return the L1 distance between the counts of records and what is expected of them, by chance alone."""
    return float(math.sqrt(2 / math.pi) * np.sqrt(expected).sum())


class Forest:
    """Columns that the pairs chosen so far connect.

    >>> forest = Forest()
    >>> forest.join((0, 1)), forest.join((1, 2)), forest.has_room((0, 2)), forest.has_room((2, 3))
    (None, None, False, True)
    """

    def __init__(self) -> None:
        self._components: list[set[int]] = []

    def has_room(self, clique: Clique) -> bool:
        """Return whether a clique connects columns that are not connected yet."""
        return not any(component.issuperset(clique) for component in self._components)

    def join(self, clique: Clique) -> None:
        """Connect the columns of a clique."""
        joined = [component for component in self._components if component & set(clique)]
        apart = [component for component in self._components if not component & set(clique)]
        self._components = [*apart, set(clique).union(*joined)]


def choose_by_scores(
    gains: Mapping[Clique, float], tree: GrowingTree, most: int, *, least: float, forest: Forest | None = None
) -> list[Clique]:
    """Return the cliques with the largest gains that the tree has room for, and add them to it.

    Args:
        gains: computed from noisy scores.
        tree: of what was measured before.
        most: how many to choose at the most.
        least: the smallest gain that is more than noise.
        forest: that the chosen cliques form, if they have to.
    """
    chosen: list[Clique] = []
    for clique in sorted(gains, key=lambda each: -gains[each]):
        if len(chosen) == most or gains[clique] <= least:
            break
        if (forest is None or forest.has_room(clique)) and tree.add(clique):
            chosen.append(clique)
            if forest is not None:
                forest.join(clique)
    return chosen


def choose_by_exponential_mechanism(
    gains: Mapping[Clique, float],
    tree: GrowingTree,
    most: int,
    *,
    scale: float,
    noise: NoiseSource,
    forest: Forest | None = None,
) -> list[Clique]:
    """Return cliques that were drawn one after the other, each with probability ∝ exp(scale · gain).

    The caller has paid for as many exponential mechanisms of ε = 2 · scale · (the most that a unit changes a gain by).
    What does not fit is left out beforehand: that follows from what was measured and chosen before.

    Args:
        gains: computed from exact scores.
        tree: of what was measured before.
        most: how many to choose at the most.
        scale: of the gains.
        noise: the source of randomness.
        forest: that the chosen cliques form, if they have to.
    """
    left = [clique for clique in gains if tree.has_room(clique)]
    chosen: list[Clique] = []
    for _ in range(most):
        if not left:
            break
        logits = scale * np.array([gains[clique] for clique in left])
        clique = left.pop(draw_by_score(logits, noise))
        if tree.add(clique):
            chosen.append(clique)
            if forest is not None:
                forest.join(clique)
                left = [each for each in left if forest.has_room(each)]
    return chosen


def weigh_size(cells: int) -> float:
    """Return how precisely to measure a marginal, relative to others, for the least total variation in all.

    >>> weigh_size(64)
    16.0
    """
    return float(np.cbrt(cells) ** 2)


def divide_units(weights: Sequence[float], units: int) -> list[int]:
    """Return how often to measure each of several marginals: in proportion to its weight, each at least once.

    >>> divide_units([4.0, 16.0], 10)
    [3, 7]
    """
    shares = np.array(weights, np.float64)
    exact = 1 + (units - len(weights)) * shares / shares.sum()
    found = np.floor(exact).astype(int)
    for place in np.argsort(found - exact)[: units - int(found.sum())]:
        found[place] += 1
    return [int(count) for count in found]
