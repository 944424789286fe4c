"""Neighbouring inputs: a table without and with one unit, which is chosen to hurt.

A unit is a record or, with `unit:` in the schema, a person with several records. The values of an added record are
extremes, missing values, new categories, values of other types, numbers that are not finite, long texts, and copies.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sundog.data.columns import Form
from sundog.data.schema import Schema
from sundog.errors import ArgumentError

Table = dict[str, list[Any]]  # the values of each column
Container = Callable[[Table, Path], Any]  # from a table and a folder to a source that `fit` can read

NEW_PERSON = "n3w"  # of whom no other record is
_FIRST = 7  # records that are always tried
_BEYOND_CAP = 3  # more records than a person may have

# Values of other types than the column's, or beyond its domain; what a reader refuses is refused before it is paid for.
HOSTILE: tuple[Any, ...] = (
    *(None, "", math.nan, math.inf, -math.inf, 1e308, -0.0, 2**53 + 1, 2**70, True, "1", "1.0", " 1", "nan", "NA"),
    *(Decimal("2.250"), np.float32(0.1), "new category", "é\u0301", "x" * 5000, 'a"b', "a\nb", "1,2", b"1"),
    *(datetime.date(2020, 5, 6), datetime.datetime(2020, 5, 6, 7, tzinfo=datetime.UTC), "2020-02-29", [1], 0.1 + 0.2),
)
HOSTILE_ARRAYS: tuple[Any, ...] = (math.nan, math.inf, -1.0, 1e308, 0.5)  # in all places of an image or a series
HOSTILE_SETS: tuple[Any, ...] = ([], ["new item"], [1, 1.0, "1"], [None], ["x" * 5000], "text", None)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables.

    Args:
        name: what was added, for messages.
        without: the table without the unit.
        places: where the records of the unit are in the other table, ascending.
        records: of the unit.
        is_removal: whether the other table is the one that was given.
    """

    name: str
    without: Table
    places: tuple[int, ...]
    records: tuple[dict[str, Any], ...]
    is_removal: bool = False

    @property
    def joined(self) -> Table:
        """The table with the unit."""
        joined = {name: list(values) for name, values in self.without.items()}
        for place, record in zip(self.places, self.records, strict=True):
            for name, values in joined.items():
                values.insert(place, record[name])
        return joined


