"""Convert records to typed values in memory: Arrow, pandas, polars, numpy."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from sundog.data.records import Records
from sundog.extras import import_extra


def to_table(records: Records) -> pa.Table:
    """Return an Arrow table; sets are lists of items, images and series lists of fixed length.

    >>> from sundog.data.schema import Schema
    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 20, "max": 99}}})
    >>> import numpy as np
    >>> to_table(Records(schema, {"age": np.array([0, 7])}, 2)).to_pydict()
    {'age': [20, 27]}
    """
    return pa.table({name: column.to_arrow(records.codes[name]) for name, column in records.schema.columns.items()})


def to_frame(records: Records) -> pd.DataFrame:
    """Return a pandas DataFrame; sets are lists of items, a series is one column a step; images are refused.

    >>> from sundog.data.schema import Schema
    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 9, "nullable": True}}})
    >>> import numpy as np
    >>> to_frame(Records(schema, {"age": np.array([3, 10])}, 2))["age"].tolist()
    [3, <NA>]
    """
    columns: dict[str, Any] = {}
    for name, column in records.schema.columns.items():
        columns |= column.to_frame(name, records.codes[name])
    return pd.DataFrame(columns)


OUTPUT_TYPES = ("pandas", "polars", "arrow", "arrays")


def convert_records(records: Records, form: str) -> Any:
    """Return the records as one of `OUTPUT_TYPES`."""
    if form == "arrays":
        return {name: column.to_values(records.codes[name]) for name, column in records.schema.columns.items()}
    if form == "pandas":
        return to_frame(records)
    table = to_table(records)
    return import_extra("polars", "polars").from_arrow(table) if form == "polars" else table
