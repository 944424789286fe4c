"""Find the format of the texts of a column: numbers, times or neither, and the few texts that differ."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sundog.data.columns import number_parsing, time_parsing
from sundog.data.columns.arrow import Mask, to_numpy
from sundog.data.columns.number_format import NumberFormat

Array = np.ndarray[Any, Any]

PLAIN_INTEGER = r"^[-+]?(0|[1-9][0-9]{0,17})$"
_CODE = r"^0[0-9]"  # a leading zero means a code (postal, phone), not a number
_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}.*)?$"
_COMPACT = r"^(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$"
_DOTTED, _UNDOTTED = r"^[-+]?[1-9][0-9]{0,2}(\.[0-9]{3})+$", r"^[-+]?[0-9]{1,3}$"
_MARKS = (("", "."), (",", "."), ("", ","), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("’", "."))
_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d")
_CLOCKS = ("", " %H:%M", " %H:%M:%S")
_DIGITS = {"%d": "[0-9]{1,2}", "%m": "[0-9]{1,2}", "%Y": "[0-9]{4}", "%H": "[0-9]{1,2}", "%M": "[0-9]{2}"}
_DIGITS["%S"] = "[0-9]{2}"
_USUAL_ISO = "%Y-%m-%dT%H:%M:%S"
_ISO_DAY, _ISO_TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[0-9]{2}:[0-9]{2}"
_ISO_FORMATS = {
    "%Y-%m-%d %H:%M": f"^{_ISO_DAY} {_ISO_TIME}$",
    "%Y-%m-%d %H:%M:%S": f"^{_ISO_DAY} {_ISO_TIME}:[0-9]{{2}}$",
    "%Y-%m-%d %H:%M:%S.%f": rf"^{_ISO_DAY} {_ISO_TIME}:[0-9]{{2}}\.[0-9]{{6}}$",
    "%Y-%m-%dT%H:%M": f"^{_ISO_DAY}T{_ISO_TIME}$",
    _USUAL_ISO: f"^{_ISO_DAY}T{_ISO_TIME}:[0-9]{{2}}$",
}
TIME_OF_DAY = "1900-01-01"  # Python's day for a format without one
_SAMPLE = 1000  # texts that are searched for currencies and units

_MOST_STRAYS = 0.1  # of the rows, and of the distinct texts
_LEAST_WRITTEN = 10  # distinct texts in the format, if some are not


@dataclass(frozen=True)
class TextFormat:
    """The format of most texts of a column.

    Args:
        fits: a mask of the distinct texts in this format.
        numbers: the values of the texts that fit, if they are numbers.
        times: the values of the texts that fit, in microseconds, if they are times.
        whole: whether the numbers are written without decimals.
        aware: whether the times have offsets.
        format: the `format` to declare; None for plain numbers and ISO 8601.
        doubt: what else the texts could be.
    """

    fits: Mask
    numbers: Array | None = None
    times: Array | None = None
    whole: bool = False
    aware: bool = False
    format: str | None = None
    doubt: str | None = None


def find_text_format(texts: pa.Array, counts: Array) -> TextFormat | None:
    """Return the format of most rows; None unless nearly all rows have it.

    Args:
        texts: the distinct texts.
        counts: the number of rows of each.

    >>> found = find_text_format(pa.array(["1,234", "12", "7"]), np.array([1, 1, 1]))
    >>> found.format, found.numbers.tolist()
    ('1,234', [1234, 12, 7])
    """
    texts = pc.utf8_trim_whitespace(texts.cast(pa.string()))
    best, most = None, 0
    for writing in (*_find_time_formats(texts), *_find_number_formats(texts)):
        rows = int(counts[writing.fits].sum())
        if rows > most:  # the first of equals
            best, most = writing, rows
    if best is None or best.fits.all():
        return best
    written, strays = int(best.fits.sum()), int((~best.fits).sum())
    few = strays <= max(1, _MOST_STRAYS * written) and counts.sum() - most <= _MOST_STRAYS * counts.sum()
    return best if few and written >= _LEAST_WRITTEN else None


# --- times ---


def _find_time_formats(texts: pa.Array) -> Iterator[TextFormat]:
    fits = _matches(texts, _ISO)
    if fits.any():
        micros, aware, bad = time_parsing.parse_iso(texts.filter(pa.array(fits)))
        if aware.all() or not aware.any():
            fits[fits] = ~bad
            spelled = _choose_iso_format(texts.filter(pa.array(fits)), micros[~bad])
            yield TextFormat(fits, times=micros[~bad], aware=bool(aware.all()), format=spelled)
    fits = _matches(texts, _COMPACT)
    if fits.sum() > 2:
        doubt = "could be whole numbers, not dates (then declare min and max)"
        yield from _try_time_format(texts, fits, "%Y%m%d", doubt)
    for time in _CLOCKS[1:]:
        fits = _matches(texts, f"^{re.sub(r'%.', lambda part: _DIGITS[part[0]], time.strip())}$")
        if fits.any():
            doubt = f"a time of day, on {TIME_OF_DAY}; if it is a duration, make it a number"
            yield from _try_time_format(texts, fits, time.strip(), doubt)
    for date in _DATES:
        for time in _CLOCKS:
            pattern = re.sub(r"%.", lambda part: _DIGITS[part[0]], re.sub(r"([./-])", r"[\1]", date + time))
            fits = _matches(texts, f"^{pattern}$")
            if fits.any():
                other = _swap_day_and_month(date)
                swapped = other and next(_try_time_format(texts, fits.copy(), other + time, None), None)
                both = swapped and np.array_equal(swapped.fits, fits)
                yield from _try_time_format(texts, fits, date + time, f"could be {other}{time}" if both else None)


def _choose_iso_format(texts: pa.Array, micros: Array) -> str | None:
    """Return the `format` of ISO times; None if columns write them so by default.

    >>> _choose_iso_format(pa.array(["2020-01-31 10:30"]), np.array([1580466600000000]))
    '%Y-%m-%d %H:%M'
    """
    for text_format, pattern in _ISO_FORMATS.items():
        if _matches(texts, pattern).all():
            usual = text_format == _USUAL_ISO and bool((micros % time_parsing.DAY).any())
            return None if usual else text_format
    return None


def _try_time_format(texts: pa.Array, fits: Mask, text_format: str, doubt: str | None) -> Iterator[TextFormat]:
    micros, _, bad = time_parsing.parse_times(texts.filter(pa.array(fits)), text_format)
    if not bad.all():
        fits[fits] = ~bad
        yield TextFormat(fits, times=micros[~bad], format=text_format, doubt=doubt)


def _swap_day_and_month(date: str) -> str:
    """Return a date format with day and month swapped; "" if that is not a common format."""
    other = date.replace("%d", "%_").replace("%m", "%d").replace("%_", "%m")
    return other if other in _DATES else ""


# --- numbers ---


def _find_number_formats(texts: pa.Array) -> Iterator[TextFormat]:
    if _has_match(texts, _CODE):
        return
    fits = _matches(texts, number_parsing.NUMBER)
    if fits.any() and not _dots_are_thousands(texts):
        yield _read_numbers(texts, fits, None, None)
    for prefix, suffix in _find_affixes(texts):
        for thousands, decimal in _MARKS:
            form = NumberFormat(thousands, decimal, prefix, suffix)
            shows = thousands or (decimal if decimal == "," else prefix or suffix)
            fits = _matches(texts, form.pattern)
            if shows and _has_match(texts.filter(pa.array(fits)), form.separator if thousands else re.escape(shows)):
                yield _read_numbers(texts, fits, form, _explain_doubt(texts, fits, form))


def _read_numbers(texts: pa.Array, fits: Mask, form: NumberFormat | None, doubt: str | None) -> TextFormat:
    written = texts.filter(pa.array(fits))
    plain = written if form is None else form.to_plain(written)
    whole = bool(_matches(plain, PLAIN_INTEGER).all())
    if decimals := _count_written_decimals(plain):
        form = replace(form or NumberFormat(), decimals=decimals)
    values = number_parsing.to_int64(plain).values if whole else number_parsing.to_float64(plain)[0]
    example = None if form is None else form.make_example(whole=whole)
    return TextFormat(fits, numbers=values, whole=whole, format=example, doubt=doubt)


def _count_written_decimals(plain: pa.Array) -> int:
    """Return the fixed number of decimals, trailing zeros included; 0 if it is not fixed.

    >>> _count_written_decimals(pa.array(["7.00", "12.50"])), _count_written_decimals(pa.array(["7", "12.50"]))
    (2, 0)
    """
    behind = pc.utf8_length(pc.replace_substring_regex(plain, r"^[-+]?[0-9]+\.", ""))
    fixed = pc.match_substring_regex(plain, r"^[-+]?[0-9]+\.[0-9]+$")
    if not pc.all(fixed).as_py() or len(pc.unique(behind)) != 1 or not _has_match(plain, "0$"):
        return 0
    return int(behind[0].as_py())


def _explain_doubt(texts: pa.Array, fits: Mask, form: NumberFormat) -> str | None:
    """Return a note if the thousands separator could also be a decimal mark."""
    if form.thousands not in (",", ".") or _has_match(
        texts.filter(pa.array(fits)), re.escape(form.thousands) + r".*[.,]"
    ):
        return None
    other = NumberFormat("", form.thousands, form.prefix, form.suffix).make_example(whole=False)
    return (
        f"{form.thousands!r} is taken to separate thousands; if it is a decimal mark, declare a continuous column"
        + (f" with format {other!r}" if form.thousands == "," else " without format")
    )


def _dots_are_thousands(texts: pa.Array) -> bool:
    """Return whether all numbers with a dot have three digits after it, and the others at most three digits."""
    dotted, undotted = _matches(texts, _DOTTED), _matches(texts, _UNDOTTED)
    others = _matches(texts, r"^[-+]?[0-9.]+$") & ~dotted & ~undotted
    return bool(dotted.sum() > 2 and undotted.sum() >= max(1, 0.05 * dotted.sum()) and not others.any())


def _find_affixes(texts: pa.Array) -> list[tuple[str, str]]:
    """Return the pairs of prefix and suffix to try: none, and the currency or unit that most numbers have."""
    found: Counter[tuple[str, str]] = Counter()
    looked_at = texts.slice(0, _SAMPLE).to_pylist()
    for text in looked_at:
        parts = re.fullmatch(r"[-+]?(\D*?)[-+]?(\d.*?)(\D*)", text, re.DOTALL)
        if parts and (_is_affix(parts[1], before=True) or _is_affix(parts[3], before=False)):
            found[parts[1].strip(), parts[3].strip()] += 1
    return [("", ""), *(affix for affix, count in found.most_common(1) if 2 * count > len(looked_at))]


def _is_affix(text: str, *, before: bool) -> bool:
    """Return whether a text is a currency ($, USD 5), a sign such as %, or a unit after a space; A123 is a code."""
    word = text.strip()
    if not word or len(word) > 8:
        return False
    if all(unicodedata.category(sign) == "Sc" or sign in "%‰°" for sign in word):
        return True
    if before:
        return text[-1:].isspace() and bool(re.fullmatch("[A-Z]{3}", word))
    return text[:1].isspace() and word.isalpha()


def _matches(texts: pa.Array, pattern: str) -> Mask:
    return np.array(to_numpy(pc.match_substring_regex(texts, pattern)), bool)


def _has_match(texts: pa.Array, pattern: str) -> bool:
    return bool(_matches(texts, pattern).any())
