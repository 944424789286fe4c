"""Values of added records: other spellings of valid values, and values of other types or beyond the domain.

The former are accepted, and may change how a column is read; they matter most. Whether a column declares a value
decides only under which name a neighbour is counted, and which values are put into one record.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from sundog.data.columns import Form
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.errors import SundogError

Style = Callable[[Any], Any]  # from a value to another spelling; raises one of NO_SPELLING if there is none


class Kind(StrEnum):
    """What a neighbour has more or fewer."""

    EXTREME = "extreme values"
    MISSING = "missing values"
    COPY = "copies"
    SPELLING = "other spellings of valid values"
    UNDECLARED = "undeclared values"
    REMOVAL = "removals"


NO_SPELLING = (ArithmeticError, ValueError, TypeError, AttributeError)

# What a reader refuses is refused before anything is charged. Values that change how others are read come first.
HOSTILE: tuple[Any, ...] = (
    *("new category", Decimal("2.250"), None, 2**70, math.inf, 0.1 + 0.2, datetime.date(2020, 5, 6), True),
    *("", math.nan, -math.inf, 1e308, -0.0, 2**53 + 1, "1", "1.0", " 1", "nan", "NA"),
    *(np.float32(0.1), "é\u0301", "x" * 5000, 'a"b', "a\nb", "1,2", b"1"),
    *(datetime.datetime(2020, 5, 6, 7, tzinfo=datetime.UTC), "2020-02-29", [1]),
)
HOSTILE_ARRAYS: tuple[Any, ...] = (math.nan, 0.5, -1.0, math.inf, 1e308)  # in all places of an image or a series
HOSTILE_SETS: tuple[Any, ...] = (["new item"], [], [1, 1.0, "1"], [None], ["x" * 5000], "text", None)


def list_hostile(column: Any) -> Sequence[Any]:
    """Return values to try in a column, whether it declares them or not."""
    if column.is_scalar:
        return HOSTILE
    if column.form is Form.SET:
        return [*HOSTILE_SETS, list(column.items)]  # more items than a set may have
    return [np.full(column.shape, value) for value in HOSTILE_ARRAYS]


def classify_value(column: Any, value: Any, *, nulls: Sequence[str] = ()) -> Kind | None:
    """Return what a value is for a column, None if the column refuses it.

    >>> columns = {"n": {"type": "integer", "min": 0, "max": 99, "nullable": True, "out_of_bounds": "clamp"}}
    >>> column = Schema.from_dict({"columns": columns}).columns["n"]
    >>> [classify_value(column, value) for value in (Decimal("7.00"), None, 100, "x")]
    [<Kind.SPELLING: 'other spellings of valid values'>, <Kind.MISSING: 'missing values'>, \
<Kind.UNDECLARED: 'undeclared values'>, None]

    Args:
        column: of the schema.
        value: of one record.
        nulls: texts that mean a missing value.
    """
    given = None if isinstance(value, str) and value in nulls else value
    if not column.complete:
        return Kind.UNDECLARED  # it declares nothing; the fit may still refuse the value
    codes = _try_to_encode(_make_strict(column), given)
    if codes is None:
        return None if _try_to_encode(column, given) is None else Kind.UNDECLARED
    if column.nullable and column.form is not Form.SET and np.all(codes == column.null_code):
        return Kind.MISSING
    return Kind.SPELLING if column.is_scalar else Kind.EXTREME


def _make_strict(column: Any) -> Any:
    """Return the column without what lets it accept values that it does not declare."""
    if column.is_scalar:
        return column.tighten()
    return column.model_copy(
        update={key: "error" for key in ("undeclared", "out_of_bounds") if key in type(column).model_fields}
    )


def _try_to_encode(column: Any, value: Any) -> Any:
    try:
        if column.is_scalar:
            return column.encode([value], where="")
        schema = Schema(columns={"x": column})
        return encode(read({"x": [value]}, schema), schema).codes["x"]
    except (SundogError, *NO_SPELLING):
        return None


# --- spellings ---


def iterate_spellings(column: Any) -> Iterator[tuple[str, Style]]:
    """Yield the names of spellings, and functions that spell a value so, for a column of this form."""
    styles = _SCALARS if column.is_scalar else _SETS if column.form is Form.SET else _ARRAYS
    yield from styles.items()


def _to_decimal(value: Any) -> Decimal:
    number = Decimal(int(value)) if isinstance(value, bool | np.bool_) else Decimal(str(value).strip())
    if not number.is_finite():
        raise ValueError(value)
    return number


def _add_digits(value: Any) -> Decimal:
    number = _to_decimal(value)
    return number.quantize(Decimal(1).scaleb(min(0, int(number.as_tuple().exponent)) - 3))


def _to_whole(value: Any) -> int:
    number = _to_decimal(value)
    if number != int(number):
        raise ValueError(value)
    return int(number)


def _to_single(value: Any) -> np.float32:
    number = np.float32(float(_to_decimal(value)))
    if not np.isfinite(number):
        raise ValueError(value)
    return number


def _to_truth(value: Any) -> bool:
    texts = {"true": True, "yes": True, "1": True, "1.0": True, "false": False, "no": False, "0": False, "0.0": False}
    try:
        return texts[str(value).strip().lower()]
    except KeyError:
        raise ValueError(value) from None


def _to_time(value: Any) -> datetime.datetime:
    return datetime.datetime.fromisoformat(str(value).strip())


def _pad(value: Any) -> str:
    _to_decimal(value)
    text = str(value).strip()
    return f"-00{text[1:]}" if text.startswith("-") else f"00{text}"


_SCALARS: Mapping[str, Style] = {
    "with more digits": _add_digits,
    "with spaces": lambda value: f" {value} ",
    "as a floating-point number": lambda value: float(_to_decimal(value)),
    "with zeros in front": _pad,
    "in scientific notation": lambda value: f"{_to_decimal(value):.6E}",
    "as text": str,
    "as a decimal number": _to_decimal,
    "as a whole number": _to_whole,
    "as a truth value": _to_truth,
    "as a number of a truth value": lambda value: int(_to_truth(value)),
    "as a time": _to_time,
    "as a time in UTC": lambda value: _to_time(value).replace(tzinfo=datetime.UTC),
    "as text of a time": lambda value: _to_time(value).isoformat(sep=" ", timespec="seconds"),
    "as a time of pandas": lambda value: pd.Timestamp(_to_time(value)),
    "as a time of numpy": lambda value: np.datetime64(_to_time(value)),
    "with a space at the end": lambda value: f"{value} ",
    "with a sign": lambda value: f"{_to_decimal(value):+}",
    "in capitals": lambda value: str(value).upper(),
    "in small letters": lambda value: str(value).lower(),
    "as a short float": _to_single,
    "as a fraction": lambda value: Fraction(_to_decimal(value)),
    "as a short integer": lambda value: np.int16(_to_whole(value)),
    "as a long integer of numpy": lambda value: np.uint64(_to_whole(value)),
    "as bytes": lambda value: str(value).encode(),
}
_SETS: Mapping[str, Style] = {
    "as floating-point numbers": lambda value: [float(item) for item in value],
    "as text": lambda value: [str(item) for item in value],
    "with one item as text": lambda value: [*map(str, value[:1]), *value[1:]],
    "in another order, twice": lambda value: [*value, *value][::-1],
    "as decimal numbers": lambda value: [Decimal(str(item)).quantize(Decimal("0.000")) for item in value],
    "as a tuple": tuple,
    "as an array": np.array,
}
_ARRAYS: Mapping[str, Style] = {
    "as floating-point numbers": lambda value: np.asarray(value, np.float64),
    "as short floats": lambda value: np.asarray(value, np.float32),
    "as long integers": lambda value: np.asarray(value, np.int64),
    "as a list": lambda value: np.asarray(value).tolist(),
    "as objects": lambda value: np.asarray(value, object),
}
