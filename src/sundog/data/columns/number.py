"""What integer and continuous columns share: the format of their numbers in text."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import field_validator

from sundog.data.columns.forms import Unknown
from sundog.data.columns.frame_dtypes import NUMBERS, find_number_problem
from sundog.data.columns.number_format import NumberFormat
from sundog.data.columns.number_parsing import parse_integer, parse_number
from sundog.data.columns.ordered import OrderedColumn
from sundog.data.validation_errors import format_value
from sundog.errors import DataError


class NumberColumn(OrderedColumn):
    """A number; its text is plain, or formatted like the example in `format` ("1,234.5")."""

    unknown: ClassVar[Literal[Unknown.RANGE]] = Unknown.RANGE
    text_hint: ClassVar[str] = ", or declare the `format` of the text"

    format: str | None = None

    @field_validator("format")
    @classmethod
    def _check_format(cls, example: str | None) -> str | None:
        if example is not None:
            try:
                NumberFormat.of(example)
            except ValueError:
                raise ValueError(
                    f"format {format_value(example)} is not an example of a number; write one such as '1,234.5'"
                ) from None
        return example

    def to_plain(self, values: Any) -> Any:
        """Return texts as plain numbers; typed values unchanged."""
        return values if self._written is None else self._written.to_plain(values)

    def spell(self, values: Any) -> Any:
        """Return decoded numbers as text that `encode` maps back to the same codes."""
        texts = pc.cast(values, pa.string())
        return texts if self._written is None else self._written.spell(texts)

    @property
    def reads_text(self) -> bool:
        """Whether a text format is declared."""
        return self.format is not None

    def parse_bound(self, value: Any) -> Any:
        """Return a number to compare with, which may be written in the declared format."""
        text = self.to_plain(pa.array([str(value)]))[0].as_py()
        number = parse_integer(text)
        number = parse_number(text) if number is None else number
        if number is None:
            raise DataError(f"{format_value(value)} is not a number; compare with a number")
        return number

    def to_position(self, value: Any) -> Any:
        """Return a bound or an edge unchanged: numbers compare with each other."""
        return value

    def _find_limit_problem(self, name: str) -> str | None:
        known = [bound for bound in (self.min, self.max) if bound is not None]
        return find_number_problem(name, known) if name in NUMBERS else None

    @property
    def _expected(self) -> str:
        return "" if self.format is None else f" written as {self.format}"

    @cached_property
    def _written(self) -> NumberFormat | None:
        return None if self.format is None else NumberFormat.of(self.format)