def list_pairs(table: Table, schema: Schema, *, most: int | None = None, seed: int = 0) -> Iterator[Pair]:
    """Yield pairs: units that are added first, last and in between, and units that are removed.

    With `most`, that many: extremes, a copy and removals, then an evenly spread choice of other values.

    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 99}}})
    >>> [pair.name for pair in list_pairs({"age": [31, 47]}, schema, most=3)]
    ['smallest values', 'largest values', 'missing values']
    """
    count = len(next(iter(table.values())))
    drafts = list(_draft_records(table, schema, np.random.default_rng(seed)))
    if most is not None and most < len(drafts):
        first, rest = drafts[: min(_FIRST, most)], drafts[_FIRST:]
        left = most - len(first)
        drafts = first + [rest[number * len(rest) // left] for number in range(left)]
    for number, (name, record) in enumerate(drafts):
        place = (0, count, count // 2)[number % 3]
        if isinstance(record, int):
            yield _remove(name, table, schema, record)
        elif schema.unit is None:
            yield Pair(name, table, (place,), (record,))
        else:
            yield _add_person(name, table, schema, record, place)


def to_table(data: Any, schema: Schema, *, records: int | None = None) -> tuple[Table, Container]:
    """Return the columns of a source, and how to make such a source of other columns.

    Args:
        data: the path of a csv or parquet file, a DataFrame, a mapping of columns, or the array or list of the only
            column.
        schema: of the records.
        records: the most to use, from the first on.
    """
    if isinstance(data, str | os.PathLike):
        return _read_file(Path(data), schema, records)
    if isinstance(data, pd.DataFrame):
        return {str(name): data[name].iloc[:records].tolist() for name in data}, to_frame
    if not isinstance(data, Mapping):
        if len(schema.columns) != 1 or not isinstance(data, Sequence | np.ndarray):
            raise ArgumentError(
                "data without names of columns needs a schema of one column; give a DataFrame or a dict"
            )
        (name,) = schema.columns
        return {name: list(itertools.islice(data, records))}, lambda table, _: to_source(table, like={name: data})[name]
    table = {name: list(itertools.islice(values, records)) for name, values in data.items()}
    return table, lambda table, _: to_source(table, like=data)


def _read_file(path: Path, schema: Schema, records: int | None) -> tuple[Table, Container]:
    if path.name.endswith(".parquet"):
        whole = pq.read_table(path) if records is None else _read_first(path, records)
        return whole.to_pydict(), lambda table, folder: write_parquet(table, folder / path.name)
    name = path.name.removesuffix(".gz")
    if not name.endswith((".csv", ".tsv")):
        raise ArgumentError(f"{path.name}: only csv and parquet files can be replayed; give a DataFrame or a dict")
    delimiter = "\t" if name.endswith(".tsv") else schema.delimiter
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="", encoding="utf-8-sig") as file:
        header, *rows = itertools.islice(
            csv.reader(file, delimiter=delimiter), None if records is None else records + 1
        )
    table = {name: [row[place] for row in rows] for place, name in enumerate(header)}
    return table, lambda table, folder: write_csv(table, folder / name, delimiter)


def _read_first(path: Path, records: int) -> pa.Table:
    with pq.ParquetFile(path) as file:
        schema, batches = file.schema_arrow, list(itertools.islice(file.iter_batches(records), 1))
    return pa.Table.from_batches(batches, schema)


def to_frame(table: Table, folder: Path) -> pd.DataFrame:  # noqa: ARG001
    """Return a DataFrame, with the types that pandas infers from all values of a column."""
    return pd.DataFrame(table)


def to_source(table: Table, *, like: Mapping[str, Any]) -> dict[str, Any]:
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


# --- records ---


def _draft_records(
    table: Table, schema: Schema, rng: np.random.Generator
) -> Iterator[tuple[str, dict[str, Any] | int]]:
    """Yield records to add, or the places of records to remove, with a name each."""
    count = len(next(iter(table.values())))
    usual = {name: values[int(rng.integers(count))] for name, values in table.items()}
    yield from _draft_extremes(usual, schema)
    yield "a copy of the first record", {name: values[0] for name, values in table.items()}
    for place in sorted({0, count // 2, count - 1}):
        yield f"record {place + 1} of the data", place
    values = {name: _list_hostile(column) for name, column in schema.columns.items()}
    turns = itertools.zip_longest(*([(name, value) for value in some] for name, some in values.items()))
    for name, value in (each for turn in turns for each in turn if each is not None):
        yield f"{name} = {_shorten(value)}", {**usual, name: value}


def _draft_extremes(usual: Mapping[str, Any], schema: Schema) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield records of the first, of the last and of missing values of all columns that are declared in full."""
    complete = {name: column for name, column in schema.columns.items() if column.complete and column.is_scalar}
    ends: dict[str, dict[str, Any]] = {"smallest values": {}, "largest values": {}, "missing values": {}}
    for name, column in complete.items():
        last = column.lattice_size - 1
        nothing = 0 if column.null_code is None else column.null_code
        codes = np.array([0, last, nothing]).astype(column.dtype)
        for end, value in zip(ends.values(), column.to_json(codes), strict=True):
            end[name] = value
    for title, values in ends.items():
        yield title, {**usual, **values}


def _list_hostile(column: Any) -> Sequence[Any]:
    if column.is_scalar:
        return HOSTILE
    if column.form is Form.SET:
        return [*HOSTILE_SETS, list(column.items)]  # more items than a set may have
    return [np.full(column.shape, value) for value in HOSTILE_ARRAYS]


def _shorten(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else f"{text[:37]}..."


# --- people ---


def _add_person(name: str, table: Table, schema: Schema, record: dict[str, Any], place: int) -> Pair:
    """Return a pair with a new person, who has more records than the cap, from one place on and at the end."""
    ids = table[str(schema.unit)]
    new: Any = max(ids) + 1 if all(isinstance(each, int) for each in ids) else NEW_PERSON
    records = [{**record, str(schema.unit): new} for _ in range(schema.cap + _BEYOND_CAP)]
    count = len(next(iter(table.values())))
    places = [place, *range(count + 1, count + len(records))]
    return Pair(name, table, tuple(places), tuple(records))


def _remove(name: str, table: Table, schema: Schema, place: int) -> Pair:
    """Return a pair of a table and the same without the unit that a record belongs to."""
    places = [place]
    if schema.unit is not None:
        ids = [str(value).strip() for value in table[schema.unit]]
        places = [number for number, owner in enumerate(ids) if owner == ids[place]]
    kept = sorted(set(range(len(next(iter(table.values()))))) - set(places))
    without = {name: [values[number] for number in kept] for name, values in table.items()}
    records = tuple({name: values[number] for name, values in table.items()} for number in places)
    return Pair(name, without, tuple(places), records, is_removal=True)
