"""Helpers for Arrow arrays and types that all column types share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: Any) -> bool:
    """Return whether an Arrow type holds lists, of a fixed length or not."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def unwrap_dictionary(kind: Any) -> Any:
    """Return the value type of a dictionary type; any other Arrow type unchanged."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_missing(values: Any) -> Mask:
    """Return a mask of the null values; NaN counts as null."""
    return to_numpy(pc.is_null(values, nan_is_null=True))


def to_numpy(values: Any) -> NDArray[Any]:
    """Return an Arrow array as a numpy array, copied only if necessary."""
    result: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return result


def cast_where(texts: Any, pattern: str, kind: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Cast the texts that match a pattern; return the values (0 for the others) and the rows that do not match.

    Nulls count as matching.
    """
    fits = pc.match_substring_regex(texts, pattern)
    values = np.array(to_numpy(pc.if_else(fits, texts, None).cast(kind).fill_null(0)))
    return values, np.flatnonzero(to_numpy(fits.fill_null(True)) == 0)


def find_smallest_dtype(size: int) -> np.dtype[Any]:
    """Return the smallest unsigned integer type that holds the codes 0 … size - 1."""
    return np.min_scalar_type(max(size - 1, 0))
