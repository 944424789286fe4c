"""Counting the cells of marginals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.models.marginals.bucket_tree import Clique

Integers = npt.NDArray[np.int64]

_BLOCK = 2**22  # values of all columns at a time
_KEY = np.uint32  # holds every number of a cell: a clique that large could not be counted


def count_cliques(
    columns: Sequence[npt.NDArray[Any]], sizes: Sequence[int], cliques: Iterable[Clique]
) -> dict[Clique, Integers]:
    """Return how many records are in each cell of each clique. Counts of several fragments of the records add up.

    >>> count_cliques([np.array([0, 1, 1]), np.array([0, 0, 1])], [2, 2], [(0, 1)])[0, 1].tolist()
    [[1, 0], [1, 1]]

    Args:
        columns: the value of each record, one array a variable.
        sizes: how many values each variable has.
        cliques: the variables of each marginal.
    """
    counts = {clique: np.zeros(math.prod(sizes[v] for v in clique), np.int64) for clique in cliques}
    rows = max(1, _BLOCK // max(1, len(columns)))
    for start in range(0, len(columns[0]) if counts else 0, rows):
        block = [column[start : start + rows].astype(_KEY) for column in columns]
        for clique, cells in counts.items():
            key = block[clique[0]]
            for variable in clique[1:]:
                key = key * _KEY(sizes[variable]) + block[variable]
            np.add(cells, np.bincount(key, minlength=len(cells)), out=cells)
    return {clique: cells.reshape([sizes[v] for v in clique]) for clique, cells in counts.items()}
