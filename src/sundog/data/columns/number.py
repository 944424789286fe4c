"""What integer and continuous columns share: how their numbers are written in text."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import field_validator

from sundog.data.columns.arrow import shown
from sundog.data.columns.number_format import NumberFormat
from sundog.data.columns.ordered import OrderedColumn


class NumberColumn(OrderedColumn):
    """A number; text is written plainly, or as the example in `format` shows ("1,234.5")."""

    format: str | None = None

    @field_validator("format")
    @classmethod
    def _is_an_example(cls, example: str | None) -> str | None:
        if example is not None:
            try:
                NumberFormat.of(example)
            except ValueError:
                raise ValueError(
                    f"format {shown(example)} is not an example of a number; write one such as '1,234.5'"
                ) from None
        return example

    def plain(self, values: Any) -> Any:
        """Text values as plain numbers; typed ones as they are."""
        return values if self._written is None else self._written.to_plain(values)

    def spell(self, values: Any) -> Any:
        """Decoded numbers as text, such that `encode` gives the same codes."""
        texts = pc.cast(values, pa.string())
        return texts if self._written is None else self._written.spell(texts)

    @property
    def _expected(self) -> str:
        return "" if self.format is None else f" written as {self.format}"

    @cached_property
    def _written(self) -> NumberFormat | None:
        return None if self.format is None else NumberFormat.of(self.format)
