"""Csv files, read as exact text: the column types convert each value alone."""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.csv as pacsv

from sundog.data.reading.csv_line_checks import check_lines
from sundog.data.reading.source import AnyPath, Source, Values, explain_read_errors, open_bytes
from sundog.data.reading.tables import check_unique
from sundog.errors import DataError

BLOCK = 1 << 23  # bytes parsed at a time; also the longest possible row
# pyarrow frees its handle on a thread of its own, which aborts a process that is about to end: so the last one is kept.
_kept: deque[pa.PythonFile] = deque(maxlen=1)
TEXT = pa.dictionary(pa.int32(), pa.string())  # repeated spellings are stored and parsed once


def open_csv(
    path: AnyPath, *, delimiter: str = ",", nulls: Sequence[str] = ("",), multiline: Sequence[str] = ()
) -> Source:
    r"""Open a csv file, plain or gzip; every column is text, so that spellings are preserved.

    Every record is one line, except that the `multiline` values may contain line breaks, in quotes.

    >>> path = getfixture("tmp_path") / "t.csv"
    >>> _ = path.write_text("zip,n\n01234,1\n")
    >>> open_csv(path).load(["zip"])["zip"].to_pylist()
    ['01234']
    """
    header = read_csv_header(path, delimiter)
    shapes = dict.fromkeys(check_unique(header, f"{path.name}: the header"), ())
    return Source(path.name, shapes, lambda names: _load_csv(path, delimiter, header, names, multiline), tuple(nulls))


def read_csv_header(path: AnyPath, delimiter: str) -> list[str]:
    """Return the names in the first line; only the beginning of the file is decompressed."""
    name = path.name
    with explain_read_errors(name):
        with open_bytes(path) as file:
            start = file.read(BLOCK)
        if b"\0" in start:
            raise DataError(f"{name}: is not a text file (it has zero bytes); save it as csv in UTF-8")
        text = start.decode("utf-8-sig", errors="strict" if len(start) < BLOCK else "ignore")
    if not text.strip():
        raise DataError(f"{name}: is empty; give it a header line and records")
    try:
        return next(row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row)
    except (csv.Error, StopIteration):
        raise DataError(f"{name}: its first line is not a csv header; put the column names there") from None


def _load_csv(
    path: AnyPath, delimiter: str, header: list[str], names: list[str], multiline: Sequence[str]
) -> dict[str, Values]:
    with explain_read_errors(path.name), open_bytes(path) as file:
        handle = pa.PythonFile(check_lines(file, path.name, delimiter, multiline), mode="r")
        _kept.append(handle)
        try:
            table = pacsv.read_csv(
                handle,
                read_options=pacsv.ReadOptions(block_size=BLOCK),
                # With one column, an empty line is a missing value; otherwise it is ignored.
                parse_options=pacsv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=bool(multiline), ignore_empty_lines=len(header) > 1
                ),
                convert_options=pacsv.ConvertOptions(
                    include_columns=names, column_types=dict.fromkeys(names, TEXT), strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid as error:
            raise DataError(_diagnose(path, delimiter, header, str(error))) from None
    return {name: table[name] for name in names}


def _diagnose(path: AnyPath, delimiter: str, header: list[str], message: str) -> str:
    """Return what is wrong with a csv file that pyarrow refused, by reading it again; never quote a private row."""
    name = path.name
    if "UTF8" in message:
        column = next((f" column {c!r}" for i, c in enumerate(header) if f"column #{i}:" in message), "")
        return f"{name}:{column} is not UTF-8 text; save it as UTF-8"
    if "columns, got" in message:
        with open_bytes(path) as file:
            rows = csv.reader(io.TextIOWrapper(file, "utf-8-sig", "replace", newline=""), delimiter=delimiter)
            data = (row for row in rows if row or len(header) == 1)
            for number, row in enumerate(data):
                if number and len(row) != len(header):
                    return f"{name}: row {number} has {len(row)} fields, the header has {len(header)}; fix that row"
    if "straddling" in message:
        return f"{name}: a row is longer than {BLOCK >> 20} MiB; check its line ends"
    return f"{name}: cannot be read as csv; check delimiter and quotes"
