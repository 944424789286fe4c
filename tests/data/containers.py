"""Containers of records of a column `x`, each made by its own library from values of any type."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
import struct
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from scipy import sparse

Container = Callable[[list[Any], Path], Any]
"""From values of column `x` to a source; raises an exception if this container cannot hold them."""


def to_object_array(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return an array of objects, of any length each."""
    return np.fromiter(values, object, len(values))


def mask_missing(values: Sequence[Any]) -> np.ma.MaskedArray[Any, Any]:
    """Return the array that numpy makes, with missing values masked."""
    gaps = [value is None for value in values]
    return np.ma.MaskedArray(np.array([1 if gap else value for value, gap in zip(values, gaps, strict=True)]), gaps)


def make_labels(values: Any) -> list[int]:
    """Return another column, of numbers."""
    return [5] * len(values)


def to_frame(series: pd.Series[Any]) -> pd.DataFrame:
    return pd.DataFrame({"x": series, "k": make_labels(series)})


def to_table(values: Any) -> pa.Table:
    return pa.table({"x": values, "k": make_labels(values)})


def refuse_changed(found: Any, values: list[Any]) -> None:
    """Refuse containers that changed their values before sundog reads them."""
    if any(not pd.isna(now) and now != value for now, value in zip(found, values, strict=True)):
        raise ValueError


def infer_arrow(values: list[Any]) -> pa.Array:
    """Return the array that pyarrow infers; it crashes on numpy times beside numpy floats."""
    if {"M", "f"} <= {value.dtype.kind for value in values if isinstance(value, np.generic)}:
        raise TypeError
    array = pa.array(values, from_pandas=True)
    if not pa.types.is_nested(array.type):
        refuse_changed(array.to_pylist(), values)
    return array


def to_nullable_frame(values: list[Any], backend: Any) -> pd.DataFrame:
    series = pd.Series(values, dtype=object).convert_dtypes(dtype_backend=backend)
    refuse_changed(series, values)
    return to_frame(series)


def to_csv(values: list[Any], path: Path, **options: Any) -> Path:
    to_frame(pd.Series(values, dtype=object)).to_csv(path, index=False, **options)
    return path


def spoil_csv(values: list[Any], path: Path) -> Path:
    """Write a csv file without any quoting."""
    path.write_text("x,k\n" + "".join(f"{'' if value is None else value},5\n" for value in values), newline="")
    return path


def spoil_packed(values: list[Any], path: Path) -> Path:
    path = path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"k,x\r\n" + "".join(f"5,{value}\r\n" for value in values).encode()))
    return path


def to_json(values: list[Any], path: Path) -> Path:
    (path / "t.jsonl").write_text("".join(json.dumps({"x": value, "k": 5}) + "\n" for value in values))
    return path / "t.jsonl"


def to_workbook(values: list[Any], path: Path) -> Path:
    book = openpyxl.Workbook()
    for row in (("x", "k"), *((value, 5) for value in values)):
        book.active.append(row)
    book.save(path / "t.xlsx")
    return path / "t.xlsx"


