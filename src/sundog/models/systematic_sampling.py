"""Draws that are spread evenly (systematic sampling): each by itself has its probability, together they have no luck.

Of a thousand fair coins about five hundred show heads, give or take sixteen. Records that were drawn coin by coin have
that error in every count, on top of whatever a model has learned. It can be left out: here five hundred do, and which
ones is left to chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def even_cells(p: Floats, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """So many cells of one distribution, or at each of several positions (rows of p) of its own, in random order.

    >>> sorted(even_cells(np.array([0.2, 0.5, 0.3]), 10, np.random.default_rng(0)).tolist())
    [0, 0, 1, 1, 1, 1, 1, 2, 2, 2]
    """
    rows = p.reshape(-1, p.shape[-1])
    drawn = np.empty((len(rows), n), np.int64)
    for cells, row in zip(drawn, rows, strict=True):
        shares = row.cumsum()
        ends = np.floor(shares / shares[-1] * n + rng.random()).astype(np.int64)
        cells[:] = np.repeat(np.arange(len(row)), np.diff(np.minimum(ends, n), prepend=0))
        rng.shuffle(cells)
    return drawn.T.reshape(n, *p.shape[:-1])


def even_points(n: int, rng: np.random.Generator) -> Floats:
    """So many points between 0 and 1, one in each n-th of that, in random order.

    >>> sorted((4 * even_points(4, np.random.default_rng(0))).astype(int).tolist())
    [0, 1, 2, 3]
    """
    points: Floats = (rng.permutation(n) + rng.random(n)) / max(n, 1)
    return points


def evenly_held(p: npt.NDArray[Any], rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Each item in each row with its probability, and in as many rows as the probabilities of all rows add up to.

    The probabilities of an item lie end to end, and one point in every unit of length draws the row in which it falls.
    Each item has an order of the rows, and a first point, of its own: so the items of a row know nothing of each other.

    >>> evenly_held(np.full((8, 2), 0.25), np.random.default_rng(0)).sum(axis=0).tolist()
    [2, 2]
    """
    held = np.empty(p.shape[::-1], bool)
    for row, probabilities in zip(held, p.T, strict=True):
        order = rng.permutation(len(p))
        ends = np.floor(probabilities[order].cumsum(dtype=np.float64) + rng.random())
        row[order] = np.diff(ends, prepend=0.0) > 0
    return held.T
