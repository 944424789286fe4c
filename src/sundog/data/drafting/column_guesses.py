"""Guess the declaration of a column from its values, for a drafted schema."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sundog.data.columns import arrow, time_parsing
from sundog.data.columns.containers import spell_values, to_chunks
from sundog.data.columns.datetime import MICROSECONDS
from sundog.data.columns.number_parsing import EXACT
from sundog.data.drafting.proposed_bins import is_wide, propose_edges, propose_special
from sundog.data.drafting.text_formats import TIME_OF_DAY, TextFormat, find_text_format
from sundog.data.reading.source import Values
from sundog.data.validation_errors import format_value

Array = np.ndarray[Any, Any]
Declaration = dict[str, Any]

LISTED = 100  # with more values than this, only frequent ones are listed
FREQUENT = 10  # records
MOST = 1000  # with more frequent values than this, they are learned, not listed
DIGITS = 9  # decimals of the finest resolution that is tried
ENOUGH = 20  # from this many values on, nearly all different, they look like names
FEW = 50  # up to this many distinct values may be kinds of users, not users
BOOLEANS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})

_ID_NAME = re.compile(r"(^|[_ .-])(id|uuid|guid|key)$", re.IGNORECASE)
_OWNER_NAME = re.compile(
    r"^(user|person|patient|customer|client|member|employee|student|subject|respondent|participant|household|house)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Guess:
    """The guessed declaration of a column.

    Args:
        declaration: what to declare; None if the column should be left out.
        notes: comments for the reviewer of the draft.
        nulls: texts that must count as missing for the declaration to hold.
    """

    declaration: Declaration | None
    notes: list[str] = field(default_factory=list)
    nulls: list[str] = field(default_factory=list)


def guess_column(values: Values, *, blanks: bool = True) -> Guess:
    """Return the declaration that the values suggest.

    Args:
        values: the values of one column.
        blanks: whether the schema can declare which texts count as missing, as for csv files.

    >>> guess_column(pa.chunked_array([["1.5", "2.25", None]])).declaration
    {'type': 'continuous', 'min': 1.5, 'max': 2.25, 'resolution': 0.01, 'nullable': True}
    """
    if isinstance(values, np.ndarray):
        return Guess(_guess_array(values))
    if not isinstance(values, pa.ChunkedArray):
        longest = int(np.diff(values.indptr).max(initial=1))
        return Guess({"type": "set", "universe": values.shape[1], "max_size": longest})
    kind = arrow.unwrap_dictionary(values.type)
    if arrow.is_list(kind):
        return _guess_lists(values)
    distinct, counts = _count_distinct(values)
    if not len(distinct):
        return Guess(None, ["is empty and is left out"])
    if arrow.is_text(kind):
        guess = _guess_text(distinct, counts, values, blanks=blanks)
    elif _are_categories(values, distinct):
        guess = Guess(_guess_numbered(values, distinct))
    else:
        values = values.cast(kind) if pa.types.is_dictionary(values.type) else values
        guess = _add_bins(_guess_typed(distinct), distinct, counts)
    if guess.declaration and pc.any(pc.is_null(values, nan_is_null=True)).as_py():
        return replace(guess, declaration={**guess.declaration, "nullable": True})
    return guess


def is_named_id(name: str, values: Values) -> bool:
    """Return whether a column has the name of an identifier of records or people.

    >>> is_named_id("patient_id", pa.chunked_array([[1, 1]])), is_named_id("age", pa.chunked_array([[1, 2]]))
    (True, False)
    """
    if not isinstance(values, pa.ChunkedArray) or pa.types.is_nested(values.type):
        return False
    kind = arrow.unwrap_dictionary(values.type)
    if not (arrow.is_text(kind) or pa.types.is_integer(kind)):
        return False
    return bool(_ID_NAME.search(name) or (_OWNER_NAME.search(name) and len(pc.unique(values).drop_null()) > FEW))


def _count_distinct(values: pa.ChunkedArray) -> tuple[pa.Array, Array]:
    """Return the distinct values and their counts, without missing values."""
    pairs = pc.value_counts(values.unify_dictionaries() if pa.types.is_dictionary(values.type) else values)
    distinct, counts = pairs.field("values"), arrow.to_numpy(pairs.field("counts"))
    if isinstance(distinct, pa.DictionaryArray):
        distinct = distinct.dictionary_decode()
    there = ~arrow.is_missing(distinct)
    return distinct.filter(pa.array(there)), counts[there]


# --- text ---


def _guess_text(distinct: pa.Array, counts: Array, values: pa.ChunkedArray, *, blanks: bool) -> Guess:
    spelled = {text.lower(): text for text in distinct.to_pylist()[:3]}
    if len(distinct) == 2 and set(spelled) in BOOLEANS:
        true = next(text for lower, text in spelled.items() if lower[0] in "ty")
        false = next(text for lower, text in spelled.items() if lower[0] in "fn")
        return Guess({"type": "boolean", "true": true, "false": false})
    writing = find_text_format(distinct, counts)
    if writing is not None and (blanks or writing.fits.all()):
        return _guess_formatted(writing, distinct, counts)
    if pa.types.is_dictionary(values.type) and values.type.ordered:
        return Guess({"type": "ordinal", "values": values.chunk(0).dictionary.to_pylist()})
    texts = distinct.to_pylist()
    if reason := _explain_identifier(texts, counts):
        return Guess(None, [reason])
    guess = _guess_categories(texts, counts)
    if writing is None:
        return guess
    strays = _quote_some([text for text, fits in zip(texts, writing.fits, strict=True) if not fits])
    return replace(guess, notes=[f"nearly all values are numbers or times, except {strays}: fix them", *guess.notes])


def _guess_formatted(writing: TextFormat, distinct: pa.Array, counts: Array) -> Guess:
    notes = [] if writing.doubt is None else [writing.doubt]
    if writing.times is not None and (writing.format or "").startswith("%H"):
        guess = Guess(_guess_time_of_day(writing.times), notes)
    elif writing.times is not None:
        guess = Guess(_guess_times(writing.times, "UTC" if writing.aware else None), notes)
    else:
        found = pa.array(writing.numbers)
        guess = _add_bins(_guess_typed(found, whole_is_integer=False), found, counts[writing.fits], notes)
    if writing.format is not None and guess.declaration:
        guess = replace(guess, declaration={**guess.declaration, "format": writing.format})
    strays = distinct.filter(pa.array(~writing.fits)).to_pylist()
    if not strays or not guess.declaration:
        return guess
    rows = int(counts[~writing.fits].sum())
    held = f"{rows} of {int(counts.sum())} rows {'holds' if rows == 1 else 'hold'} {_quote_some(strays)}"
    note = f"{held}: read as missing (`nulls`); fix the data if that is wrong"
    declaration = {**guess.declaration, "nullable": True}
    return Guess(declaration, [note, *guess.notes], strays)


def _explain_identifier(texts: list[str], counts: Array) -> str | None:
    """Return why texts look like identifiers; None if they do not."""
    rows = int(counts.sum())
    if rows >= ENOUGH and len(texts) >= 0.9 * rows:
        return "looks like an identifier (nearly all values differ) and is left out"
    if 1 < rows == len(texts) and all(re.search("[0-9]", text) for text in texts):
        return f"looks like an identifier (all {rows} values differ) and is left out"
    return None


def _guess_categories(texts: list[str], counts: Array) -> Guess:
    rows, order = int(counts.sum()), sorted(range(len(texts)), key=texts.__getitem__)
    if len(texts) <= LISTED:
        every = rows == len(texts) > 2
        note = [f"all {rows} values differ: is it a name, or a code for one person? then remove it"] if every else []
        return Guess({"type": "categorical", "values": [texts[place] for place in order]}, note)
    frequent = [texts[place] for place in order if counts[place] >= FREQUENT]
    held = int(counts[counts >= FREQUENT].sum()) / rows
    rare = f"has {len(texts):,} values, of which {len(texts) - len(frequent):,} are in fewer than {FREQUENT} rows"
    if held < 0.5:
        advice = "keep fewer, public groups of them (the first digits of a code), or declare values from a public list"
        return Guess(None, [f"{rare}, and is left out: {advice}"])
    if len(frequent) > MOST:
        return Guess({"type": "categorical", "learn": True}, [f"{rare}: frequent ones are learned, for part of ε"])
    other = next(name for name in ("other", "other values", "(other)") if name not in frequent)
    listed = {"type": "categorical", "values": [*frequent, other], "undeclared": "other", "other": other}
    return Guess(listed, [f"{rare}: these become {other!r} ({1 - held:.0%} of rows)"])


def _are_categories(values: pa.ChunkedArray, distinct: pa.Array) -> bool:
    """Return whether numbers are stored as a few categories."""
    numeric = pa.types.is_integer(distinct.type) or pa.types.is_floating(distinct.type)
    return bool(pa.types.is_dictionary(values.type) and numeric and len(distinct) <= LISTED)


def _guess_numbered(values: pa.ChunkedArray, distinct: pa.Array) -> Declaration:
    if values.type.ordered:
        return {"type": "ordinal", "values": values.chunk(0).dictionary.to_pylist()}
    return {"type": "categorical", "values": sorted(distinct.to_pylist())}


def _quote_some(texts: Sequence[str]) -> str:
    shown = ", ".join(format_value(text, 30) for text in texts[:3])
    return f"{shown} and {len(texts) - 3} other texts" if len(texts) > 3 else shown


# --- numbers and times ---


def _add_bins(declaration: Declaration, distinct: pa.Array, counts: Array, notes: Sequence[str] = ()) -> Guess:
    """Add special values that many rows share to the declaration, and proposed edges to the notes."""
    if declaration["type"] == "integer" and _is_running(declaration, counts):
        notes = [f"all {len(counts):,} values differ, with few gaps: does it number the rows? then remove it", *notes]
    numeric = declaration["type"] in ("integer", "continuous") and not pa.types.is_decimal(distinct.type)
    if not numeric or not is_wide(declaration):
        return Guess(declaration, list(notes))
    values = arrow.to_numpy(distinct)
    order = np.argsort(values)
    values, counts, comments = values[order], counts[order], list(notes)
    special = propose_special(values, counts)
    if declaration["type"] == "integer":
        special = [int(value) for value in special]
    if special:
        share = counts[np.isin(values, special)].sum() / counts.sum()
        comments.append(f"special: {share:.0%} of rows; values with a meaning of their own, each with a bin of its own")
        declaration = {**declaration, "special": special}
    edges = propose_edges(values, counts, special)
    if edges:
        comments.append(
            f"edges: {edges}  (rounded quantiles; add them to declare bins, else fit refines bins for 5% of ρ)"
        )
    return Guess(declaration, comments)


def _is_running(declaration: Declaration, counts: Array) -> bool:
    """Return whether integers number the rows: all differ, with few gaps."""
    span = declaration["max"] - declaration["min"] + 1
    return bool(len(counts) >= ENOUGH and (counts == 1).all() and span <= 2 * len(counts))


def _guess_typed(distinct: pa.Array, *, whole_is_integer: bool = True) -> Declaration:
    kind = distinct.type
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        return _guess_times(time_parsing.parse_times(distinct, None)[0], zone if zone is None or "/" in zone else "UTC")
    if pa.types.is_integer(kind):
        return {"type": "integer", "min": pc.min(distinct).as_py(), "max": pc.max(distinct).as_py()}
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        finite = distinct.cast(pa.float64()) if pa.types.is_decimal(kind) else distinct
        return _guess_numbers(finite.to_numpy(zero_copy_only=False), whole_is_integer)
    return {"type": "categorical", "values": sorted(distinct.cast(pa.string()).to_pylist())}


def _guess_numbers(values: Array, whole_is_integer: bool) -> Declaration:
    values = values[np.isfinite(values)]
    if not len(values):
        return {"type": "continuous", "min": 0.0, "max": 0.0}
    digits = _count_needed_decimals(values)
    low, high = float(values.min()), float(values.max())
    if digits == 0 and whole_is_integer and max(abs(low), abs(high)) < EXACT:
        return {"type": "integer", "min": int(low), "max": int(high)}
    if digits is None or max(abs(low), abs(high)) >= EXACT:
        # Six digits of the range, so that a bound does not reveal a person's exact value.
        digits = min(15, 6 - math.floor(math.log10(max(high - low, abs(high), abs(low), 1e-9))))
    step = float(f"1e{-digits}")
    # A float32 differs a little from the decimal it stands for: move a bound out by a step if it would exclude it.
    near, far = round(low, digits), round(high, digits)
    low, high = near if near <= low else round(near - step, digits), far if far >= high else round(far + step, digits)
    return {"type": "continuous", "min": low, "max": high, "resolution": step}


def _count_needed_decimals(values: Array) -> int | None:
    """Return the smallest number of decimals that represents all values exactly; None if there is none."""
    return next((d for d in range(DIGITS + 1) if (np.round(values, d) == values).all()), None)


def _guess_times(micros: Array, zone: str | None) -> Declaration:
    resolution = next(name for name, size in MICROSECONDS.items() if not (micros % size).any())
    if zone is not None and resolution == "day":
        resolution = "hour"  # midnight in UTC is not midnight in other timezones
    low, high = (str(time_parsing.Time(int(bound), zone is not None)) for bound in (micros.min(), micros.max()))
    guess = {"type": "datetime", "min": low, "max": high, "resolution": resolution}
    return guess if zone is None else {**guess, "timezone": zone}


def _guess_time_of_day(micros: Array) -> Declaration:
    """Return a declaration from midnight to midnight, which reveals nothing; as text, for lack of a dtype."""
    bounds = {"min": f"{TIME_OF_DAY}T00:00:00", "max": f"{TIME_OF_DAY}T23:59:59"}
    return {**_guess_times(micros, None), **bounds, "dtype": "str"}


def _guess_array(values: Array) -> Declaration:
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
        bounds = _guess_numbers(flat.to_numpy(), whole_is_integer=False)
        return Guess({**bounds, "type": "series", "length": longest})
    if not pa.types.is_integer(flat.type):
        flat = pa.chunked_array([spell_values(chunk, where="a list") for chunk in to_chunks(flat)], pa.string())
    items = sorted(pc.unique(flat).drop_null().to_pylist())
    if not items:
        return Guess(None, ["is empty and is left out"])
    return Guess({"type": "set", "universe": items, "max_size": longest})
