"""Parse and write times as microseconds since 1970: wall times, or instants (UTC)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sundog.data.columns.arrow import Mask, cast_where, is_text, to_numpy

Micros = NDArray[np.int64]

DAY = 86_400_000_000
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
EPOCH = datetime(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)
# A day beyond the years 1 and 9999: outside any bounds, and far from the limits of int64.
_EARLIEST = (datetime.min - EPOCH) // MICROSECOND - DAY
_LATEST = (datetime.max - EPOCH) // MICROSECOND + DAY

_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?"
_OFFSET = r"(?:Z|[-+][0-9]{2}:?[0-9]{2})"
_GROUPS = {"Y": "([0-9]{4})", "f": "([0-9]{1,6})"}
_SIMPLE_DIRECTIVES = frozenset("YmdHMS")


class Time(NamedTuple):
    """One time: microseconds since 1970, and whether it is an instant (UTC) or a wall time."""

    micros: int
    aware: bool

    def __str__(self) -> str:
        """Return ISO 8601; midnight as a wall time is a date alone.

        >>> str(Time(0, aware=False)), str(Time(90_000_000, aware=True))
        ('1970-01-01', '1970-01-01T00:01:30+00:00')
        """
        try:
            text = (EPOCH + MICROSECOND * self.micros).isoformat()
        except OverflowError:
            text = f"{self.micros} microseconds after 1970"
        return f"{text}+00:00" if self.aware else text.removesuffix("T00:00:00")


def parse_times(values: Any, text_format: str | None) -> tuple[Micros, Mask, Mask]:
    """Return the times of an Arrow array in microseconds, a mask of instants, and one of values that are not times."""
    kind = values.type
    if is_text(kind):
        return parse_iso(values) if text_format is None else _parse_format(values, text_format)
    none = np.zeros(len(values), bool)
    if pa.types.is_timestamp(kind):
        ticks = to_numpy(values.cast(pa.timestamp(kind.unit)).view(pa.int64()).fill_null(0))
        return _to_micros(ticks, _PER_SECOND[kind.unit]), none | (kind.tz is not None), none
    if pa.types.is_date(kind):
        days = to_numpy(values.cast(pa.date32()).view(pa.int32()).fill_null(0)).astype(np.int64)
        return np.clip(days, _EARLIEST // DAY, _LATEST // DAY) * DAY, none, none
    return np.zeros(len(values), np.int64), none, ~none


def from_numpy(times: NDArray[Any]) -> Micros:
    """Return numpy times of any unit in microseconds, rounded down; the result is arbitrary at NaT.

    >>> from_numpy(np.array(["1969-12-31T23:59:59.9999999", "1970-01-02"], "M8[ns]")).tolist()
    [-1, 86400000000]
    """
    unit, count = np.datetime_data(times.dtype)
    if unit in _PER_SECOND and count == 1:
        return _to_micros(times.view(np.int64) if times.dtype.isnative else times.astype(np.int64), _PER_SECOND[unit])
    if unit in ("ps", "fs", "as"):
        return times.astype("M8[us]").astype(np.int64)
    seconds = times.astype("M8[s]")
    ticks = seconds.astype(np.int64)
    wrapped = seconds.astype(times.dtype) != times  # overflows when counted in seconds
    return _to_micros(np.where(wrapped, np.sign(times.astype(np.int64)) * 2**62, ticks), 1)


def is_format(text_format: str) -> bool:
    """Return whether Python can both write and read times in this format.

    >>> is_format("%d.%m.%Y"), is_format("%Q"), is_format("iso")
    (True, False, False)
    """
    try:
        example = EPOCH.replace(tzinfo=UTC).strftime(text_format)
        return datetime.strptime(example, text_format) is not None and "%" in text_format
    except (ValueError, re.error):
        return False


def to_instants(wall: Micros, timezone: str) -> Micros:
    """Return wall times as instants: the first of two that the clock shows twice, the next for one that it skips."""
    local = pa.array(wall, pa.timestamp("us"))
    return _to_ticks(pc.assume_timezone(local, timezone, ambiguous="earliest", nonexistent="latest"))


def to_wall(instants: Micros, timezone: str) -> Micros:
    """Return the wall time at each instant."""
    return _to_ticks(pc.local_timestamp(pa.array(instants, pa.timestamp("us", timezone))))


def parse_iso(texts: Any) -> tuple[Micros, Mask, Mask]:
    """Parse ISO 8601 with or without an offset; return the same as `read`."""
    texts = pc.utf8_trim_whitespace(texts)
    micros, rest = _cast(texts, f"^{_ISO}$", pa.timestamp("us"))
    aware, bad = np.zeros(len(texts), bool), np.zeros(len(texts), bool)
    if len(rest):
        others = texts.take(pa.array(rest))
        micros[rest], slow = _cast(others, f"^{_ISO}{_OFFSET}$", pa.timestamp("us", "UTC"))
        aware[rest] = True
        rest = rest[slow]
        micros[rest], aware[rest], bad[rest] = _parse_each(texts.take(pa.array(rest)), datetime.fromisoformat)
    return micros, aware, bad


def format_times(times: Any, text_format: str, unit: str = "s") -> Any:
    """Return Arrow timestamps as text; the unit sets the decimals of the seconds."""
    if "%S.%f" in text_format and text_format.count("%f") == text_format.count("%S") == 1:
        text_format, unit = text_format.replace("%S.%f", "%S"), "us"
    if _find_directives(text_format) <= _SIMPLE_DIRECTIVES | {"z"}:
        return pc.strftime(times.cast(pa.timestamp(unit, times.type.tz), safe=False), format=text_format)
    distinct = times.dictionary_encode()
    texts = [None if time is None else time.strftime(text_format) for time in distinct.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(distinct.indices)


def _find_directives(text_format: str) -> set[str]:
    """Return the letters after each % of a format.

    >>> sorted(_find_directives("%d.%m.%Y 100%%"))
    ['%', 'Y', 'd', 'm']
    """
    return set(re.findall(r"%(.)", text_format))


def _parse_format(texts: Any, text_format: str) -> tuple[Micros, Mask, Mask]:
    texts = pc.utf8_trim_whitespace(texts)
    pattern, iso = _rewrite_as_iso(text_format)
    fits = pc.match_substring_regex(texts, pattern)
    rewritten = pc.if_else(fits, pc.replace_substring_regex(texts, pattern, iso), "")
    micros, rest = _cast(rewritten, f"^{_ISO}$", pa.timestamp("us"))
    aware, bad = np.zeros(len(texts), bool), np.zeros(len(texts), bool)
    slow = _parse_each(texts.take(pa.array(rest)), lambda text: datetime.strptime(text, text_format))
    micros[rest], aware[rest], bad[rest] = slow
    return micros, aware, bad


def _rewrite_as_iso(text_format: str) -> tuple[str, str]:
    r"""Return a pattern for texts of a format, and its replacement in ISO 8601.

    The pattern matches nothing if the format cannot be rewritten.

    >>> _rewrite_as_iso("%d.%m.%Y")
    ('^([0-9]{2})\\.([0-9]{2})\\.([0-9]{4})$', '\\3-\\2-\\1T00:00:00')
    >>> _rewrite_as_iso("%H:%M")  # on Python's default day
    ('^([0-9]{2}):([0-9]{2})$', '1900-01-01T\\1:\\2:00')
    """
    literals, letters = re.split(r"%.", text_format), re.findall(r"%(.)", text_format)
    days = set("Ymd") & set(letters)
    if len(set(letters)) < len(letters) or len(days) in (1, 2) or not set(letters) <= set("YmdHMSf"):
        return r"[^\s\S]", ""
    groups = [_GROUPS.get(letter, "([0-9]{2})") for letter in letters]
    pattern = "".join(re.escape(literal) + group for literal, group in zip(literals, [*groups, ""], strict=True))
    part = {letter: f"\\{place}" for place, letter in enumerate(letters, start=1)}
    day = "-".join(part[letter] for letter in "Ymd") if days else "1900-01-01"
    time = ":".join(part.get(letter, "00") for letter in "HMS") + (f".{part['f']}" if "f" in part else "")
    return f"^{pattern}$", f"{day}T{time}"


def _cast(texts: Any, pattern: str, kind: Any) -> tuple[Micros, NDArray[np.int64]]:
    """Return the times of all texts that match a pattern, and the rows that remain for the slow parser."""
    try:
        values, rest = cast_where(texts, pattern, kind)
        return values.astype(np.int64), rest
    except pa.ArrowInvalid:  # one 30th of February must not change how the others are read
        if len(texts) == 1:
            return np.zeros(1, np.int64), np.zeros(1, np.int64)
    half = len(texts) // 2
    (first, left), (second, right) = (_cast(part, pattern, kind) for part in (texts[:half], texts[half:]))
    return np.concatenate([first, second]), np.concatenate([left, right + half])


def _parse_each(texts: Any, parse: Callable[[str], datetime]) -> tuple[Micros, Mask, Mask]:
    micros = np.zeros(len(texts), np.int64)
    aware, bad = np.zeros(len(texts), bool), np.zeros(len(texts), bool)
    for row, text in enumerate(texts.to_pylist()):
        try:
            time = parse(text)
            if time.tzinfo is not None:
                aware[row] = True
                time = time.astimezone(UTC).replace(tzinfo=None)
            micros[row] = (time - EPOCH) // MICROSECOND
        except (ValueError, OverflowError):
            bad[row] = True
    return micros, aware, bad


def _to_micros(ticks: NDArray[np.int64], per_second: int) -> Micros:
    """Return ticks of any unit as microseconds, rounded down, also before 1970; clip them to the years 0 and 10000."""
    if per_second > 1_000_000:
        ticks = ticks // (per_second // 1_000_000)
        return np.clip(ticks, _EARLIEST, _LATEST)
    factor = 1_000_000 // per_second
    return np.clip(ticks, _EARLIEST // factor, _LATEST // factor) * factor


def _to_ticks(timestamps: Any) -> Micros:
    result: Micros = to_numpy(timestamps.view(pa.int64()))
    return result
