"""Shares, and the total variation distance of two distributions over the same cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.bins import make_bins
from sundog.data.records import Records


def divide(part: NDArray[Any], whole: NDArray[Any], *, empty: float = math.nan) -> NDArray[np.float64]:
    """Return part / whole, and `empty` where the whole is zero: by default NaN, as a share of nothing is undefined.

    >>> divide(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, nan]
    """
    return np.asarray(np.where(whole > 0, part / np.where(whole > 0, whole, 1), empty))


def normalise(counts: NDArray[Any], *, empty: float = math.nan) -> NDArray[np.float64]:
    """Return counts over their sum along the last axis; every share is `empty` where that sum is zero.

    >>> normalise(np.array([[1, 3], [0, 0]])).tolist()
    [[0.25, 0.75], [nan, nan]]
    """
    return divide(counts, counts.sum(axis=-1, keepdims=True), empty=empty)


def compute_total_variation(p: NDArray[Any], q: NDArray[Any]) -> Any:
    """Return half the sum of the absolute differences of shares along the last axis: 0 if equal, 1 if disjoint.

    >>> float(compute_total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.75])))
    0.25
    """
    return np.abs(p - q).sum(axis=-1) / 2


def compute_marginal(records: Records, *names: str) -> NDArray[np.float64]:
    """Return the share of the records in each bin of a column, or in each cell of several columns.

    >>> from sundog.data.schema import Schema
    >>> schema = Schema.from_dict({"columns": {"sex": {"type": "categorical", "values": ["f", "m"]}}})
    >>> compute_marginal(Records(schema, {"sex": np.array([0, 1, 1, 1])}, 4), "sex").tolist()
    [0.25, 0.75]
    """
    cells, count = np.zeros(len(records), np.int64), 1
    for name in names:
        bins = make_bins(records.schema.columns[name])
        cells = cells * bins.count + bins.to_bins(records.codes[name])
        count *= bins.count
    return normalise(np.bincount(cells, minlength=count))


def compute_marginal_distance(real: Records, synthetic: Records, *names: str) -> float:
    """Return the total variation distance of the joint marginal of some columns."""
    return float(compute_total_variation(compute_marginal(real, *names), compute_marginal(synthetic, *names)))
