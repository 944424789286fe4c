"""Exact inference in a log-linear model, on a bucket tree of dense tables.

The model is p(x) ∝ exp(Σ θ_C(x_C)) over cliques C. Going up the tree, each bucket is summed over its own variable: this
gives the logarithm of the partition function, and p(variable | separator) in each bucket, from which records can be
drawn. Going down, these conditionals are multiplied to the marginals of all cliques, the gradient of the former.
A potential of −∞ makes a combination impossible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from sundog.models.marginals.bucket_tree import BucketTree, Clique

Floats = npt.NDArray[np.float64]
Factors = Mapping[Clique, Floats]  # logarithms, an axis for each variable of the clique


@dataclass(frozen=True)
class Calibrated:
    """A model whose buckets are summed up.

    Args:
        tree: of the buckets.
        conditionals: p(variable | separator) by variable; zero where the separator is impossible.
        log_partition: the logarithm of the sum over all combinations; −∞ if none is possible.
    """

    tree: BucketTree
    conditionals: tuple[Floats, ...]
    log_partition: float


class CliqueLayout:
    """Where the cells of each clique are in one flat vector, and in which bucket each clique is.

    Args:
        tree: has a bucket for every clique.
        cliques: whose potentials and marginals are in the vector, in this order.
    """

    def __init__(self, tree: BucketTree, cliques: Iterable[Clique]) -> None:
        self.tree = tree
        self.cliques = tuple(cliques)
        self.shapes = {clique: tuple(tree.sizes[v] for v in clique) for clique in self.cliques}
        bounds = [0, *accumulate(math.prod(shape) for shape in self.shapes.values())]
        self.slices = {clique: slice(*ends) for clique, ends in zip(self.cliques, pairwise(bounds), strict=True)}
        self.size = bounds[-1]

    def split(self, vector: Floats) -> dict[Clique, Floats]:
        """Return the part of each clique, as views in its shape."""
        return {clique: vector[self.slices[clique]].reshape(self.shapes[clique]) for clique in self.cliques}

    def join(self, factors: Factors) -> Floats:
        """Return the vector of the cliques' factors; zero where there is none."""
        vector = np.zeros(self.size)
        for clique, part in self.split(vector).items():
            if clique in factors:
                part[...] = factors[clique]
        return vector


def merge_factors(*factors: Factors) -> dict[Clique, Floats]:
    """Return the product of factors: the sum of those, as logarithms, that are over the same clique.

    >>> merge_factors({(0,): np.zeros(2)}, {(0,): np.ones(2), (1,): np.ones(2)}).keys()
    dict_keys([(0,), (1,)])
    """
    found: dict[Clique, Floats] = {}
    for given in factors:
        for clique, factor in given.items():
            found[clique] = found[clique] + factor if clique in found else factor
    return found


def calibrate(tree: BucketTree, *factors: Factors) -> Calibrated:
    """Sum out every variable, in the order of the tree.

    >>> from sundog.models.marginals.bucket_tree import eliminate
    >>> tree = eliminate((2, 2), [(0, 1)])
    >>> round(math.exp(calibrate(tree, {(0, 1): np.log([[1.0, 2.0], [3.0, 4.0]])}).log_partition), 12)
    10.0
    """
    at_home: list[list[tuple[Clique, Floats]]] = [[] for _ in tree.sizes]
    for given in factors:
        for clique, factor in given.items():
            at_home[tree.find_home(clique)].append((clique, factor))
    messages: dict[int, Floats] = {}
    conditionals: list[Floats] = [np.empty(0)] * len(tree.sizes)
    log_partition = 0.0
    for variable in tree.order:
        received = [(tree.separators[child], messages.pop(child)) for child in tree.children[variable]]
        bucket = _add_factors([*at_home[variable], *received], tree.scope(variable), tree.sizes)
        message = _normalise(bucket)
        conditionals[variable] = bucket
        if tree.parent(variable) is None:
            log_partition += float(message)
        else:
            messages[variable] = message
    return Calibrated(tree, tuple(conditionals), log_partition)


