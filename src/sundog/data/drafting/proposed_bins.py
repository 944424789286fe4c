"""Propose special values and edges for a drafted column of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sundog.data.columns.ordered import SMALL_LATTICE

Array = np.ndarray[Any, Any]

_OFTEN = 0.05  # the share of rows from which a value is frequent
_TIMES = 4  # a special value is this many times as frequent as the median one
_MOST = 10  # special values at most, and distinct values at least
_EDGES = 16  # intervals with about equal numbers of rows


def propose_special(values: Array, counts: Array) -> list[Any]:
    """Return values that are far more frequent than the others: codes such as −1, 0 or 99999.

    >>> propose_special(np.arange(-1, 500), np.array([900, *[2] * 500]))
    [-1]
    """
    often = (counts >= _OFTEN * counts.sum()) & (counts >= _TIMES * np.median(counts))
    if len(values) < _MOST or often.sum() > _MOST:
        return []
    return [value.item() for value in values[often]]


def propose_edges(values: Array, counts: Array, special: list[Any]) -> list[Any]:
    """Return quantiles of the other values, rounded so that no edge is a person's value.

    >>> propose_edges(np.arange(1600), np.ones(1600), [])[:4]
    [100, 200, 300, 400]
    """
    rest = ~np.isin(values, special)
    values, counts = values[rest], counts[rest]
    if len(values) < _EDGES:
        return []
    place = np.searchsorted(np.cumsum(counts), np.arange(1, _EDGES) / _EDGES * counts.sum())
    cuts = values[np.minimum(place, len(values) - 1)]
    spread = float(np.quantile(cuts, 0.75) - np.quantile(cuts, 0.25)) or float(values.max() - values.min()) or 1.0
    digits = -math.floor(math.log10(spread / _EDGES * 2))
    rounded = sorted({round(float(cut), digits) + 0.0 for cut in cuts})  # −0.0 is 0.0
    inside = [edge for edge in rounded if values.min() < edge <= values.max()]
    return [int(edge) for edge in inside] if digits <= 0 and values.dtype.kind in "iu" else inside


def is_wide(declaration: dict[str, Any]) -> bool:
    """Return whether the declared range has more values than can each have a bin of its own."""
    step = declaration.get("resolution", 1)
    return bool((declaration["max"] - declaration["min"]) / step >= SMALL_LATTICE)
