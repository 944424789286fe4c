"""Systematic sampling: each draw has its probability, and the counts of all draws have almost no variance.

Of a thousand independent fair coins about five hundred show heads, with a standard deviation of sixteen. Records that
are drawn independently have that error in every count, on top of the error of the model. Here exactly five hundred
coins show heads, and which ones they are is random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def draw_cells(p: Floats, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw n cells of one distribution, or of one for each of several positions (rows of p), in random order.

    >>> sorted(draw_cells(np.array([0.2, 0.5, 0.3]), 10, np.random.default_rng(0)).tolist())
    [0, 0, 1, 1, 1, 1, 1, 2, 2, 2]
    """
    rows = p.reshape(-1, p.shape[-1])
    drawn = np.empty((len(rows), n), np.int64)
    for cells, row in zip(drawn, rows, strict=True):
        shares = row.cumsum()
        ends = np.minimum(np.floor(shares / shares[-1] * n + rng.random()).astype(np.int64), n)
        ends[1:] -= ends[:-1].copy()  # how many are drawn of each cell
        cells[:] = np.repeat(np.arange(len(row)), ends)
        rng.shuffle(cells)
    return drawn.T.reshape(n, *p.shape[:-1])


def draw_points(n: int, rng: np.random.Generator) -> Floats:
    """Draw n points between 0 and 1, one in each n-th of that interval, in random order.

    >>> sorted((4 * draw_points(4, np.random.default_rng(0))).astype(int).tolist())
    [0, 1, 2, 3]
    """
    points: Floats = (rng.permutation(n) + rng.random(n)) / max(n, 1)
    return points


def draw_items(p: npt.NDArray[Any], rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Draw the items of each row by their probabilities; each item is in as many rows as its probabilities sum to.

    The probabilities of an item lie end to end, and one point in every unit of length draws the row in which it falls.
    Each item has its own order of the rows and its own first point, so the items of a row are independent.

    >>> draw_items(np.full((8, 2), 0.25), np.random.default_rng(0)).sum(axis=0).tolist()
    [2, 2]
    """
    held = np.empty(p.shape[::-1], bool)
    for row, probabilities in zip(held, p.T, strict=True):
        order = rng.permutation(len(p))
        ends = np.floor(probabilities[order].cumsum(dtype=np.float64) + rng.random())
        row[order] = np.diff(ends, prepend=0.0) > 0
    return held.T
