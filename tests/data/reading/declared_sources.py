"""Schemas, and the codes or the message that reading a source gives."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.feather
import pytest
from scipy import sparse

from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.errors import SundogError

TABLE = Schema.from_dict(
    {
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 120},
            "sex": {"type": "categorical", "values": ["f", "m"]},
        }
    }
)
IMAGES = Schema.from_dict(
    {"columns": {"image": {"type": "image", "shape": [2, 3]}, "label": {"type": "categorical", "values": [0, 1, 2]}}}
)
SETS = Schema.from_dict({"columns": {"basket": {"type": "set", "universe": ["bread", "milk", "tea"], "max_size": 3}}})
NUMBERED = Schema.from_dict({"columns": {"items": {"type": "set", "universe": 4, "max_size": 4}}})
PIXELS = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)


FRAME = pd.DataFrame({"age": [31, 47, 5], "sex": ["f", "m", "f"], "extra": [0.5, 1.5, 2.5]})


def write_csv(path: Path) -> None:
    FRAME.to_csv(path, index=False)


FILES: dict[str, Callable[[Path], Any]] = {
    "t.csv": write_csv,
    "t.csv.gz": write_csv,
    "T.CSV": write_csv,
    "t.tsv": lambda path: FRAME.to_csv(path, index=False, sep="\t"),
    "t.parquet": FRAME.to_parquet,
    "t.arrow": lambda path: pyarrow.feather.write_feather(FRAME, path),
    "t.feather": lambda path: pyarrow.feather.write_feather(FRAME, path),
    "t.npz": lambda path: np.savez(path, age=[31, 47, 5], sex=["f", "m", "f"], extra=[0.5, 1.5, 2.5]),
}


def declare_columns(**columns: Any) -> Schema:
    return Schema.from_dict({"columns": columns})


def read_codes(source: Any, schema: Schema, **options: Any) -> dict[str, Any]:
    records = encode(read(source, schema, **options), schema)
    return {name: c.toarray().tolist() if sparse.issparse(c) else c.tolist() for name, c in records.codes.items()}


def to_idx(array: np.ndarray[Any, Any]) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.astype("u1").tobytes()


def catch_message(source: Any, schema: Schema = TABLE, **options: Any) -> str:
    with pytest.raises(SundogError) as caught:
        encode(read(source, schema, **options), schema)
    message = str(caught.value)
    assert "\n" not in message
    assert "\r" not in message
    assert ";" in message, "a message ends in a fix"
    return message
