"""The dtype that a column has in a DataFrame: declared in the schema, and never taken from the private data.

One record can change the dtype of a frame (a blank makes int64 float64), so what comes back follows from the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sundog.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    ContinuousColumn,
    DatetimeColumn,
    IntegerColumn,
    ListedColumn,
    OrderedColumn,
    OrdinalColumn,
    ScalarColumn,
)
from sundog.data.columns.listed import Value
from sundog.data.validation_errors import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

_WHOLE = {name: getattr(pa, name)() for name in ("int8", "int16", "int32", "int64")}
_WHOLE |= {f"u{name}": getattr(pa, f"u{name}")() for name in _WHOLE}
_REAL = {"float32": pa.float32(), "float64": pa.float64()}
_TEXT = ("str", "string", "object")
_TIME = {f"datetime64[{unit}]": unit for unit in ("s", "ms", "us", "ns")}
_TICKS = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}  # microseconds in the unit, or one
_NS_LIMIT = 2**63 // 1000  # microseconds that nanoseconds of 64 bits can count
_EXACT = {"float32": 2**24, "float64": 2**53}  # whole numbers up to here are floats of that size


def _nullable(name: str) -> str:
    """What pandas calls the dtype that can hold missing values as well."""
    return "boolean" if name == "bool" else name.replace("uint", "UInt") if name[0] == "u" else name.capitalize()


_EXTENDED = {_nullable(name): kind for name, kind in {**_WHOLE, **_REAL, "bool": pa.bool_()}.items()}
_EXTENDED |= {"string": pa.string()}
_NUMBERS = {**_WHOLE, **_REAL, **{_nullable(name): kind for name, kind in {**_WHOLE, **_REAL}.items()}}
DTYPES = (*_NUMBERS, "bool", "boolean", *_TEXT, "category", *_TIME, "date")


# --- what a schema may declare ---


def problem(column: Column) -> str | None:
    """Why the declared dtype cannot hold the values that are declared, and what to do; None where it can.

    >>> problem(IntegerColumn(min=0, max=300, dtype="int8"))
    'dtype int8 does not hold 300 (its values are -128 to 127); use a larger one'
    """
    name = column.frame_dtype if isinstance(column, ScalarColumn) else None
    if name is None or not isinstance(column, ScalarColumn):
        return None
    if name not in DTYPES:
        return f"unknown dtype {name!r}; {did_you_mean(name, DTYPES)}"
    possible = _possible(column)
    if name not in possible:
        return f"dtype {name} does not hold the values of a column of this type; use {', '.join(possible)}"
    if column.nullable and (name in _WHOLE or name == "bool"):
        return f"dtype {name} has no missing values and the column is nullable; use {_nullable(name)}"
    if name in _NUMBERS:
        return _number_problem(column, name)
    return _time_problem(column, name) if isinstance(column, DatetimeColumn) and name not in _TEXT else None


def _possible(column: ScalarColumn) -> tuple[str, ...]:
    numbers, reals = tuple(_NUMBERS), tuple(name for name in _NUMBERS if "loat" in name)
    if isinstance(column, IntegerColumn):
        return (*numbers, *_TEXT)
    if isinstance(column, ContinuousColumn):
        return (*reals, *_TEXT)
    if isinstance(column, DatetimeColumn):
        return (*_TIME, *(["date"] if column.resolution == "day" and column.timezone is None else []), *_TEXT)
    if isinstance(column, BooleanColumn):
        return ("bool", "boolean", "category", *_TEXT)
    kind = type(_values_of(column)[0])
    typed = {int: numbers, float: reals, bool: ("bool", "boolean")}.get(kind, ())
    return (*typed, "category", *_TEXT)


def _values_of(column: ScalarColumn) -> tuple[Value, ...]:
    """The listed values; those that are learned are text."""
    return (column.values or ("",)) if isinstance(column, ListedColumn) else ()


def _number_problem(column: ScalarColumn, name: str) -> str | None:
    if isinstance(column, IntegerColumn) and column.learn:
        holds_all = name.lower() in ("int64", "float64")
        return None if holds_all else f"dtype {name} may not hold the bounds that are learned; leave it out"
    values = [column.min, column.max] if isinstance(column, IntegerColumn | ContinuousColumn) else _values_of(column)
    known: list[Any] = [value for value in values if value is not None]
    kind = _NUMBERS[name]
    if pa.types.is_integer(kind):
        info = np.iinfo(kind.to_pandas_dtype())
        for value in known:
            if not info.min <= value <= info.max:
                return f"dtype {name} does not hold {value} (its values are {info.min} to {info.max}); use a larger one"
        return None
    size = name.lower()
    for value in known:
        if isinstance(value, int) and abs(value) > _EXACT[size]:
            return f"dtype {name} does not hold {value} exactly; use Int64"
        if abs(value) > float(np.finfo(size).max):
            return f"dtype {name} does not hold {value}; use float64"
    if isinstance(column, ContinuousColumn) and len(known) == 2 and size == "float32":
        low, high = _inner_bounds(*known)
        return f"dtype {name} holds nothing from {known[0]} to {known[1]}; use float64" if low > high else None
    return None


def _time_problem(column: DatetimeColumn, name: str) -> str | None:
    if name == "date":
        return None
    unit = _TIME[name]
    step = {"millisecond": 10**3, "microsecond": 1}.get(column.resolution, 10**6)
    if step < _TICKS[unit]:
        return f"dtype {name} does not hold {column.resolution}s; use a finer one"
    if unit == "ns" and (column.learn or any(abs(_micros(bound)) >= _NS_LIMIT for bound in (column.min, column.max))):
        return f"dtype {name} does not hold all times from min to max; use datetime64[us]"
    return None


def _micros(bound: str | None) -> int:
    return int(np.datetime64(str(bound)[:10], "us").astype(np.int64))


# --- values of that dtype ---


def to_arrow(column: ScalarColumn, codes: Any) -> pa.Array:
    """The values as the schema types and spells them.

    >>> to_arrow(BooleanColumn(true="Yes", false="No"), [1, 0]).to_pylist()
    ['Yes', 'No']
    >>> to_arrow(IntegerColumn(min=0, max=9, dtype="int16"), [3]).type
    DataType(int16)
    """
    name = column.frame_dtype
    if name == "category":
        return _categories(column, codes)
    values = column.decode(codes)
    if name in _TEXT and (name != "object" or isinstance(column, OrderedColumn)):
        return _spell(column, values)
    if name in (None, "object") and _is_spelled(column):
        return _spell(column, values)
    if name is None or name == "object":
        return values
    if name in _TIME:
        return values.cast(pa.timestamp(_TIME[name], values.type.tz))
    if name == "date":
        return values.cast(pa.date32())
    if name.lower() == "float32":
        return _to_float32(column, values)
    return values.cast(_NUMBERS[name]) if name in _NUMBERS else values


def to_series(column: ScalarColumn, codes: Any) -> pd.Series[Any]:
    """The values as pandas has them.

    >>> to_series(IntegerColumn(min=0, max=9, nullable=True), [3, 10]).tolist()
    [3, <NA>]
    """
    import pandas as pd

    name, values = column.frame_dtype, to_arrow(column, codes)
    if name == "object":
        return pd.Series(values.to_pylist(), dtype=object)
    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    special: dict[Any, Any] = nullable if name is None and column.nullable else {}
    if name in _EXTENDED:
        special = {_EXTENDED[name]: pd.api.types.pandas_dtype(name)}
    if values.type in special:
        return values.to_pandas(types_mapper=special.get)  # type: ignore[no-any-return]
    return values.to_pandas()  # type: ignore[no-any-return]


def _is_spelled(column: ScalarColumn) -> bool:
    """Whether a boolean column has spellings of its own: it holds text then, and text comes back."""
    return isinstance(column, BooleanColumn) and (column.true, column.false) != ("true", "false")


def _spell(column: ScalarColumn, values: pa.Array) -> pa.Array:
    if isinstance(column, BooleanColumn):
        return pc.if_else(values, column.true, column.false)
    return column.spell(values) if isinstance(column, OrderedColumn) else values.cast(pa.string())


def _categories(column: ScalarColumn, codes: Any) -> pa.Array:
    """Categories are all that are declared, in their order, whether they occur or not."""
    numbers: NDArray[np.int64] = np.asarray(codes).astype(np.int64)
    column.decode(numbers)  # refuses codes that are none
    declared = column.decode(np.arange(column.lattice_size))
    declared = _spell(column, declared) if _is_spelled(column) else declared
    indices = pa.array(numbers, pa.int32(), mask=numbers >= column.lattice_size)
    return pa.DictionaryArray.from_arrays(indices, declared, ordered=isinstance(column, OrdinalColumn))


def _to_float32(column: ScalarColumn, values: pa.Array) -> pa.Array:
    """The nearest float32 that is not beyond the bounds: what comes back can be read again."""
    near = values.cast(pa.float64()).cast(pa.float32(), safe=False)
    if not isinstance(column, ContinuousColumn) or column.min is None or column.max is None:
        return near
    low, high = (pa.scalar(float(bound), pa.float32()) for bound in _inner_bounds(column.min, column.max))
    return pc.max_element_wise(pc.min_element_wise(near, high, skip_nulls=False), low, skip_nulls=False)


def _inner_bounds(low: float, high: float) -> tuple[np.float32, np.float32]:
    """The first float32 that is not below `low`, and the last that is not above `high`."""
    with np.errstate(over="ignore"):
        first, last = np.float32(low), np.float32(high)
    up, down = np.float32(np.inf), np.float32(-np.inf)
    first = np.nextafter(first, up) if float(first) < low else first
    return first, np.nextafter(last, down) if float(last) > high else last


# --- drafts ---


def with_dtypes(guesses: Mapping[str, dict[str, Any]], seen: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Drafted columns with the dtypes that were seen in the data, where they can be declared and need to be.

    >>> with_dtypes({"n": {"type": "integer", "min": 0, "max": 9}}, {"n": "int16"})
    {'n': {'type': 'integer', 'min': 0, 'max': 9, 'dtype': 'int16'}}
    """
    from pydantic import TypeAdapter, ValidationError

    from sundog.data.columns import AnyColumn

    found = {name: dict(guess) for name, guess in guesses.items()}
    for name in (name for name in found if seen.get(name) in DTYPES):
        try:
            column = TypeAdapter(AnyColumn).validate_python({**found[name], "dtype": seen[name]})
        except ValidationError:  # which the schema will explain
            continue
        if isinstance(column, ScalarColumn) and not problem(column) and seen[name] != _usual(column):
            found[name]["dtype"] = seen[name]
    return found


