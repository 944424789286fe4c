"""Transaction files: one set of items a line."""

from __future__ import annotations

import pyarrow as pa

from sundog.data.reading.source import BARE, AnyPath, Source, explain_read_errors, open_bytes
from sundog.errors import DataError


def open_transactions(path: AnyPath) -> Source:
    r"""Open a transaction file: one record a line, with the separator of the column; an empty line is an empty set.

    >>> path = getfixture("tmp_path") / "t.txt"
    >>> _ = path.write_text("1 2\n\n3\n")
    >>> open_transactions(path).load([""])[""].to_pylist()
    ['1 2', '', '3']
    """
    with explain_read_errors(path.name), open_bytes(path) as file:
        lines = file.read().decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    if broken := next((number for number, line in enumerate(lines, start=1) if "\r" in line), None):
        raise DataError(f"{path.name}: line {broken} contains a carriage return; end lines with \\n or \\r\\n")
    if lines[-1] == "":
        lines.pop()
    text = pa.chunked_array([pa.array(lines, pa.string())])
    return Source(path.name, {BARE: ()}, lambda names: dict.fromkeys(names, text))
