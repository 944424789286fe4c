"""What is asked of synthetic records: `age >= 40`, `job in cook, nurse`, as the set of codes that each column may have.

    column = value    column != value    column in a, b    column not in a, b
    column < value    column <= value    column > value    column >= value

A missing value satisfies `column=` (and `in`, where it is listed) and nothing else. Several conditions on one column
hold together.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from sundog.data.code_set import CodeSet
from sundog.data.columns import DatetimeColumn, IntegerColumn, OrderedColumn, OrdinalColumn, ScalarColumn
from sundog.data.columns.arrow import shown
from sundog.data.columns.number import NumberColumn
from sundog.data.columns.numbers import parse_integer, parse_number
from sundog.data.reading.column_matching import null_spellings
from sundog.data.schema import Schema
from sundog.data.validation_errors import did_you_mean
from sundog.errors import DataError

Conditions: TypeAlias = Mapping[str, Any] | Iterable[str] | str
"""Columns and their values ({"sex": "Female", "age": [41, 42]}), or texts ("age>=40", "job in cook, nurse")."""

_OPERATOR = re.compile(r"\s*(!=|>=|<=|=|>|<|(?<=\s)(?:not\s+in|in)(?=[\s\"'(]))", re.IGNORECASE)
_SEVERAL = (list, tuple, Set, range, np.ndarray, pd.Series, pd.Index)


@dataclass(frozen=True)
class Condition:
    """One condition: its column, how to compare, with what (each value in the ways that it may be meant), its text."""

    name: str
    operator: str
    values: tuple[tuple[Any, ...], ...]
    text: str


def encode_conditions(where: Conditions, schema: Schema, choices: Mapping[str, int]) -> dict[str, CodeSet]:
    """The codes that each column may have; a DataError of one line where there are none.

    Args:
        where: the conditions.
        schema: of the records.
        choices: what may be named besides columns, and how many values it has.

    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 18, "max": 90}}})
    >>> encode_conditions(["age>=40", "age<65"], schema, {})
    {'age': CodeSet(ranges=((22, 46),))}
    """
    known = [*schema.columns, *choices]
    found: dict[str, CodeSet] = {}
    texts: dict[str, list[str]] = {}
    for condition in _conditions(where, known):
        codes = _codes(condition, schema, choices)
        name = condition.name
        found[name] = found[name] & codes if name in found else codes
        texts.setdefault(name, []).append(condition.text)
        if not found[name]:
            together = " together" if len(texts[name]) > 1 else ""
            raise DataError(f"where: no value of {name!r} satisfies {' and '.join(texts[name])}{together}")
    return found


# --- reading conditions ---


def _conditions(where: Conditions, known: Sequence[str]) -> list[Condition]:
    if isinstance(where, Mapping):
        return [_given(name, value) for name, value in where.items()]
    if not isinstance(where, str) and not isinstance(where, Iterable):
        raise DataError(f"where: give a mapping of columns to values or a list of conditions, not {shown(where)}")
    return [parse_condition(text, known) for text in ([where] if isinstance(where, str) else where)]


def _given(name: str, value: Any) -> Condition:
    several = isinstance(value, _SEVERAL)
    values: Any = value if several else [value]
    return Condition(
        name, "in" if several else "=", tuple((each,) for each in values), f"{name}{' in ' if several else '='}{value}"
    )


def parse_condition(text: Any, known: Sequence[str]) -> Condition:
    """Reads one condition; a column may have any name, so the longest known one that fits is meant.

    >>> parse_condition("job in cook, 'a, b'", ["job"]).values
    (('cook', 'cook'), ('a, b', 'a, b'))
    """
    if not isinstance(text, str):
        raise DataError(f"where: {shown(text)} is no condition; write it as text, such as 'age>=40'")
    begun = text.lstrip()
    for name in sorted(known, key=len, reverse=True):
        for spelled in (name, f'"{name}"', f"'{name}'"):
            if begun.startswith(spelled) and (operator := _OPERATOR.match(begun[len(spelled) :])):
                rest = begun[len(spelled) + operator.end() :]
                exact = operator.start(1) == 0  # `x= a` asks for " a", and `x = a` for "a"
                values = _values(operator[1], rest, exact=exact)
                return Condition(name, " ".join(operator[1].lower().split()), values, text.strip())
    unknown = _OPERATOR.search(begun)
    if unknown is None or not begun[: unknown.start()].strip():
        raise DataError(
            f"where: {shown(text)} is no condition; write it as column=value, column>=value or column in a,b"
        )
    raise _no_column(begun[: unknown.start()].strip(), known)


def _values(operator: str, rest: str, *, exact: bool) -> tuple[tuple[str, ...], ...]:
    """Each value as it stands, and without the blanks or the quotes around it."""
    if not operator.lower().endswith("in"):
        plain = rest if exact else rest.strip()
        unquoted = [plain[1:-1]] if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'" else []
        return ((rest, plain, *unquoted),)
    listed = rest.strip()
    listed = listed[1:-1] if listed.startswith("(") and listed.endswith(")") else listed
    quote = "'" if "'" in listed and '"' not in listed else '"'
    try:
        split = next(csv.reader([listed], skipinitialspace=True, quotechar=quote), [""])
    except csv.Error:
        raise DataError(f"where: {shown(listed)} is no list; separate values by commas, and quote odd ones") from None
    return tuple((each, each.strip()) for each in split)


def _no_column(name: str, known: Sequence[str]) -> DataError:
    hint = did_you_mean(name, known, otherwise=f"the columns are {', '.join(known)}")
    return DataError(f"where: there is no column {name!r}; {hint}")


# --- conditions to codes ---


def _codes(condition: Condition, schema: Schema, choices: Mapping[str, int]) -> CodeSet:
    name, operator = condition.name, condition.operator
    column = schema.columns.get(name)
    if column is None and name in choices:
        count = choices[name]
        column = IntegerColumn(min=0, max=count - 1)
        exact = [_choice(name, spellings, count) for spellings in condition.values] if operator[-1] in "=n" else []
    elif column is None:
        raise _no_column(name, [*schema.columns, *choices])
    if not isinstance(column, ScalarColumn):
        raise DataError(f"where: column {name!r} holds {column.type}s; conditions are on single values")
    if operator in ("<", "<=", ">", ">="):
        return _compare(column, operator, condition)
    if name in schema.columns:
        exact = [_code(name, column, spellings, schema.nulls) for spellings in condition.values]
    listed = CodeSet.of(exact)
    return listed if operator in ("=", "in") else CodeSet.between(0, column.lattice_size - 1).without(listed)


def _choice(name: str, spellings: Sequence[Any], count: int) -> int:
    value = spellings[-1]
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number < count or str(number) != str(value).strip():
        raise DataError(f"where: {name!r} is a number from 0 to {count - 1}, not {value!r}")
    return number


def _code(name: str, column: ScalarColumn, spellings: Sequence[Any], nulls: Sequence[str]) -> int:
    """The code of the first spelling that the column has, or a refusal of the value as it was given."""
    refusal = None
    missing = null_spellings(column, nulls)
    given = list(dict.fromkeys(spellings)) if isinstance(spellings[0], str) else list(spellings)
    for reader, value in product(_readers(column), given):
        try:
            absent = column.nullable and isinstance(value, str) and value in missing
            return int(reader.encode([None if absent else value], where="")[0])
        except DataError as error:
            refusal = refusal or error
    reason = str(refusal).removeprefix(": row 1").lstrip(": ").partition(";")[0]
    raise DataError(f"where: column {name!r}: {reason}; ask for a value that the schema declares") from None


def _readers(column: ScalarColumn) -> list[ScalarColumn]:
    """How a value may be written: as in the data, and times in ISO 8601 too."""
    own = _strict(column)
    formatted = isinstance(own, DatetimeColumn) and own.format is not None
    return [own, own.model_copy(update={"format": None})] if formatted else [own]


def _strict(column: ScalarColumn) -> ScalarColumn:
    """The same column without forgiveness: what would be clamped, or become `other`, is no value to ask for."""
    forgiving = {"learn": False, "out_of_bounds": "error", "undeclared": "error", "other": None}
    return column.model_copy(update={key: value for key, value in forgiving.items() if hasattr(column, key)})


# --- order ---


def _compare(column: ScalarColumn, operator: str, condition: Condition) -> CodeSet:
    name, spellings = condition.name, condition.values[0]
    last = column.lattice_size - 1
    if isinstance(column, OrdinalColumn):
        code = _code(name, column, spellings, ())
        first = code if operator in (">=", "<") else code + 1
    elif isinstance(column, OrderedColumn):
        bound = _bound(name, column, spellings)
        first = _first_code(column, bound, itself=operator in (">=", "<"))
    else:
        raise DataError(f"where: column {name!r} has no order; use =, != or in")
    return CodeSet.between(first, last) if operator[0] == ">" else CodeSet.between(0, first - 1)


def _first_code(column: OrderedColumn, bound: float, *, itself: bool) -> int:
    """The first code whose value is above the bound, or is the bound; `lattice_size` where there is none."""
    low, high = 0, column.lattice_size
    while low < high:
        middle = (low + high) // 2
        value = _number(column.decode([middle]))
        if value > bound or (itself and value == bound):
            high = middle
        else:
            low = middle + 1
    return low


def _number(one: Any) -> Any:
    """The value in an Arrow array of one as a number: a time in microseconds."""
    return (one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one)[0].as_py()


def _bound(name: str, column: OrderedColumn, spellings: Sequence[Any]) -> Any:
    value = spellings[-1]
    if isinstance(column, DatetimeColumn):
        anytime = {"min": "0001-01-01", "max": "9999-12-31", "resolution": "microsecond"}
        declared = {"timezone": column.timezone, "format": column.format}
        clock = DatetimeColumn.model_validate({**declared, **anytime})
        return _number(clock.decode([_code(name, clock, spellings[-1:], ())]))
    text = str(value)
    if isinstance(column, NumberColumn):
        text = column.plain(pa.array([text]))[0].as_py()
    number = parse_integer(text)
    number = parse_number(text) if number is None else number
    if number is None:
        raise DataError(f"where: column {name!r}: {shown(value)} is not a number; compare with a number")
    return number
