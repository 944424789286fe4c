"""Sources of any kind as columns of values, and such sources made of other columns."""

from __future__ import annotations

import csv
import gzip
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sundog.data.schema import Schema
from sundog.errors import ArgumentError

Table = dict[str, list[Any]]  # the values of each column
Container = Callable[[Table, Path], Any]  # from a table and a folder to a source that `fit` can read


@dataclass(frozen=True, eq=False)
class Source:
    """A source to replay.

    Args:
        table: its columns.
        make: returns a source of the same kind.
        is_text: whether it holds nothing but text, as a csv file does.
    """

    table: Table
    make: Container
    is_text: bool = False


def open_source(data: Any, schema: Schema, *, records: int | None = None) -> Source:
    """Return the columns of a source, and how to make such a source of other columns.

    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 99}}})
    >>> open_source([31, 47, 25], schema, records=2).table
    {'age': [31, 47]}

    Args:
        data: the path of a csv or parquet file, a DataFrame, a mapping of columns, or the array or list of the only
            column.
        schema: of the records.
        records: the most to use, from the first on.
    """
    if isinstance(data, str | os.PathLike):
        return _read_file(Path(data), schema, records)
    if isinstance(data, pd.DataFrame):
        return Source({str(name): data[name].iloc[:records].tolist() for name in data}, to_frame)
    if not isinstance(data, Mapping):
        if len(schema.columns) != 1 or not isinstance(data, Sequence | np.ndarray):
            raise ArgumentError(
                "data without names of columns needs a schema of one column; give a DataFrame or a dict"
            )
        (name,) = schema.columns
        table = {name: list(itertools.islice(data, records))}
        return Source(table, lambda table, _: to_arrays(table, like={name: data})[name])
    table = {name: list(itertools.islice(values, records)) for name, values in data.items()}
    return Source(table, lambda table, _: to_arrays(table, like=data))


def _read_file(path: Path, schema: Schema, records: int | None) -> Source:
    if path.name.endswith(".parquet"):
        whole = pq.read_table(path) if records is None else _read_first(path, records)
        return Source(whole.to_pydict(), lambda table, folder: write_parquet(table, folder / path.name))
    name = path.name.removesuffix(".gz")
    if not name.endswith((".csv", ".tsv")):
        raise ArgumentError(f"{path.name}: only csv and parquet files can be replayed; give a DataFrame or a dict")
    delimiter = "\t" if name.endswith(".tsv") else schema.delimiter
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file, delimiter=delimiter)
        header = next(lines)
        rows = (
            row or [""] for row in lines if row or len(header) == 1
        )  # a blank line is no record, or a missing value
        kept = list(itertools.islice(rows, records))
    if any(len(row) != len(header) for row in kept):
        raise ArgumentError(f"{path.name}: some lines have other numbers of fields than the header")
    table = {name: [row[place] for row in kept] for place, name in enumerate(header)}
    return Source(table, lambda table, folder: write_csv(table, folder / name, delimiter), is_text=True)


def _read_first(path: Path, records: int) -> pa.Table:
    with pq.ParquetFile(path) as file:
        schema, batches = file.schema_arrow, list(itertools.islice(file.iter_batches(records), 1))
    return pa.Table.from_batches(batches, schema)


def to_frame(table: Table, folder: Path) -> pd.DataFrame:  # noqa: ARG001
    """Return a DataFrame, with the types that pandas infers from all values of a column."""
    return pd.DataFrame(table)


def to_arrays(table: Table, *, like: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict with arrays where there were arrays of several dimensions, and lists elsewhere."""
    return {
        name: np.array(values) if isinstance(like[name], np.ndarray) and like[name].ndim > 1 else values
        for name, values in table.items()
    }


def write_csv(table: Table, path: Path, delimiter: str = ",") -> Path:
    """Write a csv file; a missing value is an empty field."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


def write_parquet(table: Table, path: Path) -> Path:
    """Write a parquet file, with the types that Arrow infers from all values of a column."""
    pq.write_table(pa.table(table), path)
    return path