def _usual(column: ScalarColumn) -> str | None:
    """The dtype that the column has where none is declared."""
    if not column.complete:
        return "str" if isinstance(column, CategoricalColumn | OrdinalColumn) else None
    plain = column.model_copy(update={"frame_dtype": None})
    return plain_name(to_series(plain, np.zeros(1, np.int64)).dtype)


def plain_name(dtype: Any) -> str:
    """The name of a pandas dtype without its timezone, which has a place of its own in the schema."""
    name = str(dtype)
    return f"{name.partition(',')[0]}]" if name.startswith("datetime64[") and "," in name else name


def seen_dtypes(data: Any, columns: Mapping[str, Any]) -> dict[str, str]:
    """The dtypes of a DataFrame, or those that the Arrow types of a table correspond to."""
    seen = {name: _arrow_name(values) for name, values in columns.items() if isinstance(values, pa.ChunkedArray)}
    import pandas as pd

    if isinstance(data, pd.DataFrame):
        own = {str(label): _frame_name(values) for label, values in data.items()}
        seen |= {name: dtype for name, dtype in own.items() if dtype in DTYPES}
    return {name: dtype for name, dtype in seen.items() if dtype is not None}


def _frame_name(values: pd.Series[Any]) -> str:
    """The dtype of a frame's column; objects are dates, text, or of several types, which no dtype keeps apart."""
    if values.dtype != object:
        return plain_name(values.dtype)
    kinds = {type(value) for value in values.dropna()}
    return {date: "date", str: "object"}.get(kinds.pop(), "") if len(kinds) == 1 else ""


def _arrow_name(values: pa.ChunkedArray) -> str | None:
    kind = values.type
    if pa.types.is_dictionary(kind):
        return "category"
    if pa.types.is_timestamp(kind):
        return f"datetime64[{kind.unit}]"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "str"
    plain = {kind: name for name, kind in {**_WHOLE, **_REAL, "bool": pa.bool_()}.items()}.get(kind)
    return plain if plain is None or not values.null_count or plain in _REAL else _nullable(plain)
