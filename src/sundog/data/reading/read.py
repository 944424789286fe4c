"""Read any supported source into `Raw` (named values, not encoded), and encode `Raw` as `Records` (integer codes).

Reading has three steps: open the source by its kind, match each declared column to the names in the source, and
convert the values for the column's encoder. Only declared columns are loaded, in the order of the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from sundog.data.columns.batches import Batches
from sundog.data.columns.containers import spell_values
from sundog.data.reading import arrays, csv_file, database, json_lines, parquet, tables, transactions, workbook
from sundog.data.reading.column_matching import Plan, conform, conform_batches, match, refuse_unspelled, to_scalars
from sundog.data.reading.source import BARE, AnyPath, PipedInput, Source, Values, explain_read_errors, refuse_directory
from sundog.data.reading.tables import build_missing_error, nullify
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError

Array = np.ndarray[Any, Any]

FORMATS = ".csv, .tsv, .csv.gz, .jsonl, .parquet, .arrow, .feather, .xlsx, .npz, .idx, -ubyte(.gz), .txt or .dat"
_SHEET = "?sheet="


@dataclass(frozen=True)
class Raw:
    """Values before encoding: text, typed or array values by declared name."""

    name: str
    count: int
    columns: dict[str, Values | Batches]
    unit: pa.ChunkedArray | None = None
    ignored: tuple[str, ...] = field(default=())

    def take(self, index: np.ndarray[Any, Any]) -> Raw:
        """Return the records at these positions, in this order."""
        columns = {name: _take(values, index) for name, values in self.columns.items()}
        unit = None if self.unit is None else _take(self.unit, index)
        return replace(self, count=len(index), columns=columns, unit=unit)

    def bound_contributions(self, cap: int) -> Raw:
        """Return the first `cap` records of each unit, in file order; the choice never depends on other units.

        >>> raw = Raw("t", 4, {"x": np.array([1, 2, 3, 4])}, unit=pa.chunked_array([["a", "b", "a", "a"]]))
        >>> raw.bound_contributions(2).columns["x"]
        array([1, 2, 3])
        """
        if self.unit is None:
            return self
        kept = find_first_of_each(self.unit, cap)
        return self if len(kept) == self.count else self.take(kept)


def read(source: Any, schema: Schema, *, labels: Any = None, private: bool = True) -> Raw:
    """Read the declared columns of a file or an object in memory.

    Args:
        source: a path (csv, JSON lines, parquet, Arrow, xlsx, npz, idx, transactions), a database URL, a DataFrame
            (pandas or polars), an Arrow table, an array, a sparse matrix, a list of sets, or a dict of arrays.
        schema: the declared columns.
        labels: a path or array for the one scalar column that the source does not have.
        private: whether the records are private; arrays whose type one record may have changed are refused then.

    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 99}}})
    >>> raw = read(pd.DataFrame({"age": [31, 47], "name": ["Ann", "Bo"]}), schema)
    >>> raw.count, raw.ignored
    (2, ('name',))
    """
    opened = open_source(source, schema)
    plan = match(opened, schema)
    _check_plan(plan, opened, schema, labels is not None)
    used = [name for names in plan.values() for name in names] + ([schema.unit] if schema.unit else [])
    columns: dict[str, Values | Batches] = dict(_batch_columns(opened, plan, schema))
    whole = [key for name, keys in plan.items() if name not in columns for key in keys]
    loaded = opened.load([*whole, *([schema.unit] if schema.unit else [])])
    columns |= {
        name: conform(schema.columns[name], [loaded[key] for key in keys], opened, name, private=private)
        for name, keys in plan.items()
        if name not in columns
    }
    unit = _read_unit_ids(loaded[schema.unit], opened, schema.unit) if schema.unit else None
    count = _count_records(columns, unit, opened.name)
    if labels is not None:
        name = next(name for name in schema.columns if name not in plan)
        columns[name] = _read_labels(labels, name, schema, count)
    return Raw(
        name=opened.name,
        count=count,
        columns={name: columns[name] for name in schema.columns},
        unit=unit,
        ignored=tuple(name for name in opened.shapes if name not in used),
    )


def encode(raw: Raw, schema: Schema) -> Records:
    """Encode every column, after keeping the first `cap` records of each unit.

    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 20, "max": 99}}})
    >>> encode(read({"age": [31, 47]}, schema), schema).codes["age"]
    array([11, 27], dtype=uint8)
    """
    kept = raw.bound_contributions(schema.cap) if schema.unit else raw
    # Row numbers in messages count encoded records, so the message says if these are not the whole file.
    name = raw.name if kept.count == raw.count else f"{raw.name} (first {schema.cap} of each {schema.unit!r})"
    codes = {
        column: schema.columns[column].encode(values, where=f"{name}: column {column!r}")
        for column, values in kept.columns.items()
    }
    return Records(schema=schema, codes=codes, count=kept.count, unit=_number_people(kept.unit))


def _number_people(unit: pa.ChunkedArray | None) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    """Return a number for each id; the numbers carry no information and are not released."""
    if unit is None:
        return None
    numbers = unit.combine_chunks().dictionary_encode()
    joined = numbers.combine_chunks() if isinstance(numbers, pa.ChunkedArray) else numbers
    return np.asarray(joined.indices, np.int64)


def open_source(source: Any, schema: Schema | None = None) -> Source:
    """Open a source by its type or, for a path, by its suffix."""
    if isinstance(source, str) and database.is_url(source):
        return database.open_database(source, nulls=schema.nulls if schema else ("",))
    if isinstance(source, str | os.PathLike):
        return _open_path(Path(source), schema)
    if isinstance(source, PipedInput):
        return _open_path(source, schema)
    if isinstance(source, pd.DataFrame):
        return tables.open_frame(source, "DataFrame")
    if isinstance(source, Mapping):
        return arrays.open_arrays(source, "dict")
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, pd.Series | pa.ChunkedArray):
        with explain_read_errors(name := type(source).__name__):  # polars has types that Arrow does not
            return tables.open_table(pa.table(source), name)
    if isinstance(source, np.ndarray | list | tuple | pd.Series | pa.Array | pa.ChunkedArray) or sparse.issparse(
        source
    ):
        return arrays.open_arrays({BARE: source}, type(source).__name__)
    kind = type(source).__name__
    raise DataError(f"{kind}: cannot be read; give a path, DataFrame, table, array, sparse matrix or list")


def _open_path(path: AnyPath, schema: Schema | None) -> Source:
    path, sheet = _split_sheet(path)
    name = path.name.lower().removesuffix(".gz")
    delimiter = schema.delimiter if schema else ","
    nulls = schema.nulls if schema else ("",)
    if name.endswith(".csv"):
        return csv_file.open_csv(path, delimiter=delimiter, nulls=nulls, multiline=_list_multiline_texts(schema))
    if name.endswith(".tsv"):
        return csv_file.open_csv(path, delimiter="\t", nulls=nulls, multiline=_list_multiline_texts(schema))
    if name.endswith((".jsonl", ".ndjson")):
        # Only exact names: a key of one record must not change how other records are read.
        wanted = None if schema is None else {*schema.columns, schema.unit}
        return json_lines.open_json_lines(path, nulls=nulls, wanted=wanted)
    if name.endswith(".xlsx"):
        return workbook.open_workbook(path, sheet=sheet, nulls=nulls)
    if name.endswith((".parquet", ".pq")):
        return parquet.open_parquet(path)
    if name.endswith((".arrow", ".feather")):
        return tables.open_ipc(path)
    if name.endswith(".npz"):
        return arrays.open_npz(path, nulls=nulls)
    if name.endswith((".idx", "-ubyte")):
        return arrays.open_idx(path)
    if name.endswith((".txt", ".dat")):
        return transactions.open_transactions(path)
    with explain_read_errors(path.name):
        path.stat()
        refuse_directory(path)
    raise DataError(f"{path.name}: has an unknown format; give {FORMATS}")


def _split_sheet(path: AnyPath) -> tuple[AnyPath, str | None]:
    """Split the path of a workbook from the name of its sheet: `people.xlsx?sheet=Adults`."""
    text = str(path)
    if isinstance(path, PipedInput) or _SHEET not in text or path.exists():
        return path, None
    file, _, sheet = text.rpartition(_SHEET)
    return Path(file), sheet


def _list_multiline_texts(schema: Schema | None) -> list[str]:
    """Return the declared texts that contain line breaks."""
    columns = schema.columns.values() if schema else ()
    texts = [str(text) for column in columns for text in column.declared_texts]
    return [text for text in texts if "\n" in text or "\r" in text]


def find_first_of_each(ids: pa.ChunkedArray, cap: int) -> Array:
    """Return the positions of the first `cap` occurrences of each id, ascending.

    >>> find_first_of_each(pa.chunked_array([["b", "a", "b", "b"]]), 2)
    array([0, 1, 2])
    """
    codes = pc.dictionary_encode(ids).unify_dictionaries()
    group = np.concatenate([chunk.indices.to_numpy() for chunk in codes.chunks])
    order = np.argsort(group, kind="stable")  # sorted by unit, each in file order
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    rank = np.arange(len(group)) - np.repeat(starts, np.diff(starts, append=len(group)))
    return np.sort(order[rank < cap])


def _batch_columns(source: Source, plan: Plan, schema: Schema) -> dict[str, Batches]:
    """Return the columns of one value a record, if the source can be read in batches."""
    batch = source.batch
    if batch is None:
        return {}
    scalars = {name: column for name, column in schema.columns.items() if column.is_scalar and plan.get(name) == [name]}
    return {name: conform_batches(column, batch(name), source, name) for name, column in scalars.items()}


def _check_plan(plan: Plan, source: Source, schema: Schema, labelled: bool) -> None:
    if schema.unit and schema.unit not in source.shapes:
        raise build_missing_error(schema.unit, source)
    left = [name for name in schema.columns if name not in plan]
    if labelled:
        scalar = [name for name in left if not schema.columns[name].shape]
        if not scalar:
            raise DataError(f"{source.name}: has every scalar column already; leave out the labels or rename a column")
        left.remove(scalar[0])
    if left:
        raise build_missing_error(left[0], source)


def _read_labels(labels: Any, name: str, schema: Schema, count: int) -> Values:
    """Return the column of labels: the one of that name, or the only one."""
    source = open_source(labels, schema)
    key = name if name in source.shapes else next(iter(source.shapes))
    if key != name and len(source.shapes) > 1:
        raise build_missing_error(name, source)
    values = conform(schema.columns[name], [source.load([key])[key]], source, name)
    if _count_rows(values) != count:
        raise DataError(f"{source.name}: {_count_rows(values)} labels for {count} records; give one for each record")
    return values


def _read_unit_ids(values: Values, source: Source, unit: str) -> pa.ChunkedArray:
    """Return the ids in their canonical spelling: 1 and 1.0 are one person, who must not count twice."""
    where = f"{source.name}: column {unit!r}"
    refuse_unspelled(values, where)
    ids = nullify(to_scalars(values, where), source.nulls)
    spelled = [pc.utf8_trim_whitespace(spell_values(chunk, where=where)) for chunk in ids.chunks]
    ids = pa.chunked_array(spelled, pa.string())
    absent = pc.is_null(ids, nan_is_null=True)
    if pc.any(absent).as_py():
        row = pc.index(absent, True).as_py() + 1
        raise DataError(f"{where}: row {row} does not say whose record it is, but the column is the `unit`; fill it")
    return ids


def _count_records(columns: dict[str, Values | Batches], unit: pa.ChunkedArray | None, name: str) -> int:
    lengths = {column: _count_rows(values) for column, values in columns.items()}
    if unit is not None:
        lengths["the unit"] = len(unit)
    first, count = next(iter(lengths.items()))
    for column, length in lengths.items():
        if length != count:
            raise DataError(f"{name}: {column!r} has {length} records, {first!r} has {count}; give one for each record")
    if not count:
        raise DataError(f"{name}: has no records; give at least one")
    return count


def _count_rows(values: Values | Batches) -> int:
    return len(values) if isinstance(values, pa.ChunkedArray | Batches) else int(values.shape[0])


def _take(values: Any, index: Array) -> Any:
    if isinstance(values, Batches):
        return values.take(index)
    return values.take(pa.array(index)) if isinstance(values, pa.ChunkedArray) else values[index]
