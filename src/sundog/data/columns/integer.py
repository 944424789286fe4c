"""Whole numbers between two bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from sundog.data.columns.arrow import Mask
from sundog.data.columns.containers import ROUNDED, unwrap_one
from sundog.data.columns.frame_dtypes import NUMBERS, TEXT
from sundog.data.columns.number import NumberColumn
from sundog.data.columns.number_parsing import COARSEST, parse_integer, parse_number_unless_code, to_int64
from sundog.data.columns.ordered import Whole, describe_out_of_bounds
from sundog.data.validation_errors import format_value

_FAR = 2**61  # learned bounds lie between −2^61 and 2^61

Int64 = Annotated[Whole, Field(ge=-(2**63), le=2**63 - 1)]


class IntegerColumn(NumberColumn):
    """A whole number, such as an age or a count. With a `step`, the nearest of min, min + step, …, max is kept.

    >>> age = IntegerColumn(min=17, max=90, nullable=True)
    >>> age.encode(pa.array(["17", "90", None]), where="adult.csv: column 'age'").tolist()
    [0, 73, 74]
    >>> age.decode([0, 73, 74]).to_pylist()
    [17, 90, None]
    """

    type: Literal["integer"] = "integer"
    min: Int64 | None = None
    max: Int64 | None = None
    step: Annotated[Whole, Field(ge=1, le=2**63 - 1)] = 1
    edges: Annotated[tuple[Int64, ...], Field(fail_fast=True, min_length=1, max_length=65_536)] | None = None
    special: Annotated[tuple[Int64, ...], Field(min_length=1, max_length=1024)] | None = None

    @property
    def lattice_size(self) -> int:
        """The number of values from min to max."""
        low, high = self._bounds
        return -(-(high - low) // self.step) + 1

    def find_first_code(self, value: Any) -> int:
        """Return the first code whose value is not below the given one; `lattice_size` if all are below."""
        low, high = self._bounds
        return self.lattice_size if value > high else max(0, -int((low - value) // self.step))

    @property
    def _bounds(self) -> tuple[int, int]:
        if self.min is None or self.max is None:
            raise ValueError("the bounds of this column must be learned first")
        return self.min, self.max

    @property
    def spacing(self) -> tuple[float, float]:
        """The step, and the distance between the bounds; the last step may be shorter."""
        low, high = self._bounds
        return self.step, high - low

    @property
    def possible_dtypes(self) -> tuple[str, ...]:
        """Numbers and text."""
        return (*NUMBERS, *TEXT)

    def misreads_text(self, nulls: Sequence[str]) -> bool:
        """Return whether a null spelling is a number: '7.0' is read as 7, but not as a missing value spelled '7'."""
        return any(parse_number_unless_code(null) is not None for null in nulls)

    def to_learning_input(self, values: Any, *, where: str) -> Any:
        """Return the numbers that are present."""
        wide = self.replace(min=-_FAR, max=_FAR, step=1, bins=None)
        return (wide.encode_present(values, where=where) - _FAR).astype(np.float64)

    def complete_with(self, answer: Any) -> Self:
        """Return the column with whole bounds around the learned ones."""
        low, high = (int(max(-_FAR, min(_FAR, end))) for end in (math.floor(answer[0]), math.ceil(answer[1])))
        return self.with_bounds(low, high)

    def _find_limit_problem(self, name: str) -> str | None:
        if self.learn and name in NUMBERS:
            holds_all = name.lower() in ("int64", "float64")
            return None if holds_all else f"dtype {name} may not hold the bounds that are learned; leave it out"
        return super()._find_limit_problem(name)

    @property
    def rounding(self) -> float:
        """Half a step, where there are steps: whole numbers are kept as they are."""
        return 0.0 if self.step == 1 else self.step / 2

    def from_numbers(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
        """Return the codes of the nearest whole numbers, and which lie beyond bounds that do not clamp."""
        return super().from_numbers(np.rint(numbers).astype(np.int64))

    def _is_on_lattice(self, value: Any) -> bool:
        low, high = self._bounds
        return bool(value == high or (value - low) % self.step == 0)

    def _encode_array(self, values: Any) -> tuple[NDArray[Any], Mask]:
        found = to_int64(self.to_plain(values))
        low, high = self._bounds
        below, above = found.too_low | (found.values < low), found.too_high | (found.values > high)
        codes, bad = self._apply_bounds(self._find_nearest(np.clip(found.values, low, high)), below, above)
        # A rounded float beyond the bounds may have been a whole number within them.
        within = (found.values >= low - COARSEST) & (found.values <= high + COARSEST)
        return codes, bad | found.bad | (found.rounded & within)

    def _find_nearest(self, values: NDArray[np.int64]) -> NDArray[np.uint64]:
        low, high = self._bounds
        # Unsigned arithmetic wraps around, so that the distance is exact even where int64 would overflow.
        offset = values.view(np.uint64) - np.uint64(low % 2**64)
        if self.step == 1:
            return offset
        code, rest = np.divmod(offset, np.uint64(self.step))
        whole = (high - low) // self.step
        # The step up to max may be shorter than the others.
        step = np.where(code == whole, np.uint64(max((high - low) % self.step, 1)), np.uint64(self.step))
        return code + (rest >= step - rest) * (rest > 0)

    def _decode_array(self, codes: NDArray[Any], null: Mask | None) -> Any:
        low, high = self._bounds
        values = (codes.astype(np.uint64) * np.uint64(self.step) + np.uint64(low % 2**64)).view(np.int64)
        return pa.array(np.where(codes == self.lattice_size - 1, high, values), mask=null)

    def _explain_refusal(self, one: Any) -> str:
        value = unwrap_one(one)
        number = int(value) if isinstance(value, bool) else parse_integer(str(unwrap_one(self.to_plain(one))))
        if number is None:
            fix = "fix it, or list it under `nulls` if it means missing"
            return f"{format_value(value)} is not a whole number{self._expected}; {fix}"
        low, high = self._bounds
        if self.clamps or low <= number <= high:
            return f"{format_value(value)}: {ROUNDED}"
        return describe_out_of_bounds(value, below=number < low, low=low, high=high)
