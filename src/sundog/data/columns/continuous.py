"""Measurements: real numbers between two bounds, kept to a declared resolution."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from sundog.data.columns.arrow import Mask, is_missing
from sundog.data.columns.containers import split_kinds, take_one, unwrap_one
from sundog.data.columns.frame_dtypes import REALS, TEXT, round_inward
from sundog.data.columns.lattice import Lattice, choose_resolution
from sundog.data.columns.number import NumberColumn
from sundog.data.columns.number_parsing import to_float64
from sundog.data.columns.ordered import Number, describe_out_of_bounds
from sundog.data.validation_errors import format_value
from sundog.errors import DataError

Resolution = Annotated[Number, Field(gt=0)]

_FINEST_LEARNED = 2**49  # steps between learned bounds; a finer resolution becomes the default one


def fill_resolution(resolution: float | None, info: ValidationInfo) -> float | None:
    """Return the declared resolution, or the default one if the bounds are known."""
    low, high = info.data.get("min"), info.data.get("max")
    if resolution is None and low is not None and high is not None:
        return choose_resolution(low, high)
    return resolution


class ContinuousColumn(NumberColumn):
    """A real number, kept to the nearest multiple of `resolution` above min (default: a millionth of the range).

    >>> price = ContinuousColumn(min=0, max=1, resolution=0.01)
    >>> price.encode(np.array([0.07, 0.074]), where="shop.csv: column 'price'").tolist()
    [7, 7]
    >>> price.decode([7]).to_pylist()
    [0.07]
    """

    type: Literal["continuous"] = "continuous"
    min: Number | None = None
    max: Number | None = None
    resolution: Resolution | None = Field(default=None, validate_default=True)
    edges: Annotated[tuple[Number, ...], Field(fail_fast=True, min_length=1, max_length=65_536)] | None = None
    special: Annotated[tuple[Number, ...], Field(min_length=1, max_length=1024)] | None = None

    _fill = field_validator("resolution")(fill_resolution)

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of the values."""
        if self.min is None or self.max is None or self.resolution is None:
            raise ValueError("the bounds of this column must be learned first")
        return Lattice(self.min, self.max, self.resolution)

    @property
    def lattice_size(self) -> int:
        """The number of lattice points from min to max."""
        return self.lattice.size

    def find_first_code(self, value: Any) -> int:
        """Return the first code whose value is not below the given one; `lattice_size` if all are below."""
        return self.lattice.find_at_or_above(float(value))

    @property
    def spacing(self) -> tuple[float, float]:
        """The resolution, and the distance between the bounds."""
        return self.lattice.step, self.lattice.high - self.lattice.low

    @property
    def possible_dtypes(self) -> tuple[str, ...]:
        """Floats and text."""
        return (*REALS, *TEXT)

    def misreads_text(self, nulls: Sequence[str]) -> bool:  # noqa: ARG002
        """Return True: a float32 is another number when written as text."""
        return True

    def to_learning_input(self, values: Any, *, where: str) -> Any:
        """Return the numbers that are present."""
        parts = [np.empty(0)]
        for chunk in self._iter_chunks(values, where):
            for _, part in split_kinds(chunk):
                numbers, bad = to_float64(self.to_plain(part))
                absent = is_missing(part)
                if (bad & ~absent).any():
                    value = format_value(unwrap_one(take_one(part, int((bad & ~absent).argmax()))))
                    raise DataError(f"{where}: {value} is not a number; fix it or declare the column categorical")
                parts.append(numbers[~absent])
        return np.concatenate(parts)

    def complete_with(self, answer: Any) -> Self:
        """Return the column with the learned bounds."""
        return self.with_bounds(*answer)

    def _adapt_to_bounds(self, low: Any, high: Any) -> dict[str, Any]:
        """Return the default resolution, a millionth of the range, if the declared one is too fine for the range."""
        too_fine = self.resolution and (high - low) / self.resolution > _FINEST_LEARNED
        return {"resolution": None} if too_fine else {}

    def _find_limit_problem(self, name: str) -> str | None:
        problem = super()._find_limit_problem(name)
        if problem or name.lower() != "float32" or self.min is None or self.max is None:
            return problem
        low, high = round_inward(self.min, self.max)
        return f"dtype {name} holds no value from {self.min} to {self.max}; use float64" if low > high else None

    def _to_float32(self, values: Any) -> Any:
        """Return the nearest float32 within the bounds, so that written values can be read again."""
        near = super()._to_float32(values)
        if self.min is None or self.max is None:
            return near
        low, high = (pa.scalar(float(bound), pa.float32()) for bound in round_inward(self.min, self.max))
        return pc.max_element_wise(pc.min_element_wise(near, high, skip_nulls=False), low, skip_nulls=False)

    def _is_on_lattice(self, value: Any) -> bool:
        return self.lattice.holds(value)

    def _find_problem(self) -> str | None:
        return self.lattice.find_problem()

    def _encode_array(self, values: Any) -> tuple[NDArray[Any], Mask]:
        numbers, bad = to_float64(self.to_plain(values))
        below, above = numbers < self.lattice.low, numbers > self.lattice.high
        codes, outside = self._apply_bounds(self.lattice.encode(numbers), below, above)
        return codes, bad | outside

    def _decode_array(self, codes: NDArray[Any], null: Mask | None) -> Any:
        return pa.array(self.lattice.decode(codes), mask=null)

    def _explain_refusal(self, one: Any) -> str:
        value = unwrap_one(one)
        (number,), (bad,) = to_float64(self.to_plain(one))
        if bad:
            fix = "fix it, or list it under `nulls` if it means missing"
            return f"{format_value(value)} is not a number{self._expected}; {fix}"
        if np.isinf(number):
            return f"{format_value(value)} is infinite; fix the row or declare `out_of_bounds: clamp`"
        return describe_out_of_bounds(value, below=bool(number < self.lattice.low), low=self.min, high=self.max)
