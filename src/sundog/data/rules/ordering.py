"""One number or time is not above another: `admitted <= discharged`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import StrictBool, StrictStr

from sundog.data.code_set import CodeSet
from sundog.data.columns import OrderedColumn
from sundog.data.columns.arrow import Mask
from sundog.data.rules.rule import BoundRule, Cells, Codes, Domain, Rule, quote, split_nulls


class Ordering(Rule):
    """`low <= high`, or `low < high`; a record with a missing value satisfies it.

    >>> str(Ordering(low="admitted", high="discharged"))
    'admitted <= discharged'
    """

    low: StrictStr
    high: StrictStr
    strict: StrictBool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The lower column, then the higher one."""
        return self.low, self.high

    def to_dict(self) -> str:
        """Return the text of the rule."""
        return f"{quote(self.low)} {'<' if self.strict else '<='} {quote(self.high)}"

    def __str__(self) -> str:
        return self.to_dict()

    def bind(self, domain: Domain) -> BoundOrdering:
        """Return the rule for two columns of numbers, or two of times."""
        if self.low == self.high:
            raise ValueError(f"compares column {self.low!r} with itself; name another one")
        low, high = domain.numeric(self.low), domain.numeric(self.high)
        if low.axis != high.axis:
            raise ValueError(f"{self.low!r} holds {low.axis} and {self.high!r} {high.axis}, which do not compare")
        return BoundOrdering(self.names, (low, high), strict=self.strict)


@dataclass(frozen=True)
class BoundOrdering(BoundRule):
    """The order of two columns of codes."""

    names: tuple[str, ...]
    columns: tuple[OrderedColumn, OrderedColumn]
    strict: bool

    def holds(self, codes: Codes) -> Mask:
        """Compare the values, also as a DataFrame has them, where it rounds them to float32."""
        parts = [split_nulls(column, codes[name]) for name, column in zip(self.names, self.columns, strict=True)]
        held = parts[0][1] | parts[1][1]
        both = [False, True] if any(column.is_float32 for column in self.columns) else [False]
        in_order = [self._compare(*self._numbers([each for each, _ in parts], framed=framed)) for framed in both]
        return np.asarray(held | np.logical_and.reduce(in_order))

    def possible(self, cells: Cells) -> Mask:
        """Compare the least value of the low cells with the largest of the high ones."""
        low, high = self.columns
        lows, low_null, low_known = _ends(low, cells[self.names[0]], last=False)
        highs, high_null, high_known = _ends(high, cells[self.names[1]], last=True)
        in_order = self._compare(lows[:, None], highs[None, :]) & low_known[:, None] & high_known[None, :]
        return np.asarray(in_order | low_null[:, None] | high_null[None, :])

    def find_contradiction(self) -> str | None:
        """Return a message where the ranges of the columns exclude each other."""
        low, high = self.columns
        least, most = low.to_numbers([0]), high.to_numbers([high.lattice_size - 1])
        if self._compare(least, most).all():
            return None
        return f"no values satisfy it: {self.names[0]!r} begins at {low.min}, and {self.names[1]!r} ends at {high.max}"

    def _numbers(self, codes: list[NDArray[Any]], *, framed: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        low, high = (column.to_numbers(each, framed=framed) for column, each in zip(self.columns, codes, strict=True))
        return low, high

    def _compare(self, low: NDArray[Any], high: NDArray[Any]) -> Mask:
        return np.asarray(low < high if self.strict else low <= high)


def _ends(column: OrderedColumn, cells: Any, *, last: bool) -> tuple[NDArray[Any], Mask, Mask]:
    """Return the first or the last value of each cell, which cells hold null, and which hold any value."""
    known = [cell & CodeSet.between(0, column.lattice_size - 1) for cell in cells]
    codes = [(cell.ranges[-1][1] if last else cell.ranges[0][0]) if cell else 0 for cell in known]
    null = [column.null_code is not None and column.null_code in cell for cell in cells]
    return column.to_numbers(np.array(codes, np.int64)), np.array(null, bool), np.array([bool(cell) for cell in known])
