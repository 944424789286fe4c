"""Convert numpy arrays, nested Arrow lists and Python lists to arrays of numbers in a declared shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sundog.data.columns.arrow import is_list
from sundog.data.columns.containers import to_chunks
from sundog.errors import DataError


def to_grid(values: Any, shape: tuple[int, ...], *, where: str) -> NDArray[Any]:
    """Return the values as one numeric array of (records, *shape); flat records and axes of length 1 are accepted."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        grid = _from_arrow(values, shape, where)
    elif isinstance(values, np.ndarray) and values.dtype.kind != "O":
        grid = values
    else:
        grid = _from_objects(values, shape, where)
    if grid.dtype.kind == "b":
        grid = grid.astype(np.uint8)
    if grid.dtype.kind not in "uif":
        raise DataError(f"{where}: holds {grid.dtype} values; give it an array of numbers")
    inner = grid.shape[1:]
    if inner != (math.prod(shape),) and [n for n in inner if n != 1] != [n for n in shape if n != 1]:
        raise DataError(
            f"{where}: its records have shape {list(inner)}, the schema says {list(shape)}; change one of them"
        )
    return grid.reshape((len(grid), *shape))


def refuse_masked(values: NDArray[Any], where: str, first_row: int = 1) -> None:
    """Refuse records with masked values: a value under a mask must not be read, and not all columns are nullable."""
    masked = np.ma.getmaskarray(values).any(axis=tuple(range(1, values.ndim)))
    if masked.any():
        row = first_row + int(masked.argmax())
        raise DataError(f"{where}: row {row} has masked values; fill them, or make them NaN: `.filled(np.nan)`")


def find_first(grid: NDArray[Any], wrong: NDArray[np.bool_]) -> tuple[int, Any]:
    """Return the row (from 1) of the first value that a mask selects, and the value."""
    flat = int(wrong.argmax())
    return flat // math.prod(grid.shape[1:]) + 1, grid.flat[flat].item()


def _from_objects(records: Any, shape: tuple[int, ...], where: str) -> NDArray[np.float64]:
    """Convert records, each one alone: an array, or a list of numbers in which None is missing."""
    size = math.prod(shape)
    grid = np.empty((len(records), size))
    for row, record in enumerate(records):
        if isinstance(record, np.ma.MaskedArray):
            refuse_masked(record[None], where, row + 1)
        numbers = np.array(record, np.float64) if _is_numeric(record) else None
        if numbers is None or numbers.size != size:
            found = "not an array of numbers" if numbers is None else f"{numbers.size} numbers"
            raise DataError(f"{where}: row {row + 1} has {found}, the schema says {size}; fix the row")
        grid[row] = numbers.reshape(-1)
    return grid


def _is_numeric(record: Any) -> bool:
    """Return whether numpy reads a record as an array of numbers, missing ones included."""
    try:
        array = np.asarray(record)
    except ValueError:  # ragged
        return False
    if array.dtype.kind == "O":
        return all(value is None or isinstance(value, (int, float)) for value in array.reshape(-1))
    return array.dtype.kind in "biuf"


def _from_arrow(values: Any, shape: tuple[int, ...], where: str) -> NDArray[Any]:
    """Flatten nested lists; every record must hold exactly as many numbers as the shape."""
    size, first_row = math.prod(shape), 0
    parts = [np.empty((0, size))]
    for chunk in to_chunks(values, where=where):
        flat = chunk
        lengths = np.ones(len(chunk), np.int64)
        while is_list(flat.type):
            inner = np.asarray(flat.value_lengths().fill_null(0), np.int64)
            lengths = _sum_lengths(inner, lengths)
            flat = flat.flatten()
        if (lengths != size).any():
            row = int((lengths != size).argmax())
            raise DataError(
                f"{where}: row {first_row + row + 1} has {lengths[row]} numbers, the schema says {size}; fix the row"
            )
        parts.append(flat.to_numpy(zero_copy_only=False).reshape(-1, size))
        first_row += len(chunk)
    return np.concatenate(parts[1:] or parts)


def _sum_lengths(inner: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the total length of the inner lists of each record, given its number of inner lists."""
    total = np.concatenate([[0], np.cumsum(inner)])
    ends = np.cumsum(lengths)
    result: NDArray[np.int64] = total[ends] - total[ends - lengths]
    return result
