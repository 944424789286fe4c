"""Match the declared columns to the names in a source, and convert their values for the encoders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sundog.data.columns import Column, Form, Scale, sparse_rows
from sundog.data.columns.batches import Batches
from sundog.data.columns.containers import MIXED
from sundog.data.reading import arrays, tables
from sundog.data.reading.source import BARE, Shape, Source, Values
from sundog.data.schema import Schema
from sundog.errors import DataError

Plan = dict[str, list[str]]
"""For each declared column the names in the source that make it up."""

_TEXTS = ("U", "S", "T")
_TRUTHS = {"0", "1", "0.0", "1.0", "True", "False"}


def match(source: Source, schema: Schema) -> Plan:
    """Match each declared column by name; if one array-valued column is left over, also by its shape.

    >>> schema = Schema.from_dict({"columns": {"load": {"type": "series", "length": 2, "min": 0, "max": 9}}})
    >>> match(Source("t.csv", {"load_0": (), "load_1": ()}, dict), schema)
    {'load': ['load_0', 'load_1']}
    >>> match(Source("t.npz", {"x": (2,), "day": ()}, dict), schema)
    {'load': ['x']}
    """
    plan = {name: keys for name, column in schema.columns.items() if (keys := _match_name(name, column, source))}
    plan |= {name: [*plan[name], sparse_rows.RUNS] for name in plan if _has_runs(name, source, schema)}
    used = {key for keys in plan.values() for key in keys} | {schema.unit}
    free = {key: shape for key, shape in source.shapes.items() if key not in used}
    left = [name for name in schema.columns if name not in plan]
    # Labels are scalars: if an array-valued column is left over, an unnamed array is that column, not the labels.
    left = [name for name in left if schema.columns[name].shape] or left
    if len(left) == 1 and (key := _match_shape(schema.columns[left[0]], free)) is not None:
        plan[left[0]] = [key]
    return plan


def _match_name(name: str, column: Column, source: Source) -> list[str]:
    if name in source.shapes:
        return [name]
    keys = column.name_table_columns(name)
    if keys[0] in source.shapes:
        for key in keys:
            if key not in source.shapes:
                raise tables.build_missing_error(key, source)
        return keys
    for prefix in (f"{name}_", "") if column.archive_parts else ():
        keys = [prefix + part for part in column.archive_parts]
        if all(key in source.shapes for key in keys):
            return keys
    return []


def _has_runs(name: str, source: Source, schema: Schema) -> bool:
    """Return whether a set column is stored as the items of all records, one after another.

    Texts count only if they cannot be one value a record.
    """
    is_set = schema.columns[name].form is Form.SET and source.shapes.get(name) == ()
    if not is_set or sparse_rows.RUNS not in source.shapes or sparse_rows.RUNS in {*schema.columns, schema.unit}:
        return False
    loaded = source.load([name, sparse_rows.RUNS])
    items, starts = loaded[name], loaded[sparse_rows.RUNS]
    if not all(isinstance(part, np.ndarray) and part.dtype.kind != "O" for part in (items, starts)):
        return False
    if items.dtype.kind not in "UST" or starts.dtype.kind not in "iu" or items.shape != starts.shape:
        return True
    # Numbers that a single text turned into texts: `from_runs` refuses them.
    return bool(starts[0] == 0 and starts[-1] == len(items) and (np.diff(starts.astype(np.int64)) >= 0).all())


def _match_shape(column: Column, free: dict[str, Shape]) -> str | None:
    if BARE in free:
        return BARE
    if not column.shape:
        return None
    fitting = [key for key, shape in free.items() if shape and math.prod(shape) == math.prod(column.shape)]
    if "x" in fitting:
        return "x"
    return fitting[0] if len(fitting) == 1 else None


def conform(column: Column, values: list[Values], source: Source, name: str, *, private: bool = True) -> Values:
    """Convert the values of one column for its encoder: Arrow for scalars, arrays, lists or sparse rows.

    >>> column = Schema.from_dict({"columns": {"n": {"type": "integer", "min": 0, "max": 9}}}).columns["n"]
    >>> conform(column, [np.array([1.0, np.nan])], Source("t.npz", {}, dict), "n").to_pylist()
    [1.0, None]
    """
    where = f"{source.name}: column {name!r}"
    if column.archive_parts:
        return column.from_parts(values, where=where) if len(values) > 1 else values[0]
    if len(values) > 1:
        for step in values if private else ():
            _refuse_retyped(column, step, source.nulls, where)
        steps = (tables.nullify(to_scalars(step, where), source.nulls) for step in values)
        return np.column_stack([arrays.to_numbers(step, f"{where}, step {i}") for i, step in enumerate(steps)])
    if column.shape:
        return values[0]
    nulls = column.find_null_spellings(source.nulls)
    if private:
        _refuse_retyped(column, values[0], nulls, where)
    return tables.nullify(to_scalars(values[0], where), nulls)


def conform_batches(column: Column, batches: Batches, source: Source, name: str) -> Batches:
    """Convert the values of one column as `conform` does, when they are read."""

    def convert(batch: pa.ChunkedArray) -> Any:
        return conform(column, [batch], source, name)

    return batches.convert(convert)


def _refuse_retyped(column: Column, values: Values, nulls: Sequence[str], where: str) -> None:
    """Refuse arrays whose values numpy would spell differently if another value were text or a number.

    In an array with a text, numpy turns 1.0 into '1.0', True into 'True', a missing value into 'nan' and a float32 near
    0.1 into '0.1'; in an array with a number, it turns True into 1.
    """
    kind = values.dtype.kind if isinstance(values, np.ndarray) else ""
    if column.reads_text:
        refuse_unspelled(values, where, "fbMiu" if column.respells else "fbM")
    elif kind in _TEXTS and column.misreads_text(nulls):
        raise DataError(f"{where}: is an array of text; save it as numbers{column.text_hint}")
    if (kind == "b" or (kind == "f" and column.scale is Scale.BINARY)) and (null := _TRUTHS & {*nulls}):
        problem = f"is an array of {values.dtype}, in which {min(null)!r} of `nulls` is ambiguous"
        raise DataError(f"{where}: {problem}; save it as whole numbers")


def refuse_unspelled(values: Values, where: str, kinds: str = "fbM") -> None:
    """Refuse arrays of kinds that numpy spells differently from sundog, for columns that are read as text.

    >>> refuse_unspelled(np.array(["1.0"]), "t.npz: column 'id'")
    >>> refuse_unspelled(np.array([1.0]), "t.npz: column 'id'")
    Traceback (most recent call last):
    sundog.errors.DataError: t.npz: column 'id': is an array of float64, but is read as text; save it as text
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in kinds:
        raise DataError(f"{where}: is an array of {values.dtype}, but is read as text; save it as text")


def to_scalars(values: Values, where: str) -> pa.ChunkedArray:
    """Return one value a record as an Arrow array; refuse arrays, lists and matrices.

    >>> to_scalars(np.array([3, 4]), "x").to_pylist()
    [3, 4]
    """
    if not isinstance(values, pa.ChunkedArray | np.ndarray):
        raise DataError(f"{where}: is a sparse matrix; one value a record is needed")
    column = tables.to_arrow(values, where)
    if pa.types.is_nested(column.type) and column.type != MIXED:
        raise DataError(f"{where}: holds {column.type}; one value a record is needed, or declare it as series or set")
    return column
