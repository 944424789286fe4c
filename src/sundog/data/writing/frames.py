"""Records as typed values in memory: Arrow, pandas, numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from sundog.data import dtypes
from sundog.data.columns import Column, DatetimeColumn, ImageColumn, ScalarColumn, SetColumn
from sundog.data.reading.transactions import to_lists
from sundog.data.records import Records
from sundog.data.writing.csv_text import csv_names
from sundog.errors import DataError
from sundog.extras import import_extra

Array = np.ndarray[Any, Any]

EXACT = 2**53  # float64 holds every whole number up to this one


def to_table(records: Records) -> pa.Table:
    """An Arrow table; sets are lists of items, images and series lists of fixed length.

    Example:
        >>> from sundog.data.schema import Schema
        >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 20, "max": 99}}})
        >>> to_table(Records(schema, {"age": np.array([0, 7])}, 2)).to_pydict()
        {'age': [20, 27]}
    """
    return pa.table({name: to_arrow(column, records.codes[name]) for name, column in records.schema.columns.items()})


def to_arrow(column: Column, codes: Any) -> pa.Array:
    """The values of one column as an Arrow array."""
    if isinstance(column, SetColumn):
        return to_lists(column.items, codes)
    if isinstance(column, ScalarColumn):
        return dtypes.to_arrow(column, codes)
    flat = pa.array(np.ascontiguousarray(column.decode(codes)).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, math.prod(column.shape))


def to_frame(records: Records) -> pd.DataFrame:
    """A pandas DataFrame; sets are lists of items, a series is one column a step, and images do not fit.

    Example:
        >>> from sundog.data.schema import Schema
        >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 9, "nullable": True}}})
        >>> to_frame(Records(schema, {"age": np.array([3, 10])}, 2))["age"].tolist()
        [3, <NA>]
    """
    columns: dict[str, Any] = {}
    for name, column in records.schema.columns.items():
        codes = records.codes[name]
        if isinstance(column, ImageColumn):
            raise DataError(f"column {name!r}: images do not fit a DataFrame; sample(…, as_='arrays'), or write .npz")
        if isinstance(column, ScalarColumn):
            columns[name] = dtypes.to_series(column, codes)
        elif isinstance(column, SetColumn):
            columns[name] = to_arrow(column, codes).to_pandas()
        else:
            columns |= dict(zip(csv_names(name, column), column.decode(codes).T, strict=True))
    return pd.DataFrame(columns)


FORMS = ("pandas", "polars", "arrow", "arrays")


def to_form(records: Records, form: str) -> Any:
    """The records as one of the forms."""
    if form == "arrays":
        return {name: _values(column, records.codes[name]) for name, column in records.schema.columns.items()}
    if form == "pandas":
        return to_frame(records)
    table = to_table(records)
    return import_extra("polars", "polars").from_arrow(table) if form == "polars" else table


def _values(column: Column, codes: Any) -> Any:
    """One value a record as an Arrow array, everything else as numpy or scipy has it."""
    return dtypes.to_arrow(column, codes) if isinstance(column, ScalarColumn) else column.decode(codes)


def to_arrays(column: Column, codes: Any, null: str) -> dict[str, Array]:
    """The numpy arrays of one column: its values under "", or the parts of a sparse matrix under their names.

    What is missing is NaN, NaT or, in text, the given spelling.

    Example:
        >>> from sundog.data.columns import CategoricalColumn
        >>> to_arrays(CategoricalColumn(values=["x", "y"]), np.array([1, 0]), "")
        {'': array(['y', 'x'], dtype='<U1')}
    """
    if isinstance(column, SetColumn):
        rows = sparse.csr_array(codes)
        return {"indices": rows.indices, "indptr": rows.indptr, "shape": np.array(rows.shape, np.int64)}
    values = column.decode(codes)
    if column.shape:
        return {"": values}
    if isinstance(column, DatetimeColumn):
        if column.timezone is None:
            return {"": values.to_numpy(zero_copy_only=False)}
        # numpy's times have no timezone, and an hour that the clock shows twice would be lost: text has the offset.
        return {"": np.array(column.spell(values).fill_null(null).to_pylist())}
    if pa.types.is_string(values.type):
        spellings = np.array([*column.decode(np.arange(column.lattice_size)).to_pylist(), null])
        return {"": spellings[codes]}
    if not column.nullable:
        return {"": values.to_numpy(zero_copy_only=False)}
    whole = pa.types.is_integer(values.type)
    if whole and any(
        abs(bound.as_py()) > EXACT for bound in pa.compute.min_max(values.drop_null()).values() if bound.is_valid
    ):
        return {"": np.array(values.cast(pa.string()).fill_null(null).to_pylist())}
    return {"": values.cast(pa.float64()).to_numpy(zero_copy_only=False)}