def to_database(values: list[Any], path: Path) -> str:
    (path / "t.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(path / "t.db")) as database, database:
        database.execute("CREATE TABLE t (x, k)")
        database.executemany("INSERT INTO t VALUES (?, 5)", [(value,) for value in values])
    return f"sqlite:///{path / 't.db'}?table=t"


def to_ipc(values: list[Any], path: Path) -> Path:
    pyarrow.feather.write_feather(to_table(infer_arrow(values)), path / "t.feather")
    return path / "t.feather"


def to_parquet(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path / "t.parquet", row_group_size=2)
    return path / "t.parquet"


def to_pandas_parquet(values: list[Any], path: Path) -> Path:
    frame = to_frame(pd.Series(values))
    table = pa.Table.from_pandas(frame)
    if not pa.types.is_nested(table["x"].type):
        refuse_changed(table["x"].to_pylist(), list(frame["x"]))
    frame.to_parquet(path / "p.parquet")
    return path / "p.parquet"


def to_npz(path: Path, **arrays: Any) -> Path:
    np.savez(path / "t.npz", **arrays)
    return path / "t.npz"


IN_MEMORY: dict[str, Container] = {
    "lists": lambda values, _: {"x": values, "k": make_labels(values)},
    "object array": lambda values, _: {"x": to_object_array(values), "k": make_labels(values)},
    "masked array": lambda values, _: {"x": mask_missing(values), "k": make_labels(values)},
    "array": lambda values, _: {"x": np.array(values), "k": make_labels(values)},
    "frame": lambda values, _: to_frame(pd.Series(values)),
    "object frame": lambda values, _: to_frame(pd.Series(values, dtype=object)),
    "nullable frame": lambda values, _: to_nullable_frame(values, "numpy_nullable"),
    "arrow frame": lambda values, _: to_nullable_frame(values, "pyarrow"),
    "category": lambda values, _: to_frame(pd.Series(values, dtype="category")),
    "object category": lambda values, _: to_frame(pd.Series(values, dtype=object).astype("category")),
    "string frame": lambda values, _: to_frame(pd.Series(values, dtype=object).astype("string")),
    "table": lambda values, _: to_table(infer_arrow(values)),
    "dictionary": lambda values, _: to_table(infer_arrow(values).dictionary_encode()),
    "polars": lambda values, _: pl.from_arrow(to_table(infer_arrow(values))),
    "chunks": lambda values, _: to_table(pa.chunked_array([pa.array(values[i:][:1]) for i in range(len(values))])),
}
IN_FILES: dict[str, Container] = {
    "csv": lambda values, path: to_csv(values, path / "t.csv"),
    "quoted csv": lambda values, path: to_csv(values, path / "q.csv", quoting=csv.QUOTE_ALL),
    "tsv": lambda values, path: to_csv(values, path / "t.tsv", sep="\t"),
    "spoiled csv": lambda values, path: spoil_csv(values, path / "s.csv"),
    "packed csv": spoil_packed,
    "parquet": lambda values, path: to_parquet(to_table(infer_arrow(values)), path),
    "pandas parquet": to_pandas_parquet,
    "ipc": to_ipc,
    "json lines": to_json,
    "workbook": to_workbook,
    "database": to_database,
    "npz": lambda values, path: to_npz(path, x=np.array(values), k=make_labels(values)),
}


def to_runs(values: list[Any], path: Path) -> Path:
    lengths = [len(value) for value in values]
    return to_npz(path, x=np.array([i for value in values for i in value]), indptr=np.cumsum([0, *lengths]))


def to_matrix(values: list[Any]) -> np.ndarray[Any, Any]:
    matrix = np.zeros((len(values), 1 + max([1, *(max(value) for value in values if len(value))])))
    for row, value in enumerate(values):
        matrix[row, value] = 1
    return matrix


def to_lines(values: list[Any]) -> list[str]:
    """Return each record as a line of text."""
    return [value if isinstance(value, str) else " ".join(str(item) for item in value) for value in values]


def to_transactions(values: list[Any], path: Path) -> Path:
    (path / "t.txt").write_text("".join(f"{line}\n" for line in to_lines(values)), newline="")
    return path / "t.txt"


SET_CONTAINERS: dict[str, Container] = {
    **{name: IN_MEMORY[name] for name in ("lists", "object array", "frame", "object frame", "table", "chunks")},
    **{name: IN_FILES[name] for name in ("parquet", "pandas parquet", "ipc")},
    "bare list": lambda values, _: values,
    "runs": to_runs,
    "sparse": lambda values, _: sparse.csr_array(to_matrix(values)),
    "matrix": lambda values, _: to_matrix(values),
    "transactions": to_transactions,
    "cells": lambda values, path: to_csv(to_lines(values), path / "t.csv"),
}


def to_idx(values: list[Any], path: Path) -> Path:
    array = np.array(values)
    code = {"u1": 8, "f4": 13, "f8": 14}["u1" if array.dtype.kind in "iu" else "f8"]
    data = array.astype("u1" if code == 8 else ">f8")
    (path / "t.idx").write_bytes(bytes([0, 0, code, 2]) + struct.pack(">2I", *data.shape) + data.tobytes())
    return path / "t.idx"


GRID_CONTAINERS: dict[str, Container] = {
    **{name: IN_MEMORY[name] for name in ("lists", "object array", "array", "object frame", "table", "chunks")},
    **{name: IN_FILES[name] for name in ("parquet", "ipc", "npz")},
    "bare array": lambda values, _: np.array(values),
    "idx": to_idx,
    "steps": lambda values, _: pd.DataFrame(
        {**dict(zip(("x_0", "x_1"), zip(*values, strict=True), strict=True)), "k": 5}
    ),
}
ALWAYS = {"lists", "spoiled csv", "parquet"}  # tried with every record
BARE = {"bare list", "bare array", "sparse", "matrix", "transactions", "runs", "idx"}
