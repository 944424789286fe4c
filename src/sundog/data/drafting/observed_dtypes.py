"""The dtypes that a draft declares: those observed in the data, unless they are the defaults.

One record can change the dtype of a frame (a blank turns int64 into float64), so synthetic data has the dtypes that
the schema declares; see `ScalarColumn.to_arrow`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sundog.data.columns import AnyColumn, Form, ScalarColumn
from sundog.data.columns.frame_dtypes import DTYPES, REAL, WHOLE, to_nullable

if TYPE_CHECKING:
    import pandas as pd


def declare_dtypes(guesses: Mapping[str, dict[str, Any]], seen: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return drafted columns with the dtypes observed in the data, where they are possible and not the default.

    >>> declare_dtypes({"n": {"type": "integer", "min": 0, "max": 9}}, {"n": "int16"})
    {'n': {'type': 'integer', 'min': 0, 'max': 9, 'dtype': 'int16'}}
    """
    from pydantic import TypeAdapter, ValidationError

    found = {name: dict(guess) for name, guess in guesses.items()}
    for name in (name for name in found if seen.get(name) in DTYPES):
        try:
            column: AnyColumn = TypeAdapter(AnyColumn).validate_python({**found[name], "dtype": seen[name]})
        except ValidationError:  # the schema explains the error
            continue
        if column.form is Form.SCALAR and not column.find_dtype_problem() and seen[name] != _find_default_dtype(column):
            found[name]["dtype"] = seen[name]
    return found


def _find_default_dtype(column: ScalarColumn) -> str | None:
    """Return the dtype of the column if none is declared."""
    if not column.complete:
        return column.unlearned_dtype
    plain = column.model_copy(update={"frame_dtype": None})
    return drop_timezone(plain.to_series(np.zeros(1, np.int64)).dtype)


def drop_timezone(dtype: Any) -> str:
    """Return the name of a pandas dtype without its timezone, which the schema declares separately."""
    name = str(dtype)
    return f"{name.partition(',')[0]}]" if name.startswith("datetime64[") and "," in name else name


def observe_dtypes(data: Any, columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the dtypes of a DataFrame, or the dtypes that correspond to the Arrow types of a table."""
    seen = {name: _name_arrow_dtype(values) for name, values in columns.items() if isinstance(values, pa.ChunkedArray)}
    import pandas as pd

    if isinstance(data, pd.DataFrame):
        own = {str(label): _name_frame_dtype(values) for label, values in data.items()}
        seen |= {name: dtype for name, dtype in own.items() if dtype in DTYPES}
    return {name: dtype for name, dtype in seen.items() if dtype is not None}


def _name_frame_dtype(values: pd.Series[Any]) -> str:
    """Return the dtype of a DataFrame column; for objects, "date" or "object" (text), "" if of several types."""
    if values.dtype != object:
        return drop_timezone(values.dtype)
    kinds = {type(value) for value in values.dropna()}
    return {date: "date", str: "object"}.get(kinds.pop(), "") if len(kinds) == 1 else ""


def _name_arrow_dtype(values: pa.ChunkedArray) -> str | None:
    kind = values.type
    if pa.types.is_dictionary(kind):
        return "category"
    if pa.types.is_timestamp(kind):
        return f"datetime64[{kind.unit}]"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "str"
    plain = {kind: name for name, kind in {**WHOLE, **REAL, "bool": pa.bool_()}.items()}.get(kind)
    return plain if plain is None or not values.null_count or plain in REAL else to_nullable(plain)
