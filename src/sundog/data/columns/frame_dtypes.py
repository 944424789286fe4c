"""The dtypes that a column may have in a DataFrame, and which numbers they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

WHOLE = {name: getattr(pa, name)() for name in ("int8", "int16", "int32", "int64")}
WHOLE |= {f"u{name}": getattr(pa, f"u{name}")() for name in WHOLE}
REAL = {"float32": pa.float32(), "float64": pa.float64()}
TEXT = ("str", "string", "object")
TIME = {f"datetime64[{unit}]": unit for unit in ("s", "ms", "us", "ns")}

_EXACT = {"float32": 2**24, "float64": 2**53}  # up to here the type holds every whole number


def to_nullable(name: str) -> str:
    """Return the pandas dtype that holds the same values and also missing ones.

    >>> to_nullable("uint8"), to_nullable("bool")
    ('UInt8', 'boolean')
    """
    return "boolean" if name == "bool" else name.replace("uint", "UInt") if name[0] == "u" else name.capitalize()


EXTENDED = {to_nullable(name): kind for name, kind in {**WHOLE, **REAL, "bool": pa.bool_()}.items()}
EXTENDED |= {"string": pa.string()}
NUMBERS = {**WHOLE, **REAL, **{to_nullable(name): kind for name, kind in {**WHOLE, **REAL}.items()}}
REALS = tuple(name for name in NUMBERS if "loat" in name)
DTYPES = (*NUMBERS, "bool", "boolean", *TEXT, "category", *TIME, "date")


def find_number_problem(name: str, values: Sequence[Any]) -> str | None:
    """Return why a numeric dtype cannot hold all of these numbers, and what to do; None if it can.

    >>> find_number_problem("int8", [0, 300])
    'dtype int8 does not hold 300 (its values are -128 to 127); use a larger one'
    """
    kind = NUMBERS[name]
    if pa.types.is_integer(kind):
        info = np.iinfo(kind.to_pandas_dtype())
        for value in values:
            if not info.min <= value <= info.max:
                return f"dtype {name} does not hold {value} (its values are {info.min} to {info.max}); use a larger one"
        return None
    size = name.lower()
    for value in values:
        if isinstance(value, int) and abs(value) > _EXACT[size]:
            return f"dtype {name} does not hold {value} exactly; use Int64"
        if abs(value) > float(np.finfo(size).max):
            return f"dtype {name} does not hold {value}; use float64"
    return None


def round_inward(low: float, high: float) -> tuple[np.float32, np.float32]:
    """Return the first float32 that is not below `low`, and the last that is not above `high`."""
    with np.errstate(over="ignore"):
        first, last = np.float32(low), np.float32(high)
    up, down = np.float32(np.inf), np.float32(-np.inf)
    first = np.nextafter(first, up) if float(first) < low else first
    return first, np.nextafter(last, down) if float(last) > high else last
