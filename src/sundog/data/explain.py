"""One human line for what pydantic found wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

# Kinds of pydantic error, by how their names begin, and what the value must be instead.
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
    """The first problem as one line: which column, which key, what is wrong, what to do.

    Args:
        error: What pydantic raised.
        keys: The keys that each column type knows ("" for the schema itself), for suggestions.
    """
    keys = keys or {}
    # A value that fits none of several types is one problem, though pydantic lists it once a type.
    problems: dict[tuple[str, str, str], list[Any]] = {}
    for found in error.errors(include_url=False):
        problems.setdefault(_place(found["loc"], keys), []).append(found)
    (column, kind, key), same = next(iter(problems.items()))
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{column}{_problem(same, kind, key, keys)}{more}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A suggestion, or the choices where nothing is close.

    >>> did_you_mean("nulable", ["nullable", "min"])
    "did you mean 'nullable'?"
    >>> did_you_mean("x", ["min", "max"])
    'choose from min, max'
    """
    known = list(known)
    close = difflib.get_close_matches(str(name)[:100].lower(), known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(known)}"


def brief(value: object) -> str:
    """A value in a few characters, however large or deep it is.

    >>> brief([1, 2]), brief(None), brief("x")
    ('a list', 'nothing', "'x'")
    """
    if value is None:
        return "nothing"
    if not isinstance(value, (str, int, float, bytes)):
        return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, (list, tuple)) else "an object"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _place(loc: tuple[int | str, ...], keys: Mapping[str, Sequence[str]]) -> tuple[str, str, str]:
    """("columns", "age", "integer", "min") → "column 'age': ", "integer", "min"."""
    column = ""
    if len(loc) > 1 and loc[0] == "columns":
        column, loc = f"column {brief(loc[1])}: ", loc[2:]
    kind = str(loc[0]) if column and loc and loc[0] in keys else ""
    names = loc[1:] if kind else loc
    return column, kind, str(names[0]) if names else ""


def _problem(same: Sequence[Any], kind: str, key: str, keys: Mapping[str, Sequence[str]]) -> str:
    found = same[0]
    value = found.get("input")
    types = [name for name in keys if name]
    match found["type"]:
        case "value_error":
            return str(found["ctx"]["error"])
        case "extra_forbidden":
            known = keys.get(kind, ())
            return f"unknown key {brief(key)}; {did_you_mean(key, known) if known else 'remove it'}"
        case "missing":
            return f"{key} is missing; add it"
        case "invalid_key":
            return f"unknown key {brief(value)}; remove it"
        case "union_tag_invalid":
            return f"unknown type {brief(value['type'])}; {did_you_mean(value['type'], types)}"
        case "union_tag_not_found":
            return f"type is missing; choose from {', '.join(types)}"
    wanted = " or ".join(dict.fromkeys(_wanted(each) for each in same))
    return f"{key + ' ' if key else ''}must be {wanted}, got {brief(value)}"


def _wanted(found: Any) -> str:
    for kind, wanted in _MUST_BE.items():
        if found["type"].startswith(kind):
            return wanted.format(**found.get("ctx", {}))
    return str(found["msg"]).removeprefix("Input should be ")
