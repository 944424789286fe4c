"""Schema files: YAML that is read strictly and written to be readable."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sundog.data.validation_errors import describe_value
from sundog.errors import SchemaError
from sundog.files import replace_file
from sundog.untrusted_text import to_one_line

MAX_BYTES = 16 * 2**20
_TAG = "tag:yaml.org,2002:"

_DRAFT_HEADER = """\
# DRAFT, made by looking at the data: NOT PRIVATE until someone has reviewed it.
# Bounds and categories below were copied from the records, and may give away the people behind them. For each column:
#   - min and max: replace them by what is publicly known, not by the smallest and largest value seen
#   - values: keep those that anyone could name without the data; send the rest to an `other`, or say `learn: true`
#   - special: keep those that the documentation names, such as -1 for "never"; see the comments for more
#   - rules, if there are any: keep those that anyone could know without the data
#   - names, numbers and free text that identify someone: remove the column, or make it the `unit`
# Then set `reviewed: true`.
"""


@dataclass(frozen=True)
class Comments:
    """The comments of a draft on its columns, on the columns that it leaves out, and on its rules."""

    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    end: Sequence[str] = ()
    rules: Sequence[str] = ()


NO_COMMENTS = Comments()


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the C loader is ten times as fast
    """Safe YAML in which text stays text, and categories keep their spelling.

    PyYAML's rules would turn yes and no into booleans, 12:30 into 750, 010 into 8, 1.10 into 1.1, 2020-01-01 into a
    date, and keep 1e-6 as text. Merge keys (<<) are left out: with them a small file can grow without bound.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


class _Dumper(yaml.SafeDumper):
    """Quotes text that a YAML reader might take for another type, and writes each column on a line."""


# Everything that is not text: true, false, null, and numbers as Python prints them.
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^(?:0|-?[1-9][0-9]*)$", "-0123456789"),
    ("float", r"^-?(?:0|[1-9][0-9]*)(?:\.(?:0|[0-9]*[1-9]))?(?:[eE][-+]?[0-9]+)?$", "-0123456789"),
):
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"{_TAG}{_tag}", re.compile(_pattern), list(_first))


def _construct_mapping(loader: Any, node: Any) -> dict[Any, Any]:
    """Return a mapping; refuse a repeated key, as the second would silently win."""
    result: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, (dict, list)):
            raise yaml.MarkedYAMLError(problem="a key must be a name", problem_mark=key_node.start_mark)
        if key in result:
            raise yaml.MarkedYAMLError(
                problem=f"{describe_value(key)} is given twice", problem_mark=key_node.start_mark
            )
        result[key] = loader.construct_object(value_node, deep=True)
    return result


_Loader.add_constructor(f"{_TAG}map", _construct_mapping)


class _Flow(dict[str, Any]):
    """A mapping to be written on one line."""


class _Lines(list[Any]):
    """A list to be written with one item on each line."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # PyYAML breaks lines at characters that other readers do not treat as line ends; escape them.
    return dumper.represent_scalar(f"{_TAG}str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(_Flow, lambda dumper, data: dumper.represent_mapping(f"{_TAG}map", data, flow_style=True))
_Dumper.add_representer(list, lambda dumper, data: dumper.represent_sequence(f"{_TAG}seq", data, flow_style=True))
_Dumper.add_representer(_Lines, lambda dumper, data: dumper.represent_sequence(f"{_TAG}seq", data, flow_style=False))
_Dumper.add_representer(str, _represent_text)


def load(path: Path) -> Any:
    """Return the plain data of a schema file; raise SchemaError, with a message of one line, if it is not valid."""
    text = _read(path)
    try:
        data = yaml.load(text, Loader=_Loader)  # noqa: S506  # a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = " ".join(str(error.problem or error.context).split())
        raise SchemaError(f"{path}: not a valid schema file{at}: {problem}; fix the YAML there") from None
    except RecursionError:
        raise SchemaError(
            f"{path}: not a valid schema file: nested too deeply; it must be YAML with `columns`"
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        problem = " ".join(str(error).split())[:120]
        raise SchemaError(f"{path}: not a valid schema file: {problem}; it must be YAML with `columns`") from None
    if data is None:
        raise SchemaError(f"{path}: is empty; declare `columns`, or draft it with `sundog schema DATA -o {path}`")
    return data


def dump(data: dict[str, Any], comments: Comments = NO_COMMENTS) -> str:
    """Return the text of a schema file."""
    head = "" if data.get("reviewed", True) else _DRAFT_HEADER
    rest = {key: value for key, value in data.items() if key not in ("columns", "rules")}
    head += _dump_yaml(rest) if rest else ""
    columns = [
        _format_comments(comments.columns.get(name, ())) + _indent(_dump_yaml({name: _Flow(column)}))
        for name, column in data["columns"].items()
    ]
    end = _format_comments(["left out:", *comments.end]) if comments.end else ""
    return f"{head}columns:\n{''.join(columns)}{end}{_dump_rules(data.get('rules', []), comments.rules)}"


def _dump_rules(rules: Sequence[Any], comments: Sequence[str]) -> str:
    if not rules:
        return ""
    written = _dump_yaml(_Lines(_Flow(rule) if isinstance(rule, dict) else rule for rule in rules))
    return f"rules:\n{_format_comments(comments)}{_indent(written)}"


def _dump_yaml(data: Any) -> str:
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=108)
    return text


def _indent(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.rstrip("\n").split("\n"))


def _format_comments(lines: Sequence[str]) -> str:
    return "".join(f"  # {to_one_line(line)}\n" for line in lines)


def save(text: str, path: Path) -> None:
    """Write a schema file atomically."""
    try:
        with replace_file(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise SchemaError(f"{path}: cannot be written: {error.strerror}; choose another place") from None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SchemaError(f"{path}: no such file; check the path, or draft it with `sundog schema`") from None
    except IsADirectoryError:
        raise SchemaError(f"{path}: is a folder; name the schema file in it") from None
    except OSError as error:
        raise SchemaError(f"{path}: cannot be read: {error.strerror}; check the path and its permissions") from None
    if len(content) > MAX_BYTES:
        raise SchemaError(f"{path}: is larger than {MAX_BYTES // 2**20} MiB; is it the data? give the schema file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError(f"{path}: is not UTF-8 text; give the schema file, saved as UTF-8") from None
