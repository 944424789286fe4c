"""Error messages of one line: what pydantic found wrong, suggestions, and values in messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

# What the value must be, by the beginning of the type of a pydantic error.
_MUST_BE = {
    "int_": "a whole number",
    "float_": "a number",
    "finite_number": "a finite number",
    "bool_": "true or false",
    "string_type": "text (put it in quotes)",
    "string_too": "one character",
    "too_short": "a list of at least one",
    "tuple_type": "a list such as [a, b]",
    "model_": "a mapping such as {{type: boolean}}",
    "dict_type": "a mapping of names to columns",
    "greater_than_equal": "at least {ge}",
    "greater_than": "above {gt}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
}


def explain(error: ValidationError, keys: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return the first problem as one line: which column, which key, what is wrong, what to do.

    Args:
        error: the exception of pydantic.
        keys: the keys of each column type ("" for the schema itself), for suggestions.
    """
    keys = keys or {}
    # A value that fits none of several types is one problem, though pydantic lists it for each type.
    problems: dict[tuple[str, str, str], list[Any]] = {}
    for found in error.errors(include_url=False):
        problems.setdefault(_locate(found["loc"], keys), []).append(found)
    # A misspelled key is also missing: report only the misspelling.
    reported = [problem for problem in problems.items() if not _is_misspelled(problem, problems)]
    (column, kind, key), same = reported[0]
    more = f" (and {len(reported) - 1} more)" if len(reported) > 1 else ""
    return f"{column}{_describe_problem(same, kind, key, keys)}{more}"


def suggest(name: object, known: Iterable[str], otherwise: str | None = None) -> str:
    """Suggest the closest known name; if none is close, return `otherwise`, or list the names.

    >>> suggest("nulable", ["nullable", "min"])
    "did you mean 'nullable'?"
    >>> suggest("x", ["min", "max"])
    'choose from min, max'
    """
    lowered = {each.lower(): each for each in reversed(list(known))}
    close = difflib.get_close_matches(str(name)[:100].lower(), lowered, n=1)
    if close:
        return f"did you mean {lowered[close[0]]!r}?"
    return f"choose from {', '.join(known)}" if otherwise is None else otherwise


def describe_value(value: object) -> str:
    """Return a short description of a value of any size: its text, or the kind of a container.

    >>> describe_value([1, 2]), describe_value(None), describe_value("x")
    ('a list', 'nothing', "'x'")
    """
    if value is None:
        return "nothing"
    if not isinstance(value, (str, int, float, bytes)):
        return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, (list, tuple)) else "an object"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def format_value(value: object, limit: int = 60) -> str:
    """Return a value on one line for an error message, cut at `limit` characters.

    >>> format_value("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"
    """
    text = repr(value if isinstance(value, (str, bytes, int, float, bool, type(None))) else str(value))
    text = text if isinstance(value, (str, bytes)) else text.strip("'")
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _locate(loc: tuple[int | str, ...], keys: Mapping[str, Sequence[str]]) -> tuple[str, str, str]:
    """Return column, type and key: ("columns", "age", "integer", "min") → "column 'age': ", "integer", "min"."""
    column = ""
    if len(loc) > 1 and loc[0] == "columns":
        column, loc = f"column {describe_value(loc[1])}: ", loc[2:]
    kind = str(loc[0]) if column and loc and loc[0] in keys else ""
    names = loc[1:] if kind else loc
    return column, kind, str(names[0]) if names else ""


def _describe_problem(same: Sequence[Any], kind: str, key: str, keys: Mapping[str, Sequence[str]]) -> str:
    found = same[0]
    value = found.get("input")
    types = [name for name in keys if name]
    match found["type"]:
        case "value_error":
            return str(found["ctx"]["error"])
        case "extra_forbidden":
            known = keys.get(kind, ())
            return f"unknown key {describe_value(key)}; {suggest(key, known) if known else 'remove it'}"
        case "missing":
            return f"{key} is missing; add it"
        case "invalid_key":
            return f"unknown key {describe_value(value)}; remove it"
        case "union_tag_invalid":
            return f"unknown type {describe_value(value['type'])}; {suggest(value['type'], types)}"
        case "union_tag_not_found":
            near = next((name for name in map(str, value) if _is_near(name, "type")), None)
            if near:
                return f"unknown key {describe_value(near)}; did you mean 'type'?"
            return f"type is missing; choose from {', '.join(types)}"
    wanted = " or ".join(dict.fromkeys(_describe_wanted(each) for each in same))
    return f"{key + ' ' if key else ''}must be {wanted}, got {describe_value(value)}"


def _is_misspelled(problem: tuple[tuple[str, str, str], list[Any]], problems: Mapping[Any, list[Any]]) -> bool:
    """Return whether a missing key is present under a similar name."""
    (column, kind, key), same = problem
    others = (place[2] for place, found in problems.items() if place[:2] == (column, kind) and _is_extra(found))
    return bool(same[0]["type"] == "missing") and any(_is_near(other, key) for other in others)


def _is_extra(found: Sequence[Any]) -> bool:
    return bool(found[0]["type"] == "extra_forbidden")


def _is_near(name: str, key: str) -> bool:
    return bool(difflib.get_close_matches(name[:100].lower(), [key]))


def _describe_wanted(found: Any) -> str:
    for kind, wanted in _MUST_BE.items():
        if found["type"].startswith(kind):
            return wanted.format(**found.get("ctx", {}))
    return str(found["msg"]).removeprefix("Input should be ")
