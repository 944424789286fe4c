"""Some columns have only the listed combinations of values: a city and its country."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictStr, model_validator

from sundog.data.code_set import CodeSet
from sundog.data.columns.arrow import Mask
from sundog.data.rules.rule import BoundRule, Cells, Codes, Domain, Rule, Value, quote

MOST_COLUMNS = 16
MOST_COMBINATIONS = 65_536


class AllowedCombinations(Rule):
    """The values that `columns` may have together; a missing value counts as a value, and is listed as null.

    >>> str(AllowedCombinations(columns=("city", "country"), allowed=(("Lyon", "FR"), ("Nice", "FR"))))
    'one of 2 combinations of city, country'
    """

    columns: Annotated[tuple[StrictStr, ...], Field(max_length=MOST_COLUMNS)]
    allowed: Annotated[
        tuple[Annotated[tuple[Value, ...], Field(max_length=MOST_COLUMNS)], ...],
        Field(fail_fast=True, min_length=1, max_length=MOST_COMBINATIONS),
    ]

    @model_validator(mode="after")
    def _is_a_table(self) -> AllowedCombinations:
        for row, values in enumerate(self.allowed, 1):
            if len(values) != len(self.columns):
                raise ValueError(
                    f"combination {row} has {len(values)} values for {len(self.columns)} columns; give one each"
                )
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.columns

    @property
    def size(self) -> int:
        """The values of all combinations."""
        return len(self.columns) * len(self.allowed)

    def to_dict(self) -> dict[str, Any]:
        """Return the columns and their combinations."""
        return {"columns": list(self.columns), "allowed": [list(values) for values in self.allowed]}

    def __str__(self) -> str:
        count = f"{len(self.allowed)} combination{'s' * (len(self.allowed) > 1)}"
        return f"one of {count} of {', '.join(map(quote, self.columns))}"

    def bind(self, domain: Domain) -> BoundCombinations:
        """Return the combinations as rows of codes."""
        domain.check_several(self.columns)
        values = zip(*self.allowed, strict=True)
        codes = [domain.encode(name, each) for name, each in zip(self.columns, values, strict=True)]
        return BoundCombinations(self.names, np.unique(np.stack(codes, axis=1), axis=0))


@dataclass(frozen=True)
class BoundCombinations(BoundRule):
    """The rows of codes that are allowed."""

    names: tuple[str, ...]
    rows: NDArray[np.int64]

    @cached_property
    def _known(self) -> list[NDArray[np.int64]]:
        """The codes of each column that occur in some row, ascending."""
        return [np.unique(column) for column in self.rows.T]

    def holds(self, codes: Codes) -> Mask:
        """Look combinations up column by column: a beginning of a row is a number, which the next column extends."""
        given = [np.asarray(codes[name]).astype(np.int64) for name in self.names]
        held = np.ones(given[0].shape, bool)
        key, listed = np.zeros(given[0].shape, np.int64), np.zeros(len(self.rows), np.int64)
        for values, column, known in zip(given, self.rows.T, self._known, strict=True):
            place = np.searchsorted(known, values).clip(max=len(known) - 1)
            held &= known[place] == values
            beginnings, listed = np.unique(listed * len(known) + np.searchsorted(known, column), return_inverse=True)
            wanted = key * len(known) + place
            key = np.searchsorted(beginnings, wanted).clip(max=len(beginnings) - 1)
            held &= beginnings[key] == wanted
        return held

    def possible(self, cells: Cells) -> Mask:
        """Mark the cells that some row lies in."""
        found = np.zeros([len(cells[name]) for name in self.names], bool)
        places = [_locate(codes, cells[name]) for name, codes in zip(self.names, self.rows.T, strict=True)]
        inside = np.logical_and.reduce([place >= 0 for place in places])
        found[tuple(place[inside] for place in places)] = True
        return found


def _locate(codes: NDArray[np.int64], cells: Sequence[CodeSet]) -> NDArray[np.int64]:
    """Return which of several disjoint sets each code is in; -1 for none."""
    ranges = sorted((first, last, number) for number, cell in enumerate(cells) for first, last in cell.ranges)
    if not ranges:
        return np.full(len(codes), -1)
    firsts, lasts, numbers = (np.array(each) for each in zip(*ranges, strict=True))
    place = np.searchsorted(firsts, codes, side="right") - 1
    return np.where((place >= 0) & (codes <= lasts[place]), numbers[place], -1)
