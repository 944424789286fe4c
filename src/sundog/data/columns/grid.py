"""Arrays of numbers in a declared shape, out of numpy or nested Arrow lists."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sundog.data.columns.arrow import chunks
from sundog.errors import DataError


def to_grid(values: Any, shape: tuple[int, ...], *, where: str) -> NDArray[Any]:
    """The values as one numeric array of (records, *shape); flat records and axes of length 1 are forgiven."""
    grid = _from_arrow(values, shape, where) if isinstance(values, (pa.Array, pa.ChunkedArray)) else np.asarray(values)
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


def first_wrong(grid: NDArray[Any], wrong: NDArray[np.bool_]) -> tuple[int, Any]:
    """The 1-based row of the first marked value, and the value."""
    flat = int(wrong.argmax())
    return flat // math.prod(grid.shape[1:]) + 1, grid.flat[flat].item()


def _from_arrow(values: Any, shape: tuple[int, ...], where: str) -> NDArray[Any]:
    """Nested lists, flattened: every record must hold exactly as many numbers as the shape does."""
    size, first_row = math.prod(shape), 0
    parts = [np.empty((0, size))]
    for chunk in chunks(values):
        flat = chunk
        lengths = np.ones(len(chunk), np.int64)
        while (
            pa.types.is_list(flat.type) or pa.types.is_large_list(flat.type) or pa.types.is_fixed_size_list(flat.type)
        ):
            inner = np.asarray(flat.value_lengths().fill_null(0), np.int64)
            lengths = _sums(inner, lengths)
            flat = flat.flatten()
        if (lengths != size).any():
            row = int((lengths != size).argmax())
            raise DataError(
                f"{where}: row {first_row + row + 1} has {lengths[row]} numbers, the schema says {size}; fix the row"
            )
        parts.append(flat.to_numpy(zero_copy_only=False).reshape(-1, size))
        first_row += len(chunk)
    return np.concatenate(parts[1:] or parts)


def _sums(inner: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of grandchildren of each record, from those of its children and how many children it has."""
    total = np.concatenate([[0], np.cumsum(inner)])
    ends = np.cumsum(lengths)
    result: NDArray[np.int64] = total[ends] - total[ends - lengths]
    return result
