"""Draft a schema from the data, as a starting point: NOT PRIVATE until reviewed."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sundog.data.columns import sparse_rows
from sundog.data.columns.arrow import is_list, is_text, unwrap_dictionary
from sundog.data.columns.containers import MIXED, spell_values
from sundog.data.drafting.column_guesses import Declaration, Guess, guess_column, is_named_id
from sundog.data.drafting.observed_dtypes import declare_dtypes, observe_dtypes
from sundog.data.drafting.rule_suggestions import suggest_rules
from sundog.data.reading import csv_file, tables
from sundog.data.reading.read import encode, open_source, read
from sundog.data.reading.source import BARE, Source, Values
from sundog.data.records import stack_codes
from sundog.data.schema import Schema
from sundog.errors import DataError

_RULES_FOUND = (
    "found in the data: NOT PRIVATE. All records satisfy these rules, which may be chance, or say something about",
    "people. Keep those that are known from documentation or follow from what the columns mean",
)
NULLS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")


def draft(data: Any, name: str | None = None, *, suggest: bool = False, others: Sequence[Any] = ()) -> Schema:
    """Draft a schema from data; its bounds and categories are copied from the records.

    Args:
        data: a path, or any other source that `read` accepts.
        name: what to call the data in messages.
        suggest: whether to suggest rules between columns that all records satisfy.
        others: further records with the same columns, whose values the bounds and categories must cover, too.

    >>> import pandas as pd
    >>> with warnings.catch_warnings(action="ignore"):
    ...     schema = draft(pd.DataFrame({"age": [31, 47], "smokes": ["yes", "no"]}))
    >>> schema.to_dict()["columns"]
    {'age': {'type': 'integer', 'min': 31, 'max': 47},
     'smokes': {'type': 'boolean', 'true': 'yes', 'false': 'no'}}
    """
    source, delimiter = _open(data)
    where = name or source.name
    loaded = _load_columns(source, where)
    for other in others:
        loaded = _join_columns(loaded, _load_columns(further := _open(other)[0], further.name))
    nulls = _find_nulls(loaded.values()) if source.nulls else []
    guesses = {
        key: _guess(key, tables.nullify(read, nulls) if isinstance(read, pa.ChunkedArray) else read, bool(source.nulls))
        for key, read in loaded.items()
    }
    for key, guess in guesses.items():
        if guess.declaration is None:
            _warn(f"{where}: column {key!r} {guess.notes[0]}")
    nulls += sorted({spelling for guess in guesses.values() for spelling in guess.nulls} - set(nulls))
    kept = {key: guess for key, guess in guesses.items() if guess.declaration is not None}
    if not kept:
        raise DataError(
            f"{where}: no column is left to draft from; write the schema by hand, and give it with `--schema`"
        )
    _warn(f"{where}: the drafted schema is NOT PRIVATE until someone has reviewed it")
    head: dict[str, Any] = {"sundog": 1, "reviewed": False}
    if delimiter != ",":
        head["delimiter"] = delimiter
    if nulls and nulls != [""]:
        head["nulls"] = nulls
    columns = {key or _choose_name(guess): _declare_nullable(guess, loaded[key], nulls) for key, guess in kept.items()}
    seen = {} if source.nulls else observe_dtypes(data, loaded)  # text has no dtypes
    schema = Schema.from_dict({**head, "columns": declare_dtypes(columns, seen)}, where=where)
    if suggest:
        schema = suggest_rules(encode(read(data, schema, private=False), schema))
    notes = {key or _choose_name(guess): guess.notes for key, guess in kept.items()}
    left_out = [f"{key}: {guess.notes[0]}" for key, guess in guesses.items() if guess.declaration is None]
    return schema.with_comments(notes, left_out, _RULES_FOUND)


def _guess(key: str, values: Values, blanks: bool) -> Guess:
    if is_named_id(key, values):
        return Guess(
            None, [f"is named like an identifier and is left out; say `unit: {key}` if it says whose record it is"]
        )
    return guess_column(values, blanks=blanks)


def _declare_nullable(guess: Guess, values: Values, nulls: list[str]) -> Declaration:
    """Return the declaration, nullable if the values include a text that another column declares missing."""
    declaration: Declaration = guess.declaration or {}
    if not isinstance(values, pa.ChunkedArray) or pa.types.is_nested(values.type):
        return declaration
    kind = unwrap_dictionary(values.type)
    missing = set(nulls) - {str(value) for value in declaration.get("values", ())}
    if is_text(kind) and missing & set(pc.unique(values).to_pylist()):
        return {**declaration, "nullable": True}
    return declaration


def _open(data: Any) -> tuple[Source, str]:
    """Open the data; return the source and the delimiter, which is found for a csv file."""
    if not (isinstance(data, str | os.PathLike) and str(data).lower().endswith((".csv", ".csv.gz"))):
        return open_source(data), ","
    path = Path(data)
    delimiter = max(",;\t|", key=lambda mark: len(csv_file.read_csv_header(path, mark)))  # the first of several best
    return csv_file.open_csv(path, delimiter=delimiter), delimiter


def _load_columns(source: Source, where: str) -> dict[str, Values]:
    """Load all columns of the source that have a value for each record."""
    loaded = source.load(list(source.shapes))
    if set(sparse_rows.PARTS) <= set(loaded):
        indices, indptr, shape = (loaded.pop(part) for part in sparse_rows.PARTS)
        loaded = {BARE: sparse_rows.from_parts(indices, indptr, shape, where), **loaded}
    lengths = {key: int(values.shape[0]) if hasattr(values, "shape") else len(values) for key, values in loaded.items()}
    wide = {key: lengths[key] for key, values in loaded.items() if getattr(values, "ndim", 1) > 1}
    count = Counter((wide or lengths).values()).most_common(1)[0][0] if lengths else 0
    if not count:
        raise DataError(f"{where}: has no records; give at least one")
    for key in [key for key, length in lengths.items() if length != count]:
        _warn(f"{where}: {key!r} has {lengths[key]} values for {count} records and is left out")
        del loaded[key]
    found = {
        key: _infer_type(values, f"{where}: column {key!r}") if getattr(values, "ndim", 1) == 1 else values
        for key, values in loaded.items()
    }
    deep = {key: _get_type(values) for key, values in found.items() if _is_deep(_get_type(values))}
    for key, kind in deep.items():
        _warn(f"{where}: column {key!r} holds {kind}, for which there is no column type; it is left out")
        del found[key]
    return found


def _join_columns(columns: dict[str, Values], others: dict[str, Values]) -> dict[str, Values]:
    """Return the columns with the values of others below; those that do not fit are left as they are.

    Whoever reads the others with the schema is told what does not fit.
    """
    joined = dict(columns)
    for key in columns.keys() & others.keys():
        with suppress(pa.ArrowException, ValueError):
            joined[key] = _join_values(columns[key], others[key])
    return joined


def _join_values(values: Any, others: Any) -> Values:
    if isinstance(values, pa.ChunkedArray):
        tables = [pa.table({"": each}) for each in (values, others)]
        return pa.concat_tables(tables, promote_options="permissive").column(0)
    return stack_codes([values, others])


def _get_type(values: Any) -> Any:
    return values.type if isinstance(values, pa.ChunkedArray) else pa.null()


def _is_deep(kind: Any) -> bool:
    """Return whether an Arrow type is nested more deeply than a list of values."""
    return bool(pa.types.is_nested(kind.value_type if is_list(kind) else kind))


def _infer_type(values: Any, where: str) -> pa.ChunkedArray:
    """Return the values in one Arrow type, inferred from all of them together, which only a draft may do."""
    if (
        isinstance(values, np.ndarray)
        and values.dtype == object
        and any(isinstance(value, list | tuple | set | frozenset) for value in values)
    ):
        lists = [list(value) if isinstance(value, set | frozenset) else value for value in values]
        with suppress(pa.ArrowException):
            return pa.chunked_array([pa.array(lists, from_pandas=True)])
        raise DataError(f"{where}: its lists hold values of several types; make them text or numbers")
    column = tables.to_arrow(values, where)
    if column.type == MIXED:
        return pa.chunked_array([spell_values(chunk, where=where) for chunk in column.chunks])
    return column


def _find_nulls(columns: Any) -> list[str]:
    """Return the spellings of a missing value that occur: the usual ones, white space, and always the empty text."""
    found = {""}
    for values in columns:
        if isinstance(values, pa.ChunkedArray) and not pa.types.is_nested(values.type):
            texts = pc.unique(values).cast(pa.string())
            white = texts.filter(pc.match_substring_regex(texts, r"^\s+$")).to_pylist()
            found |= {*white, *(set(texts.to_pylist()) & set(NULLS))}
    return [*(null for null in NULLS if null in found), *sorted(found - set(NULLS))]


def _choose_name(guess: Guess) -> str:
    """Return a name for an unnamed column."""
    kind = str((guess.declaration or {})["type"])
    return {"set": "items"}.get(kind, kind)


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=4)  # the caller of Schema.draft
