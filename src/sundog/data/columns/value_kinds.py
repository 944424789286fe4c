"""The kind and the canonical spelling of one value."""

from __future__ import annotations

import math
import sys
import uuid
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache, singledispatch
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa

from sundog.data.columns import time_parsing

KINDS: dict[str, Any] = {
    "text": pa.string(),
    "whole": pa.int64(),
    "real": pa.float64(),
    "truth": pa.bool_(),
    "wall": pa.timestamp("us"),
    "instant": pa.timestamp("us", "UTC"),
}
TEXT, WHOLE, REAL, TRUTH, WALL, INSTANT = range(6)

_Tagged = tuple[int, Any]
_NOTHING: _Tagged = (TEXT, None)


def tag_value(value: Any) -> _Tagged:
    """Return the kind of one value, and the value in the Arrow type of that kind."""
    if "pandas" in sys.modules:  # otherwise no value can be of its types, and importing it takes half a second
        _register_pandas()
    return _tag(value)


@singledispatch
def _tag(value: Any) -> _Tagged:
    if isinstance(value, pa.Scalar):
        return tag_value(value.as_py())
    if np.ma.is_masked(value):
        return _NOTHING
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return tag_value(value.item() if value.dtype.kind not in "Mm" else value[()])
    raise TypeError(f"holds a value of type {type(value).__name__}")


@_tag.register(type(None))
def _tag_nothing(_: Any) -> _Tagged:
    return _NOTHING


@_tag.register
def _tag_text(value: str) -> _Tagged:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("holds text with a lone surrogate, which UTF-8 cannot encode") from None
    return TEXT, str.__str__(value)


@_tag.register(bytes)
@_tag.register(bytearray)
def _tag_bytes(value: Any) -> _Tagged:
    try:
        return TEXT, value.decode()
    except UnicodeDecodeError:
        raise ValueError("holds bytes that are not UTF-8 text") from None


@_tag.register(time)
def _tag_time_of_day(value: Any) -> _Tagged:
    return TEXT, value.isoformat()


@_tag.register(uuid.UUID)
def _tag_by_name(value: Any) -> _Tagged:
    return TEXT, str(value)


@_tag.register(bool)
@_tag.register(np.bool_)
def _tag_boolean(value: Any) -> _Tagged:
    return TRUTH, bool(value)


@_tag.register(Integral)
def _tag_whole(value: Any) -> _Tagged:
    number = int(value)
    return (WHOLE, number) if -(2**63) <= number < 2**63 else (TEXT, str(number))


@_tag.register(float)
@_tag.register(np.floating)
def _tag_real(value: Any) -> _Tagged:
    number = float(value)
    return _NOTHING if math.isnan(number) else (REAL, number)


@_tag.register
def _tag_decimal(value: Decimal) -> _Tagged:
    if value.is_nan():
        return _NOTHING
    # Beyond 10^400 it is infinite as a float64 as well, and too long to spell out.
    is_whole = value.is_finite() and value.adjusted() < 400 and value == value.to_integral_value()
    return _tag_whole(int(value)) if is_whole else _tag_real(float(value))


@_tag.register
def _tag_fraction(value: Fraction) -> _Tagged:
    return _tag_whole(value.numerator) if value.denominator == 1 else _tag_real(float(value))


@_tag.register
def _tag_day(value: date) -> _Tagged:
    return WALL, (value - time_parsing.EPOCH.date()).days * time_parsing.DAY


@_tag.register
def _tag_datetime(value: datetime) -> _Tagged:
    offset = value.utcoffset()
    micros = (value.replace(tzinfo=None) - time_parsing.EPOCH) // time_parsing.MICROSECOND
    return (WALL, micros) if offset is None else (INSTANT, micros - offset // time_parsing.MICROSECOND)


@_tag.register
def _tag_datetime64(value: np.datetime64) -> _Tagged:
    return _NOTHING if np.isnat(value) else (WALL, int(time_parsing.from_numpy(np.array([value]))[0]))


@_tag.register
def _tag_time(value: time_parsing.Time) -> _Tagged:
    return (INSTANT if value.aware else WALL), value.micros


@_tag.register(timedelta)
@_tag.register(np.timedelta64)
def _refuse_duration(_: Any) -> _Tagged:
    raise TypeError("holds a duration")


@cache
def _register_pandas() -> None:
    import pandas as pd

    def tag_interval(value: pd.Interval) -> _Tagged:
        before, behind = "[" if value.closed_left else "(", "]" if value.closed_right else ")"
        return TEXT, f"{before}{spell_value(value.left)}, {spell_value(value.right)}{behind}"

    def tag_timestamp(value: pd.Timestamp) -> _Tagged:
        return (WALL if value.tz is None else INSTANT), _tag_datetime64(value.to_datetime64())[1]

    for missing in (pd.NA, pd.NaT):
        _tag.register(type(missing), _tag_nothing)
    _tag.register(pd.Period, _tag_by_name)
    _tag.register(pd.Interval, tag_interval)
    _tag.register(pd.Timestamp, tag_timestamp)


def spell_value(value: Any) -> str:
    """Return the canonical spelling of a value, which does not depend on its type.

    >>> [spell_value(value) for value in (1, 1.0, Decimal("1.00"), True, -0.0, 0.5, date(2020, 1, 1), " x")]
    ['1', '1', '1', '1', '0', '0.5', '2020-01-01', ' x']
    """
    tag, held = tag_value(value)
    if tag in (WALL, INSTANT):
        return str(time_parsing.Time(held, tag == INSTANT))
    return spell_number(held) if tag in (WHOLE, REAL, TRUTH) else str(held)


def spell_number(number: float) -> str:
    """Return the canonical spelling of a number: without a point if it is whole, else as short as is exact."""
    return str(int(number)) if math.isfinite(number) and number == int(number) else repr(float(number))
