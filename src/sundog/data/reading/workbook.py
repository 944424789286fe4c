"""Workbooks (.xlsx): one sheet, whose first row names the columns; every cell keeps its own type."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import ParseError

from sundog.data.reading.python_values import open_objects, simplify_value
from sundog.data.reading.source import AnyPath, Source, explain_read_errors, refuse_directory
from sundog.data.reading.tables import check_unique
from sundog.data.validation_errors import suggest
from sundog.errors import DataError
from sundog.extras import import_extra

Row = tuple[Any, ...]


def open_workbook(path: AnyPath, *, sheet: str | None = None, nulls: Sequence[str] = ("",)) -> Source:
    """Open the named sheet of a workbook, or its only one.

    >>> from openpyxl import Workbook
    >>> book, path = Workbook(), getfixture("tmp_path") / "t.xlsx"
    >>> for row in (["age", "sex"], [31, "f"], [47, None]):
    ...     book.active.append(row)
    >>> book.save(path)
    >>> open_workbook(path).shapes
    {'age': (), 'sex': ()}
    """
    rows = _iter_rows(path, sheet)
    header = _read_header(next(rows, ()), path.name)
    columns: dict[str, list[Any]] = {name: [] for name in header}
    for number, row in enumerate(rows, start=2):
        if any(value is not None for value in row[len(header) :]):
            raise DataError(f"{path.name}: row {number} has a value in a column without a name; name it")
        if any(value is not None for value in row):  # an empty row is not a record
            for place, values in enumerate(columns.values()):
                values.append(simplify_value(row[place]) if place < len(row) else None)
    return open_objects(columns, path.name, nulls)


def _iter_rows(path: AnyPath, sheet: str | None) -> Iterator[Row]:
    openpyxl = import_extra("openpyxl", "xlsx")
    with explain_read_errors(path.name):
        refuse_directory(path)
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about parts that it does not read: charts, validations, …
            try:
                book = openpyxl.load_workbook(file, read_only=True, data_only=True)
                sheets = {each.title: each for each in book.worksheets}
                found = sheets[_choose_sheet(list(sheets), sheet, path.name)]
                found.reset_dimensions()  # the declared dimensions may be wrong
                yield from found.iter_rows(values_only=True)
            except (KeyError, ValueError, TypeError, AttributeError, ParseError, zipfile.BadZipFile):
                raise DataError(f"{path.name}: cannot be read as a workbook; save it as .xlsx again") from None


def _choose_sheet(sheets: list[str], sheet: str | None, name: str) -> str:
    if sheet is None and len(sheets) != 1:
        listed = ", ".join(map(repr, sheets)) or "none"
        raise DataError(f"{name}: has several sheets ({listed}); name one, such as {name}?sheet={sheets[0]}")
    if sheet is not None and sheet not in sheets:
        raise DataError(f"{name}: there is no sheet {sheet!r}; {suggest(sheet, sheets)}")
    return sheets[0] if sheet is None else sheet


def _read_header(row: Row, name: str) -> list[str]:
    last = max((place for place, value in enumerate(row) if value is not None), default=-1)
    if last < 0:
        raise DataError(f"{name}: its first row is empty; put the column names there")
    if None in row[: last + 1]:
        raise DataError(f"{name}: column {row.index(None) + 1} has no name in the first row; name it")
    return check_unique([str(value) for value in row[: last + 1]], f"{name}: the first row")
