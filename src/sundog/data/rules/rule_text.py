"""Rules that are written as text: `admitted <= discharged`, `total = rent + food - refund`."""

from __future__ import annotations

import re
from collections.abc import Collection

from sundog.data.rules.column_sum import MOST_TERMS, ColumnSum
from sundog.data.rules.ordering import Ordering
from sundog.data.validation_errors import format_value, suggest

LONGEST_TEXT = 4000  # characters
_COMPARISON = re.compile(r"<=|>=|<|>|=")
_SIGN = re.compile(r"[+-]")


def parse_text(text: str, known: Collection[str]) -> Ordering | ColumnSum:
    """Read a rule; a name may hold anything, so the longest known name that fits is meant, and quotes may be around it.

    >>> parse_text("total = rent + food", ["rent", "food", "total"])
    ColumnSum(column='total', terms=(('rent', True), ('food', True)))
    >>> parse_text("left > born", ["born", "left"])
    Ordering(low='born', high='left', strict=True)
    """
    marks = len(_COMPARISON.findall(text)) + len(_SIGN.findall(text))
    if len(text) > LONGEST_TEXT or marks > 2 * MOST_TERMS:
        raise ValueError("is too long; write several rules")
    if not _COMPARISON.search(text):
        raise ValueError(f"{format_value(text)} is not a rule; write it as a <= b or total = a + b")
    name, mark, rest = _take_name(text, known, _COMPARISON)
    if mark == "=":
        return ColumnSum(column=name, terms=tuple(_parse_terms(rest, known)))
    other, _, _ = _take_name(rest, known, None)
    low, high = (name, other) if mark[0] == "<" else (other, name)
    return Ordering(low=low, high=high, strict=len(mark) == 1)


def _parse_terms(text: str, known: Collection[str]) -> list[tuple[str, bool]]:
    begun = text.strip()
    added = not begun.startswith("-") or begun in known
    rest = begun if added else begun[1:]
    terms = []
    while True:
        name, mark, rest = _take_name(rest, known, _SIGN)
        terms.append((name, added))
        if not mark:
            return terms
        added = mark == "+"


def _take_name(text: str, known: Collection[str], mark: re.Pattern[str] | None) -> tuple[str, str, str]:
    """Return the name at the beginning of a text, the mark after it, and the rest; without a mark all is the name."""
    found = [] if mark is None else list(mark.finditer(text))
    ends = [(text, "", ""), *((text[: each.start()], each[0], text[each.end() :]) for each in reversed(found))]
    for name, sign, rest in ends if mark is not _COMPARISON else ends[1:]:
        spelled = name.strip()
        if spelled in known:
            return spelled, sign, rest
        if len(spelled) > 1 and spelled[0] == spelled[-1] and spelled[0] in "\"'" and spelled[1:-1] in known:
            return spelled[1:-1], sign, rest
    first = ends[-1][0].strip()
    hint = suggest(first, known, otherwise=f"the columns are {', '.join(list(known)[:10])}")
    raise ValueError(f"there is no column {first!r}; {hint}")