def compute_marginals(model: Calibrated, layout: CliqueLayout) -> Floats:
    """Return the marginals of the layout's cliques, as one vector."""
    tree = model.tree
    vector = np.empty(layout.size)
    parts = layout.split(vector)
    at_home: list[list[Clique]] = [[] for _ in tree.sizes]
    for clique in layout.cliques:
        at_home[tree.find_home(clique)].append(clique)
    beliefs: list[Floats] = [np.empty(0)] * len(tree.sizes)
    for variable in reversed(tree.order):
        belief, parent = model.conditionals[variable], tree.parent(variable)
        if parent is not None:
            separator = tree.separators[variable]
            belief = belief * _sum_onto(beliefs[parent], tree.scope(parent), separator)
        beliefs[variable] = belief
        for clique, marginal in _sum_onto_each(belief, tree.scope(variable), at_home[variable]):
            parts[clique][...] = marginal
    return vector


def _add_factors(factors: Sequence[tuple[Clique, Floats]], scope: tuple[int, ...], sizes: Sequence[int]) -> Floats:
    """Return the sum of factors over a scope, in an array of its own.

    Halves are added up over fewer axes first, so that the whole scope is passed over once and not for each factor.
    """
    table = np.empty([sizes[axis] for axis in scope])
    if len(factors) < 2:
        table[...] = _align(factors[0][1], factors[0][0], scope) if factors else 0.0
        return table
    halves = []
    for half in (factors[: len(factors) // 2], factors[len(factors) // 2 :]):
        axes = tuple(axis for axis in scope if any(axis in clique for clique, _ in half))
        added = _align(half[0][1], half[0][0], axes) if len(half) == 1 else _add_factors(half, axes, sizes)
        halves.append(_align(added, axes, scope))
    return np.add(halves[0], halves[1], out=table)


def _sum_onto_each(table: Floats, axes: tuple[int, ...], cliques: Sequence[Clique]) -> Iterator[tuple[Clique, Floats]]:
    """Yield the sums of a table onto each clique; like `_add_factors`, by halves."""
    if len(cliques) == 1:
        yield cliques[0], _sum_onto(table, axes, cliques[0])
    elif cliques:
        for half in (cliques[: len(cliques) // 2], cliques[len(cliques) // 2 :]):
            kept = tuple(axis for axis in axes if any(axis in clique for clique in half))
            yield from _sum_onto_each(_sum_onto(table, axes, kept), kept, half)


def _normalise(bucket: Floats) -> Floats:
    """Turn logarithms into p(first axis | others), in place, and return the logarithms of what they summed to."""
    top = bucket.max(axis=0)
    top = np.where(np.isneginf(top), 0.0, top)  # all combinations are impossible: their sum is 0, and not NaN
    bucket -= top
    np.exp(bucket, out=bucket)
    mass = bucket.sum(axis=0)
    bucket /= np.where(mass > 0, mass, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mass) + top)


def _align(factor: Floats, axes: tuple[int, ...], scope: tuple[int, ...]) -> Floats:
    """Return a view of a factor that broadcasts over a scope."""
    present = [axis for axis in scope if axis in axes]
    moved = factor.transpose([axes.index(axis) for axis in present])
    return moved.reshape([moved.shape[present.index(axis)] if axis in present else 1 for axis in scope])


def _sum_onto(table: Floats, axes: tuple[int, ...], kept: tuple[int, ...]) -> Floats:
    """Return the sums of a table over all axes that are not kept, in the order of those."""
    summed = table.sum(axis=tuple(place for place, axis in enumerate(axes) if axis not in kept))
    left = [axis for axis in axes if axis in kept]
    return np.asarray(summed).transpose([left.index(axis) for axis in kept])
