"""Parse the numbers of Arrow arrays of any type; whole numbers stay exact."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sundog.data.columns.arrow import Mask, cast_where, is_text, to_numpy

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EXACT = 2**53  # from here on, float64 does not hold every whole number
COARSEST = 2**10  # the largest gap between neighbouring float64 values within int64

# The only grammar of numbers: Arrow and Python accept more (0x1F, 1_000, nan), and differ in what they accept.
_PLAIN_INTEGER = r"^-?[0-9]{1,18}$"
_LONG_INTEGER = r"^\+?(-?[0-9]+)(?:\.0*)?$"
NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_IS_NUMBER = re.compile(NUMBER)
_IS_CODE = re.compile(r"^[-+]?0[0-9]")  # a leading zero marks a code, such as a postal code


class Int64s(NamedTuple):
    """Whole numbers, with masks of the values that do not fit int64 or are not whole numbers."""

    values: NDArray[np.int64]
    too_low: Mask
    too_high: Mask
    bad: Mask
    rounded: Mask  # from a float too large to be exact


def parse_number(text: str) -> float | None:
    """Return the number (possibly infinite) that a text spells; None if it is not a number.

    >>> parse_number(" 1e3 "), parse_number("-inf"), parse_number("1,5"), parse_number("nan")
    (1000.0, -inf, None, None)
    """
    text = text.strip()
    if _IS_NUMBER.match(text):
        return float(text)
    return float(text) if text.lower().lstrip("+-") in ("inf", "infinity") else None


def parse_integer(text: str) -> int | float | None:
    """Return a whole number of any size, in any notation, or an infinity; None if the text is neither.

    >>> parse_integer("17.0"), parse_integer("9223372036854775807"), parse_integer("1.5")
    (17, 9223372036854775807, None)
    >>> parse_integer("9007199254740993.0"), parse_integer("9007199254740993.5")
    (9007199254740993, None)
    """
    number = parse_number(text)
    if number is None or (math.isinf(number) and "i" in text.lower()):
        return number
    try:
        return int(text)
    except ValueError:  # 17.0, 1e3, or more digits than Python converts
        if not math.isfinite(number) or not number.is_integer():
            return None
        exact = Decimal(text.strip()) if abs(number) >= EXACT else Decimal(number)
        return int(exact) if exact == exact.to_integral_value() else None


def parse_number_unless_code(text: str) -> int | float | None:
    """Return the number that a text spells; None if it is not a number, or is a code such as 01234.

    >>> [parse_number_unless_code(text) for text in ("0.50", "7.0", "01234", "x")]
    [0.5, 7, None, None]
    """
    if not _IS_NUMBER.match(text) or _IS_CODE.match(text):
        return None
    whole = parse_integer(text)
    return parse_number(text) if whole is None else whole


def to_int64(values: Any) -> Int64s:
    """Return the whole numbers of an Arrow array: any integer or float type, booleans, decimals, text."""
    kind = values.type
    none = np.zeros(len(values), bool)
    if pa.types.is_decimal(kind):
        values, kind = values.cast(pa.string()), pa.string()
    if is_text(kind):
        return _text_to_int64(values)
    if pa.types.is_floating(kind):
        return _floats_to_int64(to_numpy(values.cast(pa.float64()).fill_null(0)))
    if pa.types.is_uint64(kind):
        numbers = to_numpy(values.fill_null(0))
        return Int64s(np.minimum(numbers, INT64_MAX).astype(np.int64), none, numbers > INT64_MAX, none, none)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return Int64s(to_numpy(values.cast(pa.int64()).fill_null(0)), none, none, none, none)
    return Int64s(np.zeros(len(values), np.int64), none, none, ~none, none)


def to_float64(values: Any) -> tuple[NDArray[np.float64], Mask]:
    """Return the numbers of an Arrow array, and a mask of the values that are not numbers."""
    kind = values.type
    none = np.zeros(len(values), bool)
    if pa.types.is_decimal(kind):  # a cast would make the last digit depend on the scale that all values share
        values, kind = values.cast(pa.string()), pa.string()
    if is_text(kind):
        return _text_to_float64(values)
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        numbers = to_numpy(values.cast(pa.float64(), safe=False).fill_null(0))
        return np.nan_to_num(numbers, nan=0.0, posinf=np.inf, neginf=-np.inf), none
    return np.zeros(len(values)), ~none


def _floats_to_int64(numbers: NDArray[np.float64]) -> Int64s:
    missing = np.isnan(numbers)
    too_low, too_high = numbers < INT64_MIN, numbers >= 2.0**63
    fits = ~(missing | too_low | too_high)
    values = np.where(fits, numbers, 0).astype(np.int64)
    rounded = (np.abs(numbers) >= EXACT) & (np.abs(numbers) <= 2.0**63)
    bad = fits & (values != numbers)
    values = np.where(too_low, INT64_MIN, np.where(too_high, INT64_MAX, values))
    return Int64s(values, too_low, too_high, bad, rounded)


def _text_to_int64(texts: Any) -> Int64s:
    texts = pc.utf8_trim_whitespace(texts)
    values, rest = cast_where(texts, _PLAIN_INTEGER, pa.int64())
    if len(rest):  # 17.0 and +17 are whole numbers too
        texts = pc.replace_substring_regex(texts, _LONG_INTEGER, r"\1")
        values, rest = cast_where(texts, _PLAIN_INTEGER, pa.int64())
    too_low, too_high, bad = (np.zeros(len(texts), bool) for _ in range(3))
    for row, text in zip(rest, texts.take(pa.array(rest)).to_pylist(), strict=True):
        number = parse_integer(text)
        bad[row] = number is None
        too_low[row] = number is not None and number < INT64_MIN
        too_high[row] = number is not None and number > INT64_MAX
        values[row] = int(min(max(number or 0, INT64_MIN), INT64_MAX))
    return Int64s(values, too_low, too_high, bad, np.zeros(len(texts), bool))


def _text_to_float64(texts: Any) -> tuple[NDArray[np.float64], Mask]:
    texts = pc.utf8_trim_whitespace(texts)
    values, rest = cast_where(texts, NUMBER, pa.float64())
    bad = np.zeros(len(texts), bool)
    for row, text in zip(rest, texts.take(pa.array(rest)).to_pylist(), strict=True):
        number = parse_number(text)
        values[row], bad[row] = number or 0.0, number is None
    return values, bad
