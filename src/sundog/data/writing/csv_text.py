"""Write records as csv text: every value is spelled so that reading it gives the same code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sundog.data.columns import Column
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError

TABLE_SIZE = 1 << 12  # the texts of a column with up to this many codes are computed once
ROWS = 1 << 16
CELLS = 1 << 22

Spell = Callable[[Any], list[pa.Array]]
"""Codes of one column to its csv columns: one, or as many as a series has steps."""


class Speller:
    r"""Converts records to csv lines, with quotes only where they are needed.

    >>> from sundog.data.reading.read import encode, read
    >>> schema = Schema.from_dict({"columns": {"a": {"type": "categorical", "values": ["x", "y, z"]}}})
    >>> speller = Speller(schema, ",")
    >>> records = encode(read({"a": ["y, z", "x"]}, schema), schema)
    >>> speller.spell_header(), b"".join(speller.spell_lines(records))
    (b'a\n', b'"y, z"\nx\n')
    """

    def __init__(self, schema: Schema, delimiter: str) -> None:
        self.delimiter = delimiter
        self.names = [part for name, column in schema.columns.items() for part in column.name_table_columns(name)]
        self.nulls = {name: choose_null_spelling(name, column, schema.nulls) for name, column in schema.columns.items()}
        self.spells = {name: self._choose_spell(name, column) for name, column in schema.columns.items()}

    def spell_header(self) -> bytes:
        """Return the header line."""
        return self.delimiter.join(self._quote(pa.array(self.names, pa.string())).to_pylist()).encode() + b"\n"

    def spell_lines(self, records: Records) -> Iterator[bytes]:
        """Yield the lines of the records, some thousands at a time."""
        rows = max(1, min(ROWS, CELLS // len(self.names)))
        for start in range(0, len(records), rows):
            piece = {name: codes[start : start + rows] for name, codes in records.codes.items()}
            cells = [text for name, spell in self.spells.items() for text in spell(piece[name])]
            lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, self.delimiter), "", "\n")
            # The texts of an Arrow array are contiguous in memory: its buffer is the csv.
            _, offsets, data = lines.buffers()
            yield data.slice(0, int(np.frombuffer(offsets, np.int32)[len(lines)]))

    def _choose_spell(self, name: str, column: Column) -> Spell:
        if problem := column.text_problem:
            raise DataError(f"column {name!r}: {problem}")
        if not column.is_scalar or column.size > TABLE_SIZE:
            return lambda codes: [self._fill_cells(name, text) for text in column.to_text(codes)]
        (texts,) = column.to_text(np.arange(column.size))
        table = self._fill_cells(name, texts)
        return lambda codes: [table.take(pa.array(codes))]

    def _fill_cells(self, name: str, text: pa.Array) -> pa.Array:
        """Return the csv cells of texts, with missing values spelled and quotes where needed."""
        return self._quote(pc.fill_null(text, self.nulls[name]))

    def _quote(self, text: pa.Array) -> pa.Array:
        """Quote cells with a delimiter, a quote or a line end, and the empty cells of a table of one column."""
        special = f'["\r\n{re.escape(self.delimiter)}]' + ("|^$" if len(self.names) == 1 else "")
        needs = pc.match_substring_regex(text, special)
        if not pc.any(needs).as_py():
            return text
        doubled = pc.replace_substring(text, '"', '""')
        return pc.if_else(needs, pc.binary_join_element_wise('"', doubled, '"', ""), text)


def choose_null_spelling(name: str, column: Column, nulls: Sequence[str]) -> str:
    """Return the spelling of a missing value: the first declared one that is not a value of the column.

    >>> from sundog.data.columns import CategoricalColumn
    >>> choose_null_spelling("c", CategoricalColumn(values=["", "x"], nullable=True), ["", "NA"])
    'NA'
    """
    free = column.find_null_spellings(nulls)
    if column.nullable and not free:
        raise DataError(f"column {name!r}: every spelling in `nulls` is one of its values; add another to `nulls`")
    return free[0] if free else ""
