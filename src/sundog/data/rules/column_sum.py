"""A column is the sum, or difference, of others: `total = rent + food - refund`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictBool, StrictStr

from sundog.data.columns import OrderedColumn
from sundog.data.columns.arrow import Mask
from sundog.data.rules.rule import Codes, Derivation, Domain, Rule, quote, split_nulls

MOST_TERMS = 64
_EXACT = 2**62  # sums of whole numbers stay below this
_RELATIVE = 1e-9  # what float64 may add to a rounding error


class ColumnSum(Rule):
    """`column = a + b - c`. Differences of times are counted in their resolution: days, hours, … .

    >>> str(ColumnSum(column="total", terms=(("rent", True), ("refund", False))))
    'total = rent - refund'

    Args:
        column: the column that is computed.
        terms: the columns that it is computed from, and whether each is added (or else subtracted).
    """

    column: StrictStr
    terms: Annotated[tuple[tuple[StrictStr, StrictBool], ...], Field(min_length=1, max_length=MOST_TERMS)]

    @property
    def names(self) -> tuple[str, ...]:
        """The computed column, then those that it is computed from."""
        return (self.column, *dict.fromkeys(name for name, _ in self.terms))

    @property
    def derived(self) -> str:
        """The computed column."""
        return self.column

    def to_dict(self) -> str:
        """Return the text of the rule."""
        (first, added), *rest = self.terms
        sum_text = f"{'' if added else '- '}{quote(first)}"
        return f"{quote(self.column)} = {sum_text}" + "".join(
            f" {'+' if plus else '-'} {quote(name)}" for name, plus in rest
        )

    def __str__(self) -> str:
        return self.to_dict()

    def bind(self, domain: Domain) -> BoundSum:
        """Return the rule for columns whose values can be added."""
        if self.column in self.names[1:]:
            raise ValueError(f"computes column {self.column!r} from itself; name others")
        target = domain.numeric(self.column)
        terms = tuple((name, domain.numeric(name), 1 if added else -1) for name, added in self.terms)
        _check_units(self.column, target, terms)
        nullable = next((name for name, column, _ in terms if column.nullable), None)
        if nullable is not None and not target.nullable:
            raise ValueError(f"{nullable!r} may be missing and {self.column!r} not; declare it `nullable: true`")
        return BoundSum(self.names, target, terms)


def _check_units(name: str, target: OrderedColumn, terms: tuple[tuple[str, OrderedColumn, int], ...]) -> None:
    """Raise if the sum is none: numbers add to numbers, and a time plus numbers is a time."""
    for each, column in ((name, target), *((each, column) for each, column, _ in terms)):
        if column.sum_unit is None:
            raise ValueError(f"column {each!r} has a timezone, and such times are not added; leave out the timezone")
    units = {column.sum_unit for column in (target, *(column for _, column, _ in terms)) if column.sum_unit}
    if len(units) > 1:
        raise ValueError(f"adds times in {' and '.join(sorted(map(str, units)))}s; declare one resolution for all")
    decimal = next((each for each, column, _ in terms if not column.holds_whole_numbers), None)
    if target.sum_unit and decimal is not None:
        raise ValueError(f"adds {decimal!r} to a time; declare it as whole {target.sum_unit}s (type: integer)")
    times = sum(sign for _, column, sign in terms if column.sum_unit)
    if times != int(bool(target.sum_unit)):
        raise ValueError(
            f"does not give {'a time' if target.sum_unit else 'a number'}; a time minus a time is a number"
        )


@dataclass(frozen=True)
class BoundSum(Derivation):
    """The sum of columns of codes."""

    names: tuple[str, ...]
    target: OrderedColumn
    terms: tuple[tuple[str, OrderedColumn, int], ...]

    def derive(self, codes: Codes) -> tuple[NDArray[Any], Mask]:
        """Return what the column reads the sums as: rounded to its values, and clamped only where it says so.

        A sum with a missing term is missing. Records whose sum the column cannot hold have none.
        """
        sums, null = self._sums(codes)
        low, high = self._bounds(self.target)
        near = sums if self.target.ticks == 1 else np.clip(sums, low - 1, high + 1)  # a tick may be many of a unit
        found, outside = self.target.from_numbers(near * self.target.ticks)
        found = found.astype(self.target.dtype)
        if self.target.null_code is not None:
            found = np.where(null, self.target.null_code, found).astype(self.target.dtype)
        return found, np.asarray(~outside | null)

    def holds(self, codes: Codes) -> Mask:
        """Compare with the sums; each value may be rounded to the resolution of its column."""
        sums, null = self._sums(codes)
        found, missing = split_nulls(self.target, codes[self.names[0]])
        low, high = self._bounds(self.target)
        expected = np.clip(sums, low, high) if self.target.clamps else sums
        given = self._quantities(self.target, found)
        slack = self._rounding(sums) + sum(column.rounding for _, column, _ in self.terms)
        near = np.abs(given - expected) <= slack * (1 + _RELATIVE) + _RELATIVE * np.abs(expected) * (slack > 0)
        return np.asarray(np.where(null | missing, null & missing, near))

    @property
    def may_fail(self) -> bool:
        """Whether a sum may lie beyond the bounds of the column."""
        (least, most), (low, high) = self._extent, self._bounds(self.target)
        return not self.target.clamps and (least < low or most > high)

    def find_contradiction(self) -> str | None:
        """Return a message where no sum lies within the bounds of the column, or sums are too large to be exact."""
        least, most = self._extent
        ends = [end for _, column, _ in self.terms for end in self._bounds(column) if isinstance(end, int)]
        if sum(map(abs, ends)) > _EXACT:
            return "its numbers are too large to be added exactly; narrow min and max"
        low, high = self._bounds(self.target)
        if self.target.clamps or (least <= high and low <= most):
            return None
        return f"no sum fits: it lies between {least} and {most}, and {self.names[0]!r} between {low} and {high}"

    @property
    def _extent(self) -> tuple[Any, Any]:
        """The least and the largest sum."""
        ends = [sorted(sign * end for end in self._bounds(column)) for _, column, sign in self.terms]
        return sum(low for low, _ in ends), sum(high for _, high in ends)

    def _sums(self, codes: Codes) -> tuple[NDArray[Any], Mask]:
        """Return the sum of each record, whole numbers where all columns hold those, and which have a missing term."""
        total: Any = np.int64(0)
        absent: Any = np.False_
        for name, column, sign in self.terms:
            known, null = split_nulls(column, codes[name])
            total = total + sign * self._quantities(column, known)
            absent = absent | null
        return np.asarray(total), np.asarray(absent)

    def _rounding(self, sums: NDArray[Any]) -> float:
        """Return by how much the column may differ from sums: whole numbers add to whole numbers, decimals need not."""
        return self.target.spacing[0] / 2 if sums.dtype.kind == "f" else self.target.rounding

    @staticmethod
    def _quantities(column: OrderedColumn, codes: Any) -> NDArray[Any]:
        numbers = column.to_numbers(codes)
        return numbers if column.ticks == 1 else numbers // column.ticks

    def _bounds(self, column: OrderedColumn) -> tuple[Any, Any]:
        low, high = self._quantities(column, np.array([0, column.lattice_size - 1])).tolist()
        return low, high
