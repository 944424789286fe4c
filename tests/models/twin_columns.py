"""A table whose columns say much about each other, and how far samples are from it."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from tests.contracts.material import schema_of

from sundog.data.records import Records

COLUMNS: dict[str, dict[str, Any]] = {
    "kind": {"type": "categorical", "values": ["a", "b", "c", "d"]},
    "twin": {"type": "categorical", "values": ["w", "x", "y", "z"]},
    "size": {"type": "integer", "min": 0, "max": 999, "bins": 8},
}
TABLE = schema_of(COLUMNS, records=4000)


@cache
def table(n: int = 4000) -> Records:
    """The twin says what the kind is nine times in ten, and the size is near 250 times the kind."""
    rng = np.random.default_rng(0)
    kind = rng.choice(4, n, p=[0.1, 0.2, 0.3, 0.4])
    twin = np.where(rng.random(n) < 0.9, kind, rng.integers(0, 4, n))
    size = (250 * kind + rng.integers(0, 250, n)).clip(0, 999)
    codes = {"kind": kind, "twin": twin, "size": size}
    return Records(TABLE, {name: codes[name].astype(TABLE.columns[name].dtype) for name in codes}, n)


def pair_distance(codes: dict[str, Any], other: dict[str, Any]) -> float:
    """The mean total variation over all pairs of columns."""
    found = []
    for a, b in combinations(COLUMNS, 2):
        tables = []
        for one in (codes, other):
            cells = {"kind": one["kind"], "twin": one["twin"], "size": one["size"].astype(int) // 125}
            counts = np.zeros((8, 8))
            np.add.at(counts, (cells[a], cells[b]), 1.0)
            tables.append(counts / counts.sum())
        found.append(0.5 * np.abs(tables[0] - tables[1]).sum())
    return float(np.mean(found))
