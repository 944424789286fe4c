"""Small helpers between numpy, Arrow and text that every column type shares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sundog.errors import DataError

Mask = NDArray[np.bool_]


def chunks(values: Any) -> Iterator[Any]:
    """The values as Arrow arrays, one a chunk, so that a large column never has to be copied whole."""
    if isinstance(values, pa.ChunkedArray):
        yield from values.chunks
    elif isinstance(values, pa.Array):
        yield values
    else:
        yield from chunks(_to_arrow(values))


def _to_arrow(values: Any) -> Any:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        # A mixed object column (1, "unknown", …) has no Arrow type of its own; its spellings do.
        return pa.array([None if value is None or value != value else str(value) for value in values])


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain(values: Any, *, where: str) -> Any:
    """The same values, with the rarer ways that Arrow has to hold text turned into the usual one."""
    kind = values.type
    if pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_string_view(kind):
        try:
            return values.cast(pa.large_string())
        except pa.ArrowInvalid:
            raise DataError(f"{where}: holds bytes that are not UTF-8 text; convert them first") from None
    return values


def alone(values: Any, row: int) -> Any:
    """The value of one row, as an Arrow array of its own."""
    one = values.slice(row, 1)
    return one.dictionary_decode() if pa.types.is_dictionary(one.type) else one


def value_of(one: Any) -> Any:
    """The value in an Arrow array of one, as Python has it."""
    try:
        return one[0].as_py()
    except (OverflowError, ValueError):  # a time that Python's calendar does not reach
        return f"{one.view(pa.int64())[0]} {one.type}"


def missing(values: Any) -> Mask:
    """Which values are null; NaN counts as null."""
    return to_numpy(pc.is_null(values, nan_is_null=True))


def to_numpy(values: Any) -> NDArray[Any]:
    """An Arrow array as numpy, copied only where it must be."""
    result: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return result


def cast_where(texts: Any, pattern: str, kind: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Cast all texts that match a pattern at once; zero for the others, and which rows those are (nulls are not)."""
    fits = pc.match_substring_regex(texts, pattern)
    values = np.array(to_numpy(pc.if_else(fits, texts, None).cast(kind).fill_null(0)))
    return values, np.flatnonzero(to_numpy(fits.fill_null(True)) == 0)


def smallest_dtype(size: int) -> np.dtype[Any]:
    """The smallest unsigned integer type that holds the codes 0 … size - 1."""
    return np.min_scalar_type(max(size - 1, 0))


def shown(value: object, limit: int = 60) -> str:
    """A value on one line, as an error message can carry it.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"
    """
    text = repr(value if isinstance(value, (str, bytes, int, float, bool, type(None))) else str(value))
    text = text if isinstance(value, (str, bytes)) else text.strip("'")
    return text if len(text) <= limit else text[: limit - 1] + "…"
