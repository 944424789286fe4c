"""A small release, keys, and changes to its manifest."""

from __future__ import annotations

from typing import Any

from tests.contracts.material import random_records, schema_of

from sundog.fit.synthesizer import Synthesizer
from sundog.release.release import Release

COLUMNS: dict[str, dict[str, Any]] = {
    "name": {"type": "categorical", "values": ["a", "b", "c"], "nullable": True},
    "age": {"type": "integer", "min": 0, "max": 120, "bins": 10},
    "born": {"type": "datetime", "min": "1920-01-01", "max": "2020-12-31", "resolution": "day", "bins": 64},
}


def fit(kind: dict[str, dict[str, Any]] = COLUMNS, n: int = 200, **options: Any) -> Release:
    schema = schema_of(kind)
    records = random_records(schema, n)
    values = {name: column.decode(records.codes[name]) for name, column in schema.columns.items()}
    return (
        Synthesizer(**{"model": "independent", "epsilon": 1.0, "delta": 1e-6, **options}).fit(values, schema).release_
    )
