"""Some columns are missing together: neither part of a blood pressure without the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any

import numpy as np
from pydantic import Field, StrictStr

from sundog.data.code_set import CodeSet
from sundog.data.columns.arrow import Mask
from sundog.data.rules.rule import BoundRule, Cells, Codes, Domain, Rule, quote

MOST_COLUMNS = 64


class NullTogether(Rule):
    """In each record, all of the columns are missing or none is.

    >>> str(NullTogether(null_together=("systolic", "diastolic")))
    'systolic, diastolic missing together'
    """

    null_together: Annotated[tuple[StrictStr, ...], Field(max_length=MOST_COLUMNS)]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.null_together

    def to_dict(self) -> dict[str, Any]:
        """Return the list of columns."""
        return {"null_together": list(self.null_together)}

    def __str__(self) -> str:
        return f"{', '.join(map(quote, self.null_together))} missing together"

    def bind(self, domain: Domain) -> BoundNullTogether:
        """Return the rule for columns that are all nullable."""
        domain.check_several(self.names)
        codes = []
        for name in self.names:
            null = domain.scalar(name).null_code
            if null is None:
                raise ValueError(f"column {name!r} is never missing; declare it `nullable: true`")
            codes.append(null)
        return BoundNullTogether(self.names, tuple(codes))


@dataclass(frozen=True)
class BoundNullTogether(BoundRule):
    """The null code of each column."""

    names: tuple[str, ...]
    nulls: tuple[int, ...]

    def holds(self, codes: Codes) -> Mask:
        """Count the missing values of each record."""
        missing = [np.asarray(codes[name]) == null for name, null in zip(self.names, self.nulls, strict=True)]
        return np.asarray(np.logical_and.reduce(missing) | ~np.logical_or.reduce(missing))

    def possible(self, cells: Cells) -> Mask:
        """Mark cells that all hold null, or all hold some value."""
        parts = list(zip(self.names, self.nulls, strict=True))
        null = [np.array([code in cell for cell in cells[name]]) for name, code in parts]
        known = [np.array([bool(cell & CodeSet.between(0, code - 1)) for cell in cells[name]]) for name, code in parts]
        return np.asarray(reduce(np.logical_and.outer, null) | reduce(np.logical_and.outer, known))
