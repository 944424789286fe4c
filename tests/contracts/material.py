"""Schemas of every kind of column, and random records that fit them: what the contract suites feed to models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from sundog.data.columns import SetColumn
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.release.release import Release

Declaration = dict[str, Any]

SCALARS: dict[str, Declaration] = {
    "categorical": {"type": "categorical", "values": ["red", "green", "blue"], "nullable": True},
    "whole_categories": {"type": "categorical", "values": [3, 1, 2]},
    "ordinal": {"type": "ordinal", "values": ["none", "some", "much", "all"]},
    "boolean": {"type": "boolean", "nullable": True},
    "integer": {"type": "integer", "min": -5, "max": 5, "nullable": True},
    "wide_integer": {"type": "integer", "min": 0, "max": 10**12, "bins": 7},
    "stepped_integer": {"type": "integer", "min": 0, "max": 1000, "step": 7},
    "edged_integer": {"type": "integer", "min": 0, "max": 99_999, "edges": [0, 1, 1000, 50_000]},
    "continuous": {"type": "continuous", "min": -1.5, "max": 2.5, "resolution": 0.01, "nullable": True},
    "day": {"type": "datetime", "min": "2020-01-01", "max": "2021-12-31", "resolution": "day"},
    "second": {"type": "datetime", "min": "2020-01-01", "max": "2020-01-31", "bins": 5, "nullable": True},
    "local_hour": {
        "type": "datetime",
        "min": "2020-03-01",
        "max": "2020-11-01",
        "resolution": "hour",
        "timezone": "Europe/Berlin",
    },
}
ARRAYS: dict[str, Declaration] = {
    "image": {"type": "image", "shape": [2, 3], "levels": 4},
    "colour_image": {"type": "image", "shape": [2, 2, 3]},
    "series": {"type": "series", "length": 3, "min": 0, "max": 10, "resolution": 0.5, "nullable": True},
    "numbered_set": {"type": "set", "universe": 6, "max_size": 2},
    "named_set": {"type": "set", "universe": ["bread", "milk", "tea"], "max_size": 3},
}
KINDS: dict[str, dict[str, Declaration]] = {
    **{name: {name: column} for name, column in {**SCALARS, **ARRAYS}.items()},
    "all_scalars": SCALARS,
    "labelled_images": {"image": ARRAYS["image"], "label": {"type": "integer", "min": 0, "max": 9}},
    "mix": {**{name: SCALARS[name] for name in ("categorical", "integer", "day")}, **ARRAYS},
}


def schema_of(columns: dict[str, Declaration], **rest: Any) -> Schema:
    """The schema that declares these columns."""
    return Schema.from_dict({**rest, "columns": columns})


def decode_records(records: Records) -> dict[str, Any]:
    """The values of records, by column."""
    return {name: column.decode(records.codes[name]) for name, column in records.schema.columns.items()}


def random_records(schema: Schema, n: int, seed: int = 0) -> Records:
    """Records drawn uniformly from the declared domain, nulls included."""
    rng = np.random.default_rng(seed)
    return Records(schema, {name: _draw_codes(column, n, rng) for name, column in schema.columns.items()}, n)


def constant_records(schema: Schema, n: int, *, last: bool = False) -> Records:
    """The same record n times: the first code of every column, or the last one (null, where there can be nulls)."""
    codes: dict[str, Any] = {}
    for name, column in schema.columns.items():
        if isinstance(column, SetColumn):
            full = np.zeros((n, *column.shape), np.uint8)
            full[:, : column.max_size] = last
            codes[name] = sparse.csr_array(full)
        else:
            codes[name] = np.full((n, *column.shape), column.size - 1 if last else 0, column.dtype)
    return Records(schema, codes, n)


def join_records(first: Records, second: Records) -> Records:
    """The records of both."""
    codes = {
        name: sparse.vstack([first.codes[name], second.codes[name]], format="csr")
        if isinstance(column, SetColumn)
        else np.concatenate([first.codes[name], second.codes[name]])
        for name, column in first.schema.columns.items()
    }
    return Records(first.schema, codes, len(first) + len(second))


def to_lists(codes: Any) -> Any:
    """Codes or decoded values as nested lists, sparse or not, so that they can be compared."""
    if hasattr(codes, "toarray"):
        codes = codes.toarray()
    if isinstance(codes, pa.Array | pa.ChunkedArray):
        return codes.to_pylist()
    if isinstance(codes, np.ndarray) and codes.dtype.kind == "f":
        return [None if math.isnan(value) else value for value in codes.ravel().tolist()] + [codes.shape]
    return codes.tolist()


def arrays_of(release: Release, n: int, **options: Any) -> dict[str, Any]:
    """Synthetic records of any kind: images have no place in a table."""
    drawn: dict[str, Any] = release.sample(n, as_="arrays", **options)
    return drawn


def same_samples(first: pd.DataFrame | dict[str, Any], second: pd.DataFrame | dict[str, Any]) -> bool:
    """Whether two results of `Release.sample` hold the same records."""
    if isinstance(first, pd.DataFrame) and isinstance(second, pd.DataFrame):
        return first.equals(second)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    return list(first) == list(second) and all(to_lists(first[name]) == to_lists(second[name]) for name in first)


def _draw_codes(column: Any, n: int, rng: np.random.Generator) -> Any:
    if isinstance(column, SetColumn):
        held = rng.random((n, *column.shape)) < 0.4
        held &= np.cumsum(held, axis=1) <= column.max_size
        return sparse.csr_array(held.astype(np.uint8))
    return rng.integers(0, column.size, (n, *column.shape)).astype(column.dtype)
