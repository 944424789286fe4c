"""JSON lines: one object a line, whose keys are the columns; an absent key is a missing value."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sundog.data.reading.python_values import open_objects
from sundog.data.reading.source import AnyPath, Source, explain_read_errors, open_bytes
from sundog.errors import DataError


class _RepeatedKeyError(ValueError):
    """A key occurs twice in one object: the second would silently win."""


def open_json_lines(
    path: AnyPath, *, nulls: Sequence[str] = ("",), wanted: Collection[str | None] | None = None
) -> Source:
    r"""Open a file of JSON lines, plain or gzip.

    Args:
        path: the file.
        nulls: spellings of a missing value, besides null and an absent key.
        wanted: the columns to keep; all of them by default.

    >>> path = getfixture("tmp_path") / "t.jsonl"
    >>> _ = path.write_text('{"a": 1, "b": "x"}\n{"b": "y"}\n')
    >>> open_json_lines(path).shapes
    {'a': (), 'b': ()}
    """
    records = list(_parse_records(path, wanted))
    if not records:
        raise DataError(f"{path.name}: has no records; give one JSON object a line")
    names = dict.fromkeys(key for record in records for key in record)
    return open_objects({key: [record.get(key) for record in records] for key in names}, path.name, nulls)


def _parse_records(path: AnyPath, wanted: Collection[str | None] | None) -> Iterator[dict[str, Any]]:
    with explain_read_errors(path.name), open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if text.strip():
                yield _parse_record(text, f"{path.name}: line {number}", wanted)


def _parse_record(line: bytes, where: str, wanted: Collection[str | None] | None) -> dict[str, Any]:
    """Return the object of one line; error messages do not quote the line."""
    try:
        record = json.loads(line.decode("utf-8"), object_pairs_hook=_build_object)
    except UnicodeDecodeError:
        raise DataError(f"{where} is not UTF-8 text; save it as UTF-8") from None
    except _RepeatedKeyError as error:
        raise DataError(f"{where}: the key {str(error)!r} occurs twice; keep one") from None
    except (ValueError, RecursionError):
        raise DataError(f"{where} is not a JSON object; write one object a line") from None
    if not isinstance(record, dict):
        raise DataError(f'{where} is not a JSON object; write one object a line, such as {{"age": 31}}')
    kept = {key: value for key, value in record.items() if wanted is None or key in wanted}
    for key, value in kept.items():
        items = value if isinstance(value, list) else [value]
        if any(isinstance(item, list | dict) for item in items):
            raise DataError(f"{where}: {key!r} holds {_describe_kind(value)}; give each of its values a key of its own")
    return kept


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for place, key in enumerate(keys) if key in keys[:place]))
    return found


def _describe_kind(value: Any) -> str:
    return "an object" if isinstance(value, dict) else "a list of lists or objects"
