"""Columns of Python values, from workbooks, JSON lines and databases: each value is read alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

from sundog.data.reading import arrays
from sundog.data.reading.source import Source

_PLAIN = (str, int, float, bytes, date, Decimal, list)  # bool is an int, datetime a date


def open_objects(columns: Mapping[str, list[Any]], name: str, nulls: Sequence[str]) -> Source:
    """Open lists of values by name.

    >>> open_objects({"a": [1, "x", None]}, "t.xlsx", [""]).shapes
    {'a': ()}
    """
    return replace(arrays.open_arrays(columns, name), nulls=tuple(nulls))


def simplify_value(value: Any) -> Any:
    """Return a value of a type that every column accepts; other types become text, each value alone.

    >>> import datetime
    >>> simplify_value(datetime.time(12, 30)), simplify_value(memoryview(b"a")), simplify_value(None)
    ('12:30:00', b'a', None)
    """
    if value is None or isinstance(value, _PLAIN):
        return value
    return bytes(value) if isinstance(value, memoryview | bytearray) else str(value)
