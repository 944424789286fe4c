"""How many records a model has in each cell, to compare it with counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sundog.models.marginals.bucket_tree import BucketTree, Clique
from sundog.models.marginals.counting import count_cliques
from sundog.models.marginals.inference import Factors, calibrate
from sundog.models.marginals.tree_sampling import draw_records

Integers = npt.NDArray[np.int64]

_OVERSAMPLING = 8  # records drawn for each record
_MOST_DRAWN = 400_000


def expect_counts(
    tree: BucketTree, factors: Sequence[Factors], total: int, cliques: Sequence[Clique], rng: np.random.Generator
) -> dict[Clique, Integers]:
    """Return how many of `total` records the model has in each cell, rounded, by drawing records from it.

    Args:
        tree: of the model.
        factors: of the model.
        total: the number of records.
        cliques: which need not be in the tree.
        rng: for the records.
    """
    drawn = int(min(_OVERSAMPLING * total, _MOST_DRAWN)) + 1
    records = draw_records(calibrate(tree, *factors), drawn, rng)
    counts = count_cliques(list(records), tree.sizes, cliques)
    return {clique: np.rint(cells * (total / drawn)).astype(np.int64) for clique, cells in counts.items()}
