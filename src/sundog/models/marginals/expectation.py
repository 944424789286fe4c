"""How many records a model has in each cell, to compare it with counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sundog.models.marginals.bucket_tree import BucketTree, Clique
from sundog.models.marginals.counting import count_cliques
from sundog.models.marginals.inference import Factors, calibrate
from sundog.models.marginals.tree_sampling import draw_records

Integers = npt.NDArray[np.int64]

_OVERSAMPLING = 8  # records drawn for each record
_MOST_DRAWN = 400_000
_MOST_CELLS = 2**22  # that are compared at a time


@dataclass(frozen=True)
class Expectation:
    """Records drawn from a model, many for each that there is.

    Args:
        records: an array for each variable.
        sizes: how many values each variable has.
        total: the number of records that the model stands for.
    """

    records: Sequence[npt.NDArray[np.int64]]
    sizes: Sequence[int]
    total: int

    @classmethod
    def draw(cls, tree: BucketTree, factors: Sequence[Factors], total: int, rng: np.random.Generator) -> Expectation:
        """Draw from the model of a tree and its factors."""
        drawn = int(min(_OVERSAMPLING * total, _MOST_DRAWN)) + 1
        return cls(list(draw_records(calibrate(tree, *factors), drawn, rng)), tree.sizes, total)

    def count(self, cliques: Sequence[Clique]) -> dict[Clique, Integers]:
        """Return how many records the model has in each cell of some cliques, rounded."""
        share = self.total / len(self.records[0])
        counts = count_cliques(self.records, self.sizes, cliques)
        return {clique: np.rint(cells * share).astype(np.int64) for clique, cells in counts.items()}


def split_cliques(cliques: Sequence[Clique], sizes: Sequence[int]) -> Iterator[list[Clique]]:
    """Yield cliques a few at a time, so that their tables take little memory together.

    >>> [len(some) for some in split_cliques([(0, 1)] * 5, [1000, 2000])]
    [2, 2, 1]
    """
    some: list[Clique] = []
    cells = 0
    for clique in cliques:
        own = math.prod(sizes[v] for v in clique)
        if some and cells + own > _MOST_CELLS:
            yield some
            some, cells = [], 0
        some.append(clique)
        cells += own
    if some:
        yield some
