"""Tables: parquet, Arrow IPC, and tables in memory (pandas, polars, pyarrow)."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from sundog.data.columns import arrow
from sundog.data.columns.containers import MIXED, to_chunks
from sundog.data.columns.number_parsing import EXACT, parse_number_unless_code, to_float64
from sundog.data.columns.value_kinds import spell_number
from sundog.data.reading.source import (
    AnyPath,
    PipedInput,
    Source,
    Values,
    explain_read_errors,
    refuse_directory,
    take_first_line,
)
from sundog.data.validation_errors import format_value
from sundog.errors import DataError


def open_ipc(path: AnyPath) -> Source:
    """Open an Arrow IPC file or stream (.arrow, .feather)."""
    with explain_read_errors(path.name):
        refuse_directory(path)
        with pa.BufferReader(path.content) if isinstance(path, PipedInput) else pa.OSFile(str(path)) as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            table = (pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)).read_all()
            table.validate(full=True)
    return open_table(table, path.name)


def open_table(table: pa.Table, name: str) -> Source:
    """Open the columns of an Arrow table.

    >>> open_table(pa.table({"a": [1, 2]}), "table").load(["a"])["a"].to_pylist()
    [1, 2]
    """
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(check_unique(table.column_names, name), ())
    return Source(name, shapes, lambda names: {column: _convert_views(table[column]) for column in names})


def _convert_views(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert string views, as polars has them, to strings, which all Arrow functions accept."""
    kind = values.type
    if pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        return pa.chunked_array(
            [
                pa.DictionaryArray.from_arrays(
                    chunk.indices, chunk.dictionary.cast(pa.large_string()), ordered=kind.ordered
                )
                for chunk in values.chunks
            ],
            pa.dictionary(kind.index_type, pa.large_string(), kind.ordered),
        )
    return values


def open_frame(frame: pd.DataFrame, name: str) -> Source:
    """Open the columns of a pandas DataFrame; the index is ignored.

    >>> frame = pd.DataFrame({"a": ["x", None]}, index=[7, 9])
    >>> open_frame(frame, "DataFrame").load(["a"])["a"].to_pylist()
    ['x', None]
    """
    labels = [str(label) for label in frame.columns]

    def load(names: list[str]) -> dict[str, Values]:
        found = {column: frame.iloc[:, labels.index(column)] for column in names}
        return {column: to_source_values(values, f"{name}: column {column!r}") for column, values in found.items()}

    return Source(name, dict.fromkeys(check_unique(labels, name), ()), load)


def to_arrow(values: Any, where: str) -> pa.ChunkedArray:
    """Convert a Series, a numpy array or a list to Arrow; NaN, NaT and None become nulls.

    >>> to_arrow(np.array([1.0, np.nan]), "x").to_pylist()
    [1.0, None]
    """
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise DataError(f"{where}: has shape {values.shape}; one value a record is needed")
    try:
        parts = list(to_chunks(values, where=where))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"{where}: cannot be read as a column ({take_first_line(error)}); make it text or numbers"
        ) from None
    return pa.chunked_array(parts, parts[0].type if parts else pa.string())


def to_source_values(values: Any, where: str) -> Values:
    """Return a list, a Series or an array as values of a source; objects stay objects until their column is known.

    >>> to_source_values([{"tea"}, ["milk", 1]], "baskets")
    array([{'tea'}, list(['milk', 1])], dtype=object)
    """
    if isinstance(values, list | tuple):
        return np.fromiter(values, object, len(values))
    if isinstance(values, np.ndarray | pd.Series) and values.dtype == object and values.ndim == 1:
        found = np.array(values)
        if isinstance(values, np.ma.MaskedArray):
            found[np.ma.getmaskarray(values)] = None
        return found
    return to_arrow(values, where)


def nullify(values: pa.ChunkedArray, spellings: Sequence[str]) -> pa.ChunkedArray:
    """Replace texts, and numbers, of the given spellings by nulls.

    >>> nullify(pa.chunked_array([["a", "NA"]]), ["NA"]).to_pylist()
    ['a', None]
    >>> nullify(pa.chunked_array([[-1.0, 2.5]]), ["-1"]).to_pylist()
    [None, 2.5]
    """
    if not spellings:
        return values
    return pa.chunked_array([_nullify_chunk(chunk, spellings) for chunk in values.chunks], values.type)


def _nullify_chunk(chunk: pa.Array, spellings: Sequence[str]) -> pa.Array:
    if chunk.type == MIXED:
        whole = pa.concat_arrays([chunk])
        children = [_nullify_chunk(whole.field(place), spellings) for place in range(whole.type.num_fields)]
        names = [field.name for field in whole.type]
        return pa.UnionArray.from_dense(whole.type_codes, whole.offsets, children, names)
    if isinstance(chunk, pa.DictionaryArray):
        gone = _is_spelled(chunk.dictionary, spellings)
        if gone is None or not pc.any(gone).as_py():
            return chunk
        indices = pc.if_else(gone.take(chunk.indices), pa.scalar(None, chunk.indices.type), chunk.indices)
        return pa.DictionaryArray.from_arrays(indices, chunk.dictionary, ordered=chunk.type.ordered)
    gone = _is_spelled(chunk, spellings)
    return chunk if gone is None else pc.if_else(gone, pa.scalar(None, chunk.type), chunk)


def _is_spelled(values: pa.Array, spellings: Sequence[str]) -> pa.Array | None:
    """Return a mask of the values with one of these spellings; None if the type rules it out."""
    kind = values.type
    if arrow.is_text(kind):
        return pc.is_in(values, pa.array(spellings, kind))
    spelled = {text: parse_number_unless_code(text) for text in spellings}
    numbers = [
        float(number)
        for text, number in spelled.items()
        if number is not None and abs(number) < EXACT and spell_number(number) == text
    ]
    if not numbers or not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    return pa.array(np.isin(to_float64(values)[0], numbers))


def build_missing_error(column: str, source: Source) -> DataError:
    """Return the error for a declared column that is missing, with the likely cause.

    >>> str(build_missing_error("age", Source("t.csv", {"Age": ()}, lambda names: {})))
    "t.csv: column 'age' is missing (did you mean 'Age'?); add it to the data or take it out of the schema"
    """
    names = list(source.shapes)
    if len(names) == 1 and (delimiter := next((mark for mark in ";|\t," if mark in names[0]), None)):
        shown = format_value(names[0], 40)
        return DataError(f"{source.name}: the header is one field, {shown}; declare `delimiter: {delimiter!r}`")
    plain = {name.strip().lower(): name for name in names}
    close = difflib.get_close_matches(column.lower(), plain, n=1)
    if close:
        hint = f"did you mean {plain[close[0]]!r}?"
    else:
        hint = f"there are: {', '.join(map(repr, names[:8]))}{', …' if len(names) > 8 else ''}"
    fix = "add it to the data or take it out of the schema"
    return DataError(f"{source.name}: column {column!r} is missing ({hint}); {fix}")


def check_unique(names: list[str], where: str) -> list[str]:
    """Return the names; raise DataError if one occurs twice."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError(f"{where}: column {twice!r} occurs twice; rename one of them")
    return names
