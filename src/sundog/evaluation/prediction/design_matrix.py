"""Design matrices: records as numbers for a learner. The columns follow from the schema alone, never from the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sundog.data.columns import Column
from sundog.data.records import Records

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def scale_to_range(column: Column, codes: NDArray[Any]) -> Floats:
    """Return values scaled to the declared range: 0 is the lowest possible value, 1 the highest, NaN is null.

    >>> from sundog.data.columns import IntegerColumn
    >>> scale_to_range(IntegerColumn(min=10, max=20, nullable=True), np.array([0, 5, 10, 11])).tolist()
    [0.0, 0.5, 1.0, nan]
    """
    places = codes / max(1, column.lattice_size - 1)
    return np.asarray(np.where(is_null(column, codes), np.nan, places))


def is_null(column: Column, codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the codes that stand for a missing value."""
    return np.asarray(codes == column.lattice_size)


def encode_one_hot(records: Records, names: Sequence[str]) -> Any:
    """Return a sparse matrix for linear models: scaled numbers, and an indicator for each code of other columns.

    Nulls have an indicator of their own.

    >>> from sundog.data.schema import Schema
    >>> schema = Schema.from_dict({"columns": {
    ...     "age": {"type": "integer", "min": 0, "max": 4, "nullable": True},
    ...     "sex": {"type": "categorical", "values": ["f", "m"]},
    ... }})
    >>> records = Records(schema, {"age": np.array([2, 5]), "sex": np.array([1, 0])}, 2)
    >>> encode_one_hot(records, ["age", "sex"]).toarray().tolist()
    [[0.5, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]
    """
    blocks = [block for name in names for block in _encode_column(records.schema.columns[name], records.codes[name])]
    return sparse.hstack(blocks, format="csr")


def _encode_column(column: Column, codes: NDArray[Any]) -> list[Any]:
    if not column.is_numeric:
        return [_encode_indicators(codes, column.size)]
    blocks = [sparse.csr_array(np.nan_to_num(scale_to_range(column, codes))[:, None])]
    if column.nullable:
        blocks.append(sparse.csr_array(is_null(column, codes)[:, None].astype(np.float64)))
    return blocks


def _encode_indicators(codes: NDArray[Any], size: int) -> Any:
    count = len(codes)
    return sparse.csr_array((np.ones(count), codes.astype(np.int64), np.arange(count + 1)), shape=(count, size))


def encode_ordinal(records: Records, names: Sequence[str]) -> Floats:
    """Return a matrix for trees with one column per feature: codes, where nulls of numbers are NaN.

    >>> from sundog.data.schema import Schema
    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 4, "nullable": True}}})
    >>> encode_ordinal(Records(schema, {"age": np.array([2, 5])}, 2), ["age"]).tolist()
    [[2.0], [nan]]
    """
    matrix = np.empty((len(records), len(names)))
    for place, name in enumerate(names):
        column, codes = records.schema.columns[name], records.codes[name]
        matrix[:, place] = np.where(is_null(column, codes), np.nan, codes) if column.is_numeric else codes
    return matrix
