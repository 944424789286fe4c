"""A column follows from another by a public table: the number of a level of education from its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, ConfigDict, Field, StrictStr

from sundog.data.code_set import CodeSet
from sundog.data.columns import ScalarColumn
from sundog.data.columns.arrow import Mask
from sundog.data.rules.rule import Codes, Derivation, Domain, Rule, Value, quote, show

LARGEST_TABLE = 65_536
_UNLISTED = -1


def _to_pairs(table: Any) -> Any:
    return tuple(table.items()) if isinstance(table, Mapping) else table


class FunctionalDependency(Rule):
    """`column` follows from `source` by a table, which lists every value of the source.

    >>> str(FunctionalDependency(column="years", source="school", table=(("none", 0), ("high", 12))))
    'years from school'
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    column: StrictStr
    source: StrictStr = Field(validation_alias="from")
    table: Annotated[
        tuple[tuple[Value, Value], ...],
        Field(fail_fast=True, min_length=1, max_length=LARGEST_TABLE),
        BeforeValidator(_to_pairs),
    ]

    @property
    def names(self) -> tuple[str, ...]:
        """The column, then its source."""
        return self.column, self.source

    @property
    def derived(self) -> str:
        """The column."""
        return self.column

    @property
    def size(self) -> int:
        """Two for each row of the table."""
        return 2 * len(self.table)

    def to_dict(self) -> dict[str, Any]:
        """Return it with its table as pairs: keys of a JSON object are text, and values may be numbers."""
        return {"column": self.column, "from": self.source, "table": [list(pair) for pair in self.table]}

    def to_yaml(self) -> dict[str, Any]:
        """Return it with its table as a mapping."""
        return {**self.to_dict(), "table": dict(self.table)}

    def __str__(self) -> str:
        return f"{quote(self.column)} from {quote(self.source)}"

    def bind(self, domain: Domain) -> BoundDependency:
        """Return the rule as a table of codes."""
        if self.column == self.source:
            raise ValueError(f"derives column {self.column!r} from itself; name another one")
        source, target = domain.scalar(self.source), domain.scalar(self.column)
        if source.size > LARGEST_TABLE:
            raise ValueError(
                f"column {self.source!r} has more than {LARGEST_TABLE:,} values; derive from a smaller one"
            )
        given = domain.encode(self.source, [value for value, _ in self.table])
        made = domain.encode(self.column, [value for _, value in self.table])
        if len(np.unique(given)) < len(given):
            first = next(place for place in range(len(given)) if given[place] in given[:place])
            raise ValueError(f"table lists {show(self.table[first][0])} twice; keep one")
        codes = np.full(source.size, _UNLISTED, np.int64)
        if source.null_code is not None and target.null_code is not None:
            codes[source.null_code] = target.null_code  # unless the table says otherwise
        codes[given] = made
        return BoundDependency(self.names, source, target, codes)


@dataclass(frozen=True)
class BoundDependency(Derivation):
    """The code of the derived column for each code of its source."""

    names: tuple[str, ...]
    source: ScalarColumn
    target: ScalarColumn
    table: NDArray[np.int64]

    def derive(self, codes: Codes) -> tuple[NDArray[Any], Mask]:
        """Look the codes up."""
        found = self.table[np.asarray(codes[self.names[1]]).astype(np.int64)]
        return np.maximum(found, 0).astype(self.target.dtype), np.asarray(found != _UNLISTED)

    def holds(self, codes: Codes) -> Mask:
        """Compare with the table."""
        found, listed = self.derive(codes)
        return np.asarray(listed & (found == codes[self.names[0]]))

    def translate(self, allowed: CodeSet) -> CodeSet:
        """Return the codes of the source whose entry in the table is allowed."""
        return CodeSet.of(np.flatnonzero((self.table != _UNLISTED) & allowed.includes(self.table)).tolist())

    def find_contradiction(self) -> str | None:
        """Return a message where the table leaves out a value of the source."""
        absent = np.flatnonzero(self.table == _UNLISTED)
        if not len(absent):
            return None
        first = self.source.label(int(absent[0]))
        more = f" and {len(absent) - 1:,} more" if len(absent) > 1 else ""
        return f"its table lacks {first}{more} of column {self.names[1]!r}; list every value"
