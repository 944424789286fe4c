"""What kind of column some values look like: the guesses behind a drafted schema."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sundog.data.columns import arrow, clock, numbers
from sundog.data.columns.datetime import MICROSECONDS
from sundog.data.source import Values

Array = np.ndarray[Any, Any]
Guess = dict[str, Any]

LISTED = 1000  # more categories than this are better learned than listed
EXACT = 2**53  # float64 holds every whole number below this one
DIGITS = 9  # the finest decimal resolution that is looked for
ENOUGH = 20  # so many values, nearly all different, look like names and not like categories
FEW = 50  # so many different ones may still be kinds of user, not users
BOOLEANS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})

_INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"  # a leading zero means a code (postal, phone), not a number
_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_CODE = r"^0[0-9]"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}.*)?$"
_ID_NAME = re.compile(r"(^|[_ .-])(id|uuid|guid|key)$", re.IGNORECASE)
_OWNER_NAME = re.compile(r"^(user|person|patient|customer|client|household|house)$", re.IGNORECASE)


def guess_column(values: Values) -> Guess | None:
    """The declaration that the values suggest, or None where they are all missing.

    Example:
        >>> guess_column(pa.chunked_array([["1.5", "2.25", None]]))
        {'type': 'continuous', 'min': 1.5, 'max': 2.25, 'resolution': 0.01, 'nullable': True}
    """
    if isinstance(values, np.ndarray):
        return _guess_array(values)
    if not isinstance(values, pa.ChunkedArray):
        longest = int(np.diff(values.indptr).max(initial=1))
        return {"type": "set", "universe": values.shape[1], "max_size": longest}
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _guess_lists(values)
    if pa.types.is_dictionary(values.type) and not arrow.is_text(kind):
        values = values.cast(kind)
    distinct = pc.unique(values).drop_null()
    if isinstance(distinct, pa.DictionaryArray):
        distinct = distinct.dictionary_decode()
    if not len(distinct):
        return None
    guess = _guess_text(distinct, values) if arrow.is_text(kind) else _guess_typed(distinct)
    return {**guess, "nullable": True} if pc.any(pc.is_null(values, nan_is_null=True)).as_py() else guess


def looks_like_id(name: str, values: Values) -> bool:
    """Whether a column tells records apart instead of describing them.

    Example:
        >>> looks_like_id("patient_id", pa.chunked_array([[1, 1]])), looks_like_id("age", pa.chunked_array([[1, 2]]))
        (True, False)
    """
    if not isinstance(values, pa.ChunkedArray) or pa.types.is_nested(values.type):
        return False
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not (arrow.is_text(kind) or pa.types.is_integer(kind)):
        return False
    distinct, present = pc.unique(values).drop_null(), len(values) - values.null_count
    if _ID_NAME.search(name) or (_OWNER_NAME.search(name) and len(distinct) > FEW):
        return True
    if not arrow.is_text(kind) or present < ENOUGH or len(distinct) < 0.9 * present:
        return False
    texts = distinct.cast(pa.string())
    return not (_all(texts, _NUMBER) or _all(texts, _TIME))


def _guess_text(distinct: pa.Array, values: pa.ChunkedArray) -> Guess:
    spelled = {text.lower(): text for text in distinct.to_pylist()[:3]}
    if len(distinct) == 2 and set(spelled) in BOOLEANS:
        true = next(text for lower, text in spelled.items() if lower[0] in "ty")
        false = next(text for lower, text in spelled.items() if lower[0] in "fn")
        return {"type": "boolean", "true": true, "false": false}
    if _all(distinct, _INTEGER):
        return _guess_typed(distinct.cast(pa.int64()))
    if _all(distinct, _NUMBER) and not _any(distinct, _CODE):
        return _guess_typed(pa.array(numbers.to_float64(distinct)[0]), whole_is_integer=False)
    if _all(distinct, _TIME):
        micros, aware, bad = clock.parse_iso(distinct)
        if not bad.any() and (aware.all() or not aware.any()):
            return _guess_times(micros, "UTC" if aware.all() else None)
    if pa.types.is_dictionary(values.type) and values.type.ordered:
        return _guess_categories(values.chunk(0).dictionary.to_pylist(), ordered=True)
    return _guess_categories(sorted(distinct.to_pylist()))


def _guess_categories(categories: Sequence[Any], ordered: bool = False) -> Guess:
    kind = "ordinal" if ordered else "categorical"
    return {"type": kind, "learn": True} if len(categories) > LISTED else {"type": kind, "values": list(categories)}


def _guess_typed(distinct: pa.Array, *, whole_is_integer: bool = True) -> Guess:
    kind = distinct.type
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        return _guess_times(clock.read(distinct, None)[0], zone if zone is None or "/" in zone else "UTC")
    if pa.types.is_integer(kind):
        return {"type": "integer", "min": pc.min(distinct).as_py(), "max": pc.max(distinct).as_py()}
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        finite = distinct.cast(pa.float64()) if pa.types.is_decimal(kind) else distinct
        return _guess_numbers(finite.to_numpy(zero_copy_only=False), whole_is_integer)
    return _guess_categories(sorted(distinct.cast(pa.string()).to_pylist()))


def _guess_numbers(values: Array, whole_is_integer: bool) -> Guess:
    values = values[np.isfinite(values)]
    if not len(values):
        return {"type": "continuous", "min": 0.0, "max": 0.0}
    digits = _digits(values)
    low, high = float(values.min()), float(values.max())
    if digits == 0 and whole_is_integer and max(abs(low), abs(high)) < EXACT:
        return {"type": "integer", "min": int(low), "max": int(high)}
    if (
        digits is None or max(abs(low), abs(high)) >= EXACT
    ):  # as many decimals as six digits of the range need, lest a bound spell out somebody's value
        digits = min(15, 6 - math.floor(math.log10(max(high - low, abs(high), abs(low), 1e-9))))
    step = float(f"1e{-digits}")
    # A float32 is a little off the decimal it stands for: bounds go out by a step where they would cut it off.
    near, far = round(low, digits), round(high, digits)
    low, high = near if near <= low else round(near - step, digits), far if far >= high else round(far + step, digits)
    return {"type": "continuous", "min": low, "max": high, "resolution": step}


def _digits(values: Array) -> int | None:
    """The number of decimals that all values get by with, if there is a small one."""
    return next((d for d in range(DIGITS + 1) if (np.round(values, d) == values).all()), None)


def _guess_times(micros: Array, zone: str | None) -> Guess:
    resolution = next(name for name, size in MICROSECONDS.items() if not (micros % size).any())
    if zone is not None and resolution == "day":
        resolution = "hour"  # midnight in UTC is not midnight everywhere
    low, high = (_iso(int(bound), zone) for bound in (micros.min(), micros.max()))
    guess = {"type": "datetime", "min": low, "max": high, "resolution": resolution}
    return guess if zone is None else {**guess, "timezone": zone}


def _iso(micros: int, zone: str | None) -> str:
    text = (datetime(1970, 1, 1) + timedelta(microseconds=micros)).isoformat()
    return text.removesuffix("T00:00:00") if zone is None else f"{text}+00:00"


def _guess_array(values: Array) -> Guess:
    whole = values.dtype.kind in "uib"
    if values.ndim in (3, 4) and whole:
        top = int(values.max(initial=1))
        return {"type": "image", "shape": list(values.shape[1:]), "levels": max(2, 1 << top.bit_length())}
    bounds = _guess_numbers(values.reshape(-1).astype(np.float64 if whole else values.dtype), whole_is_integer=False)
    return {**bounds, "type": "series", "length": int(np.prod(values.shape[1:]))}


def _guess_lists(values: pa.ChunkedArray) -> Guess:
    flat = pc.list_flatten(values)
    lengths = pc.list_value_length(values)
    longest = max(1, pc.max(lengths).as_py() or 0)
    if pa.types.is_floating(flat.type):
        return {**_guess_numbers(flat.to_numpy(), whole_is_integer=False), "type": "series", "length": longest}
    return {"type": "set", "universe": sorted(pc.unique(flat).drop_null().to_pylist()), "max_size": longest}


def _all(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _any(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())
