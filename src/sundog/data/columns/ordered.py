"""What integer, continuous and datetime columns share: bounds, what to do beyond them, and bins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from sundog.data.columns.arrow import Mask, shown
from sundog.data.columns.base import MAX_CODES, ScalarColumn


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):  # which Python counts among the integers
        raise PydanticCustomError("float_type", "a number")
    return value


Number = Annotated[float, BeforeValidator(_no_boolean)]
Whole = Annotated[int, BeforeValidator(_no_boolean)]
BinCount = Annotated[Whole, Field(ge=1, le=2**20)]
Policy = Literal["error", "clamp"]


def check_bounds(low: Any, high: Any, *, learn: bool) -> None:
    """Refuse missing bounds; only `learn: true` may leave them out."""
    for key, bound in (("min", low), ("max", high)):
        if bound is None and not learn:
            raise ValueError(f"{key} is missing; declare it, or say `learn: true` to pay for it from the budget")


def check_order(low: Any, high: Any, *, shown_as: tuple[Any, Any]) -> None:
    """Refuse crossed bounds."""
    if low > high:
        raise ValueError(f"max ({shown_as[1]}) is below min ({shown_as[0]}); swap them")


def beyond(value: object, *, below: bool, low: object, high: object) -> str:
    """What to tell about a value beyond the bounds."""
    side = f"below min ({low})" if below else f"above max ({high})"
    return f"{shown(value)} is {side}; widen the bounds, fix the row or declare `out_of_bounds: clamp`"


class OrderedColumn(ScalarColumn):
    """A scalar column whose codes are in the order of its values."""

    out_of_bounds: Policy = "error"
    bins: BinCount | Literal["quantiles"] | None = None

    if TYPE_CHECKING:  # each type declares these in its own units
        min: Any
        max: Any
        edges: Any

    @property
    def complete(self) -> bool:
        """Whether both bounds are known."""
        return self.min is not None and self.max is not None

    @property
    def clamps(self) -> bool:
        """Whether values beyond the bounds become the bounds; learned bounds always clamp."""
        return self.out_of_bounds == "clamp" or self.learn

    def declared(self) -> Self:
        """The column without `learn`; learned bounds clamp, and go on doing so."""
        return self.completed(learn=False, out_of_bounds="clamp")

    @abstractmethod
    def first_code(self, value: Any) -> int:
        """The first code whose value is not below the given one (`lattice_size` where all are)."""

    def first_codes(self, values: Sequence[Any]) -> list[int]:
        """`first_code` of several values."""
        return [self.first_code(value) for value in values]

    @abstractmethod
    def position(self, value: Any) -> Any:
        """A bound or an edge as a number that compares with the others."""

    def positions(self, values: Sequence[Any]) -> list[Any]:
        """`position` of several bounds or edges."""
        return [self.position(value) for value in values]

    @cached_property
    def _ends(self) -> list[Any]:
        """Where min and max are, once they are known."""
        return self.positions([self.min, self.max])

    def _problem(self) -> str | None:
        """What else makes the declaration impossible once the bounds are known."""
        if self.size > MAX_CODES:
            return f"{self.size} codes are too many; narrow min and max or coarsen the steps"
        return None

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        check_bounds(self.min, self.max, learn=self.learn)
        if self.edges is not None and self.bins is not None:
            raise ValueError("edges and bins are both given; keep one of them")
        positions = self.positions(self.edges or ())
        if any(after <= before for before, after in pairwise(positions)):
            raise ValueError("edges must ascend, each above the one before; sort them")
        if not self.complete:
            return self
        low, high = self._ends
        check_order(low, high, shown_as=(self.min, self.max))
        for edge, position in zip(self.edges or (), positions, strict=True):
            if not low <= position <= high:
                raise ValueError(f"edge {edge} is outside min ({self.min}) and max ({self.max}); remove it")
        if problem := self._problem():
            raise ValueError(problem)
        return self

    def _bounded(self, codes: NDArray[Any], below: Mask, above: Mask) -> tuple[NDArray[Any], Mask]:
        """Codes of values beyond the bounds: those of the bounds where the column clamps, refused where not."""
        codes = np.where(below, 0, np.where(above, self.lattice_size - 1, codes))
        return codes, np.zeros(len(codes), bool) if self.clamps else below | above
