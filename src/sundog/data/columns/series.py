"""Time series: a fixed number of measurements on one lattice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from sundog.data.columns.array import ArrayColumn
from sundog.data.columns.continuous import Resolution, fill_resolution
from sundog.data.columns.forms import Form
from sundog.data.columns.grids import find_first, to_grid
from sundog.data.columns.lattice import Lattice
from sundog.data.columns.ordered import (
    BinCount,
    Number,
    Policy,
    Whole,
    check_bounds,
    check_order,
    describe_out_of_bounds,
)
from sundog.errors import DataError


class SeriesColumn(ArrayColumn):
    """A fixed number of measurements, each rounded to a multiple of `resolution` above min; NaN is a missing one.

    >>> load = SeriesColumn(length=3, min=0, max=10, resolution=0.5)
    >>> load.encode(np.array([[0.0, 0.5, 10.0]]), where="load.npz: column 'load'").tolist()
    [[0, 1, 20]]
    >>> load.decode([[0, 1, 20]]).tolist()
    [[0.0, 0.5, 10.0]]
    """

    form: ClassVar[Literal[Form.SERIES]] = Form.SERIES
    default_bins: ClassVar[int] = 32

    type: Literal["series"] = "series"
    length: Annotated[Whole, Field(ge=1)]
    min: Number | None = None
    max: Number | None = None
    resolution: Resolution | None = Field(default=None, validate_default=True)
    out_of_bounds: Policy = "error"
    bins: BinCount | None = None

    _fill = field_validator("resolution")(fill_resolution)

    @model_validator(mode="after")
    def _check_declaration(self) -> Self:
        if self.learn:
            raise ValueError("a series column cannot be `learn`; declare min and max")
        check_bounds(self.min, self.max, learn=False)
        check_order(self.min, self.max, shown_as=(self.min, self.max))
        if problem := self.lattice.find_problem():
            raise ValueError(problem)
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The length, as the shape of one record."""
        return (self.length,)

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of the values."""
        assert self.min is not None and self.max is not None and self.resolution is not None  # noqa: S101, PT018
        return Lattice(self.min, self.max, self.resolution)

    @property
    def lattice_size(self) -> int:
        """The number of lattice points from min to max."""
        return self.lattice.size

    def name_table_columns(self, name: str) -> list[str]:
        """Return one name a step.

        >>> SeriesColumn(length=2, min=0, max=1).name_table_columns("y")
        ['y_0', 'y_1']
        """
        return [f"{name}_{step}" for step in range(self.length)]

    def misreads_text(self, nulls: Sequence[str]) -> bool:  # noqa: ARG002
        """Return True: a float32 is another number when written as text."""
        return True

    def to_text(self, codes: Any) -> list[Any]:
        """Return one array of text a step."""
        return [pc.cast(pa.array(step, from_pandas=True), pa.string()) for step in self.decode(codes).T]

    def to_frame(self, name: str, codes: Any) -> dict[str, Any]:
        """Return one column a step."""
        return dict(zip(self.name_table_columns(name), self.decode(codes).T, strict=True))

    def _list_relaxed_keys(self) -> dict[str, Any]:
        return {"out_of_bounds": "clamp"}

    def encode(self, values: Any, *, where: str) -> NDArray[Any]:
        """Return the codes, one array of shape (records, length)."""
        numbers = to_grid(values, self.shape, where=where).astype(np.float64)
        missing = np.isnan(numbers)
        if missing.any() and not self.nullable:
            row, _ = find_first(numbers, missing)
            raise DataError(
                f"{where}: row {row} has a gap but the column is not nullable; declare `nullable: true` or fill it"
            )
        outside = self.lattice.is_outside(numbers)
        if outside.any() and self.out_of_bounds == "error":
            row, value = find_first(numbers, outside)
            below = value < self.lattice.low
            problem = describe_out_of_bounds(value, below=below, low=self.min, high=self.max)
            raise DataError(f"{where}: row {row}: {problem}")
        codes = self.lattice.encode(np.where(missing, self.lattice.low, numbers))
        return np.where(missing, self.lattice_size, codes).astype(self.dtype)

    def decode(self, codes: Any) -> NDArray[np.float64]:
        """Return the values, with NaN for a missing one."""
        codes = self._check_codes(codes)
        if not self.nullable:
            return self.lattice.decode(codes)
        missing = codes == self.null_code
        return np.where(missing, np.nan, self.lattice.decode(np.where(missing, 0, codes)))
