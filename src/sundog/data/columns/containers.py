"""Convert the values of any container to Arrow, each one alone: see "A record is encoded alone" in docs/privacy.md.

A single record may have changed the type of its container: one blank turns integers into floats, one text turns numbers
into objects, one more digit changes the scale of decimals. So nothing here depends on the type of a column. Each value
has a *kind* (text, number, truth, wall time, instant). Equal numbers have one value and one spelling, whatever their
type: 1, 1.0, `Decimal("1.00")`, `numpy.float32(1)` and True are the number 1, spelled "1".
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sundog.data.columns import time_parsing
from sundog.data.columns.arrow import is_text, to_numpy
from sundog.data.columns.batches import Batches
from sundog.data.columns.number_parsing import EXACT
from sundog.data.columns.value_kinds import KINDS, TEXT, spell_value, tag_value
from sundog.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

MIXED = pa.dense_union([pa.field(name, kind) for name, kind in KINDS.items()])
"""The Arrow type of a column whose values are of several kinds."""


def to_chunks(values: Any, *, where: str = "") -> Iterator[Any]:
    """Yield the values of a list, a Series, an array or batches as Arrow arrays, each value converted alone.

    The arrays hold text, numbers, booleans, dates and timestamps, dictionaries of these, `MIXED`, or nested lists.
    `where` begins the error message about a value that cannot be read.

    >>> [chunk] = to_chunks([1, "x", None, 2.5])
    >>> chunk.to_pylist()
    [1, 'x', None, 2.5]
    """
    if isinstance(values, pa.ChunkedArray | Batches):
        for chunk in values.iterchunks():
            yield simplify(chunk, where=where)
    elif isinstance(values, pa.Array):
        yield simplify(values, where=where)
    elif (series := _as_series(values)) is not None:
        yield from _from_pandas(series, where)
    elif isinstance(values, np.ndarray):
        yield _from_numpy(values, where)
    else:
        yield from_objects(values, where=where)


def from_objects(values: Iterable[Any], *, where: str = "", rows: Sequence[int] | None = None) -> Any:
    """Convert Python objects, each one alone, to an array of their kind; to `MIXED` if there are several kinds.

    `rows` are the row numbers of the values in error messages; by default 1, 2, ….
    """
    held: list[list[Any]] = [[] for _ in KINDS]
    tags, offsets = [], []
    for place, value in enumerate(values):
        try:
            tag, held_value = tag_value(value)
        except (TypeError, ValueError, OverflowError) as error:
            at = f"{where}: row {rows[place] if rows else place + 1}"
            raise DataError(f"{at}: {error}; make it text or a number") from None
        tags.append(tag)
        offsets.append(len(held[tag]))
        held[tag].append(held_value)
    children = [pa.array(part, kind) for part, kind in zip(held, KINDS.values(), strict=True)]
    used = [tag for tag, part in enumerate(held) if part]
    if len(used) <= 1:
        return children[used[0] if used else TEXT]
    nothing = children[TEXT].null_count == len(children[TEXT])
    if len(used) == 2 and TEXT in used and nothing:
        places = np.where(np.array(tags) == used[1], np.array(offsets), -1)
        return children[used[1]].take(pa.array(places, mask=places < 0))
    return pa.UnionArray.from_dense(pa.array(tags, pa.int8()), pa.array(offsets, pa.int32()), children, list(KINDS))


def take_one(chunk: Any, row: int) -> Any:
    """Return the value of one row as an Arrow array of length 1."""
    [(_, one)] = split_kinds(chunk.slice(row, 1))
    return one.dictionary_decode() if pa.types.is_dictionary(one.type) else one


def split_kinds(chunk: Any) -> list[tuple[Any, Any]]:
    """Split a chunk by kind; return pairs of rows (a slice or an array) and the array of their values.

    >>> [(rows.tolist(), part.to_pylist()) for rows, part in split_kinds(from_objects([1, "x", 2]))]
    [([1], ['x']), ([0, 2], [1, 2])]
    """
    if chunk.type != MIXED:
        return [(slice(None), chunk)]
    if chunk.offset:  # pyarrow's `type_codes` ignores the offset of a slice
        chunk = chunk.take(pa.array(np.arange(len(chunk))))
    tags, offsets = to_numpy(chunk.type_codes), to_numpy(chunk.offsets)
    rows = [np.flatnonzero(tags == tag) for tag in range(len(KINDS))]
    return [(row, chunk.field(tag).take(pa.array(offsets[row]))) for tag, row in enumerate(rows) if len(row)]


# --- typed containers -----------------------------------------------------------------------------------


def _from_numpy(values: NDArray[Any], where: str) -> Any:
    kind = values.dtype.kind
    if values.ndim != 1:
        raise DataError(f"{where}: has {values.ndim} axes, not one value a record; declare another type")
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        return _from_numpy(np.asarray(values.data), where).take(pa.array(np.arange(len(values)), mask=mask))
    if kind == "M":
        return pa.array(time_parsing.from_numpy(values), KINDS["wall"], mask=np.isnat(values))
    if kind == "f" and values.dtype.itemsize not in (4, 8):
        values = values.astype(np.float64)
    if kind in "biuf":
        return pa.array(values.astype(values.dtype.newbyteorder("="), copy=False), from_pandas=True)
    if kind in "USTO":
        return _from_object_array(values, where)
    raise DataError(f"{where}: holds {values.dtype} values; make them text or numbers")


def _from_object_array(values: NDArray[Any], where: str) -> Any:
    """Convert an array of objects; the fast path for objects of one kind gives the same values."""
    from pandas.api.types import infer_dtype

    kind = _QUICK.get("string" if values.dtype.kind in "UT" else infer_dtype(values, skipna=True))
    if kind is not None:
        with suppress(pa.ArrowException, ValueError, TypeError, OverflowError):
            return pa.array(values.tolist(), kind, from_pandas=True)
    return from_objects(values.tolist() if values.dtype.kind != "O" else values, where=where)


_QUICK = {"string": pa.string(), "integer": pa.int64(), "floating": pa.float64(), "boolean": pa.bool_()}


def _as_series(values: Any) -> pd.Series[Any] | None:
    """Return pandas values as a Series, None for others; pandas is not imported only to find out."""
    if "pandas" not in sys.modules:
        return None
    import pandas as pd

    return pd.Series(values) if isinstance(values, pd.Series | pd.Index | pd.api.extensions.ExtensionArray) else None


def _from_pandas(series: pd.Series[Any], where: str) -> Iterator[Any]:
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = np.asarray(series.cat.codes, np.int32)
        index = pa.array(codes, mask=codes < 0)
        categories = pa.concat_arrays([*to_chunks(dtype.categories, where=where)] or [pa.array([], pa.string())])
        if categories.type == MIXED:
            yield categories.take(index)
        else:
            yield pa.DictionaryArray.from_arrays(index, categories, ordered=bool(dtype.ordered))
    elif isinstance(dtype, pd.DatetimeTZDtype):
        times = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        zone = getattr(dtype.tz, "key", "UTC")  # only proposed in drafts; instants do not depend on it
        yield pa.array(time_parsing.from_numpy(times), pa.timestamp("us", zone), mask=np.isnat(times))
    elif isinstance(dtype, np.dtype | pd.SparseDtype):
        yield _from_numpy(np.asarray(series), where)
    elif isinstance(dtype, pd.ArrowDtype | pd.StringDtype) or pd.api.types.is_numeric_dtype(dtype):
        yield from to_chunks(pa.array(series.array, from_pandas=True), where=where)
    else:
        yield from_objects(series.astype(object), where=where)


def simplify(values: Any, *, where: str = "") -> Any:
    """Return the same values, with rare Arrow types converted to common ones."""
    kind = values.type
    if kind == MIXED or (is_text(kind) and not pa.types.is_string_view(kind)):
        return values
    if pa.types.is_dictionary(kind):
        inner = simplify(values.dictionary, where=where)
        if inner.type == MIXED or pa.types.is_nested(inner.type):
            return inner.take(values.indices)
        return pa.DictionaryArray.from_arrays(values.indices, inner, ordered=kind.ordered)
    for fits, convert in _UNUSUAL:
        if fits(kind):
            try:
                return convert(values)
            except (pa.ArrowException, UnicodeDecodeError):
                message = "holds bytes that are not UTF-8 text; convert them first"
                raise DataError(f"{where}: {message}" if where else message) from None
    if pa.types.is_duration(kind) or pa.types.is_interval(kind):
        raise DataError(f"{where}: holds durations ({kind}); make them text or numbers")
    return values


def _convert_by_objects(values: Any) -> Any:
    return from_objects(values.to_pylist())


def _convert_to_strings(values: Any) -> Any:
    return values.cast(pa.binary()).cast(pa.large_string())


_UNUSUAL: tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...] = (
    (pa.types.is_null, lambda values: values.cast(pa.string())),
    (pa.types.is_string_view, lambda values: values.cast(pa.large_string())),
    (pa.types.is_binary, _convert_to_strings),
    (pa.types.is_large_binary, lambda values: values.cast(pa.large_string())),
    (pa.types.is_fixed_size_binary, _convert_to_strings),
    (pa.types.is_binary_view, lambda values: values.cast(pa.binary()).cast(pa.large_string())),
    (pa.types.is_float16, lambda values: values.cast(pa.float32())),
    (pa.types.is_decimal32, lambda values: values.cast(pa.decimal128(38, values.type.scale))),
    (pa.types.is_decimal64, lambda values: values.cast(pa.decimal128(38, values.type.scale))),
    (pa.types.is_time, _convert_by_objects),
    (pa.types.is_union, _convert_by_objects),
    (pa.types.is_run_end_encoded, lambda values: simplify(pc.run_end_decode(values))),
    (lambda kind: isinstance(kind, pa.UuidType), _convert_by_objects),
    (lambda kind: isinstance(kind, pa.BaseExtensionType), lambda values: simplify(values.storage)),
)


def spell_values(chunk: Any, *, where: str) -> Any:
    """Return the canonical spelling of each value of a chunk, as Arrow text; nulls stay null, and NaN becomes null.

    >>> spell_values(pa.array([1.0, 2.5, None]), where="t.parquet: column 'n'").to_pylist()
    ['1', '2.5', None]
    """
    kind = chunk.type
    if kind == MIXED:
        parts = [(rows, spell_values(part, where=where)) for rows, part in split_kinds(chunk)]
        order = np.argsort(np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in parts)]))
        return pa.concat_arrays([part for _, part in parts]).take(pa.array(order))
    if is_text(kind):
        return chunk.cast(pa.string()) if not pa.types.is_string(kind) else chunk
    if pa.types.is_dictionary(kind):
        return spell_values(chunk.dictionary, where=where).take(chunk.indices)
    if pa.types.is_integer(kind):
        return chunk.cast(pa.string())
    refuse_rounded(chunk, where)
    distinct = chunk.dictionary_encode()
    return pa.array([spell_value(value) for value in to_python(distinct.dictionary)], pa.string()).take(
        distinct.indices
    )


def refuse_rounded(chunk: Any, where: str) -> None:
    """Refuse floats that may be whole numbers whose last digits were lost."""
    if pa.types.is_floating(chunk.type) and len(chunk):
        numbers = np.abs(to_numpy(chunk.cast(pa.float64()).fill_null(0)))
        if (np.isfinite(numbers) & (numbers >= EXACT)).any():
            raise DataError(f"{where}: {ROUNDED}")


ROUNDED = "a floating-point number of 2^53 or more may have lost its last digits; give the column as integers or text"


def unwrap_one(one: Any) -> Any:
    """Return the value of an Arrow array of length 1, for an error message."""
    return to_python(one)[0]


def to_python(values: Any) -> list[Any]:
    """Return the values of an Arrow array of one kind as str, int, float, bool, `time_parsing.Time` or None.

    As in `from_objects`, decimals become int or float, and whole numbers beyond 64 bits become text.
    """
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        micros, aware, _ = time_parsing.parse_times(values, None)
        missing = to_numpy(pc.is_null(values))
        return [
            None if null else time_parsing.Time(int(tick), bool(zoned))
            for tick, zoned, null in zip(micros, aware, missing, strict=True)
        ]
    found: list[Any] = values.to_pylist()
    if pa.types.is_decimal(values.type) or pa.types.is_uint64(values.type):
        found = [tag_value(value)[1] for value in found]
    return found
