"""Conditions on synthetic records, such as `age >= 40` or `job in cook, nurse`, as the codes that a column may have.

    column = value    column != value    column in a, b    column not in a, b
    column < value    column <= value    column > value    column >= value

A missing value satisfies `column=` (and `in`, if it is listed) and nothing else. Several conditions on one column must
all hold.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from sundog.data.code_set import CodeSet
from sundog.data.columns import AnyColumn, Form, IntegerColumn, ScalarColumn, Scale
from sundog.data.validation_errors import format_value, suggest
from sundog.errors import DataError

Conditions: TypeAlias = Mapping[str, Any] | Iterable[str] | str
"""Columns and their values ({"sex": "Female", "age": [41, 42]}), or texts ("age>=40", "job in cook, nurse")."""

_OPERATOR = re.compile(r"\s*(!=|>=|<=|=|>|<|(?<=\s)(?:not\s+in|in)(?=[\s\"'(]))", re.IGNORECASE)
_SEVERAL = (list, tuple, Set, range)


class Declaration(Protocol):
    """What must be declared to read conditions: a schema, or some of its columns."""

    @property
    def columns(self) -> Mapping[str, AnyColumn]:
        """The columns by name."""

    @property
    def nulls(self) -> Sequence[str]:
        """The texts that mean "missing"."""


@dataclass(frozen=True)
class Condition:
    """One condition: its column, operator, values (each with all its possible spellings) and text."""

    name: str
    operator: str
    values: tuple[tuple[Any, ...], ...]
    text: str


def encode_conditions(where: Conditions, schema: Declaration, choices: Mapping[str, int]) -> dict[str, CodeSet]:
    """Return the codes that each column may have; raise DataError if there are none.

    Args:
        where: the conditions.
        schema: of the records.
        choices: what can be named besides columns (such as `cluster`), and its number of values.

    >>> from sundog.data.schema import Schema
    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 18, "max": 90}}})
    >>> encode_conditions(["age>=40", "age<65"], schema, {})
    {'age': CodeSet(ranges=((22, 46),))}
    """
    known = [*schema.columns, *choices]
    found: dict[str, CodeSet] = {}
    texts: dict[str, list[str]] = {}
    for condition in _parse_conditions(where, known):
        codes = _encode_condition(condition, schema, choices)
        name = condition.name
        found[name] = found[name] & codes if name in found else codes
        texts.setdefault(name, []).append(condition.text)
        if not found[name]:
            together = " together" if len(texts[name]) > 1 else ""
            raise DataError(f"where: no value of {name!r} satisfies {' and '.join(texts[name])}{together}")
    return found


# --- reading conditions ---


def _parse_conditions(where: Conditions, known: Sequence[str]) -> list[Condition]:
    if isinstance(where, Mapping):
        return [_make_condition(name, value) for name, value in where.items()]
    if not isinstance(where, str) and not isinstance(where, Iterable):
        raise DataError(
            f"where: give a mapping of columns to values or a list of conditions, not {format_value(where)}"
        )
    return [parse_condition(text, known) for text in ([where] if isinstance(where, str) else where)]


def _make_condition(name: str, value: Any) -> Condition:
    several = isinstance(value, _SEVERAL) or getattr(value, "ndim", 0) > 0  # an array, or a Series of any library
    values: Any = value if several else [value]
    return Condition(
        name, "in" if several else "=", tuple((each,) for each in values), f"{name}{' in ' if several else '='}{value}"
    )


def parse_condition(text: Any, known: Sequence[str]) -> Condition:
    """Parse one condition; a column may have any name, so the longest known name that matches is taken.

    >>> parse_condition("job in cook, 'a, b'", ["job"]).values
    (('cook', 'cook'), ('a, b', 'a, b'))
    """
    if not isinstance(text, str):
        raise DataError(f"where: {format_value(text)} is not a condition; write it as text, such as 'age>=40'")
    begun = text.lstrip()
    for name in sorted(known, key=len, reverse=True):
        for spelled in (name, f'"{name}"', f"'{name}'"):
            if begun.startswith(spelled) and (operator := _OPERATOR.match(begun[len(spelled) :])):
                rest = begun[len(spelled) + operator.end() :]
                exact = operator.start(1) == 0  # `x= a` asks for " a", and `x = a` for "a"
                values = _parse_values(operator[1], rest, exact=exact)
                return Condition(name, " ".join(operator[1].lower().split()), values, text.strip())
    unknown = _OPERATOR.search(begun)
    if unknown is None or not begun[: unknown.start()].strip():
        raise DataError(
            f"where: {format_value(text)} is not a condition; write it as column=value, column>=value or column in a,b"
        )
    raise _make_column_error(begun[: unknown.start()].strip(), known)


def _parse_values(operator: str, rest: str, *, exact: bool) -> tuple[tuple[str, ...], ...]:
    """Return each value as it is written, and without the blanks or the quotes around it."""
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
        raise DataError(
            f"where: {format_value(listed)} is not a list; separate values by commas and quote odd ones"
        ) from None
    return tuple((each, each.strip()) for each in split)


def _make_column_error(name: str, known: Sequence[str]) -> DataError:
    hint = suggest(name, known, otherwise=f"the columns are {', '.join(known)}")
    return DataError(f"where: there is no column {name!r}; {hint}")


# --- conditions to codes ---


def _encode_condition(condition: Condition, schema: Declaration, choices: Mapping[str, int]) -> CodeSet:
    name, operator = condition.name, condition.operator
    column: AnyColumn | None = schema.columns.get(name)
    if column is None and name in choices:
        count = choices[name]
        column = IntegerColumn(min=0, max=count - 1)
        exact = (
            [_parse_choice(name, spellings, count) for spellings in condition.values] if operator[-1] in "=n" else []
        )
    elif column is None:
        raise _make_column_error(name, [*schema.columns, *choices])
    if column.form is not Form.SCALAR:
        raise DataError(f"where: column {name!r} holds {column.type}s; conditions are on single values")
    if operator in ("<", "<=", ">", ">="):
        return _compare(column, operator, condition)
    if name in schema.columns:
        missing = column.find_null_spellings(schema.nulls)
        with _name_column_in_errors(name):
            exact = [column.find_code(*spellings, missing=missing) for spellings in condition.values]
    listed = CodeSet.of(exact)
    return listed if operator in ("=", "in") else CodeSet.between(0, column.lattice_size - 1) - listed


def _parse_choice(name: str, spellings: Sequence[Any], count: int) -> int:
    value = spellings[-1]
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number < count or str(number) != str(value).strip():
        raise DataError(f"where: {name!r} is a number from 0 to {count - 1}, not {value!r}")
    return number


@contextmanager
def _name_column_in_errors(name: str) -> Iterator[None]:
    """Name the column in errors about a value."""
    try:
        yield
    except DataError as error:
        raise DataError(f"where: column {name!r}: {error}") from None


def _compare(column: ScalarColumn, operator: str, condition: Condition) -> CodeSet:
    if column.scale not in (Scale.ORDINAL, Scale.INTERVAL):
        raise DataError(f"where: column {condition.name!r} has no order; use =, != or in")
    with _name_column_in_errors(condition.name):
        first = column.find_first_code_above(condition.values[0], or_equal=operator in (">=", "<"))
    if operator[0] == ">":
        return CodeSet.between(first, column.lattice_size - 1)
    return CodeSet.between(0, first - 1)
