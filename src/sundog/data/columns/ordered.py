"""What integer, continuous and datetime columns share: bounds, out-of-bounds policy, bins and special values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from sundog.data.columns.arrow import Mask, to_numpy
from sundog.data.columns.column import MAX_CODES
from sundog.data.columns.forms import Scale
from sundog.data.columns.scalar import ScalarColumn
from sundog.data.validation_errors import format_value
from sundog.errors import DataError, SchemaError


def _refuse_boolean(value: Any) -> Any:
    if isinstance(value, bool):  # a subclass of int
        raise PydanticCustomError("float_type", "a number")
    return value


Number = Annotated[float, BeforeValidator(_refuse_boolean)]
Whole = Annotated[int, BeforeValidator(_refuse_boolean)]
BinCount = Annotated[Whole, Field(ge=1, le=2**20)]
Policy = Literal["error", "clamp"]

SMALL_LATTICE = 128  # with up to this many codes, each has a bin of its own
DEFAULT_BINS = 64


def check_bounds(low: Any, high: Any, *, learn: bool) -> None:
    """Refuse missing bounds; only a column with `learn: true` may omit them."""
    for key, bound in (("min", low), ("max", high)):
        if bound is None and not learn:
            raise ValueError(f"{key} is missing; declare it, or say `learn: true` to learn it within the budget")


def check_order(low: Any, high: Any, *, shown_as: tuple[Any, Any]) -> None:
    """Refuse bounds in the wrong order."""
    if low > high:
        raise ValueError(f"max ({shown_as[1]}) is below min ({shown_as[0]}); swap them")


def describe_out_of_bounds(value: object, *, below: bool, low: object, high: object) -> str:
    """Return the error message for a value outside the bounds."""
    side = f"below min ({low})" if below else f"above max ({high})"
    return f"{format_value(value)} is {side}; widen the bounds, fix the row or declare `out_of_bounds: clamp`"


class OrderedColumn(ScalarColumn):
    """A scalar column whose codes are in the order of its values.

    `bins` is the number of bins of equal width, or how to choose bins within the budget: at `quantiles`, or
    `refined` where the records are (the default for ranges of many values). Once they are chosen, `edges` is
    filled in, and `bins` still says how they were found. Each of the `special` values has a bin of its own.
    """

    scale: ClassVar[Literal[Scale.INTERVAL]] = Scale.INTERVAL
    objects_are_text: ClassVar[bool] = True
    measured_bins: ClassVar[tuple[str, ...]] = ("quantiles", "refined")

    out_of_bounds: Policy = "error"
    bins: BinCount | Literal["quantiles", "refined"] | None = None

    if TYPE_CHECKING:  # keys of each type, in its own units
        min: Any
        max: Any
        edges: Any
        special: Any

    @property
    def complete(self) -> bool:
        """Whether both bounds are known."""
        return self.min is not None and self.max is not None

    @property
    def clamps(self) -> bool:
        """Whether values outside the bounds are clamped to them; learned bounds always clamp."""
        return self.out_of_bounds == "clamp" or self.learn

    @property
    def is_learned(self) -> bool:
        """Whether its bounds or its edges were learned."""
        return super().is_learned or self.has_measured_edges

    def declare_learned(self) -> Self:
        """Return the column without `learn` and with its edges declared; learned bounds still clamp."""
        policy = {"learn": False, "out_of_bounds": "clamp"} if self.learn else {}
        return self.replace(**policy, bins=None if self.has_measured_edges else self.bins)

    @abstractmethod
    def find_first_code(self, value: Any) -> int:
        """Return the first code whose value is not below the given one; `lattice_size` if all are below."""

    def find_first_codes(self, values: Sequence[Any]) -> list[int]:
        """Return `find_first_code` of several values."""
        return [self.find_first_code(value) for value in values]

    @abstractmethod
    def to_position(self, value: Any) -> Any:
        """Return a bound or an edge as a number that compares with the others."""

    @property
    def has_measured_edges(self) -> bool:
        """Whether `edges` were measured within a budget, as `bins` says."""
        return self.edges is not None and self.bins in self.measured_bins

    @property
    def bin_limit(self) -> int:
        """The declared number of bins; by default one for each code, or `DEFAULT_BINS` if there are many codes."""
        if self.bins == "quantiles":
            raise SchemaError("`bins: quantiles` must be measured within the budget first; fit, or declare `edges`")
        default = self.lattice_size if self.lattice_size <= SMALL_LATTICE else DEFAULT_BINS
        return self.bins if isinstance(self.bins, int) else default

    def list_bin_starts(self) -> list[int]:
        """Return the first codes of the bins: at the edges, or of equal width; special values have bins of their own.

        >>> from sundog.data.columns import IntegerColumn
        >>> IntegerColumn(min=-1, max=99, edges=[18, 65], special=[-1, 0]).list_bin_starts()
        [0, 1, 2, 19, 66]
        """
        starts = super().list_bin_starts() if self.edges is None else self.find_starts(self.edges)
        return sorted({*starts, *(start for start in self.special_starts if start < self.lattice_size)})

    def find_starts(self, values: Sequence[Any]) -> list[int]:
        """Return the first codes of bins that begin at these values, in any order; values out of bounds are ignored.

        >>> from sundog.data.columns import IntegerColumn
        >>> IntegerColumn(min=0, max=99).find_starts([65, 18, 200])
        [0, 18, 65]
        """
        return sorted({0} | {code for code in self.find_first_codes(tuple(values)) if 0 < code < self.lattice_size})

    @property
    def bin_count(self) -> int:
        """The number of bins, the null bin included."""
        if self.edges is None and not self.special:
            return super().bin_count
        return len(self.list_bin_starts()) + int(self.nullable)  # a schema lists a limited number of them

    @property
    def awaits_quantiles(self) -> bool:
        """Whether its bins are still to be learned at quantiles."""
        return self.bins == "quantiles" and self.edges is None

    @property
    def awaits_edges(self) -> bool:
        """Whether its declaration asks for measured bins that have not been measured yet."""
        return self.edges is None and isinstance(self.bins, str)

    @property
    def awaits_refinement(self) -> bool:
        """Whether `fit` refines its bins: they are the default bins, and wider than one value."""
        if self.public or self.edges is not None or self.bins not in (None, "refined"):
            return False
        return not self.complete or self.lattice_size > SMALL_LATTICE

    def with_default_bins(self) -> Self:
        """Return the column, with default bins if its own are still to be learned."""
        return self.model_copy(update={"bins": None}) if self.awaits_quantiles else self

    def with_bounds(self, low: Any, high: Any) -> Self:
        """Return the column with learned bounds; declared bounds take precedence, and edges outside are removed."""
        low = low if self.min is None else self.min
        high = max(low, high) if self.max is None else self.max
        low = min(low, high)
        if self.special is not None:  # declared, so including them reveals nothing
            low, high = min(low, *self.special), max(high, *self.special)
        edges = None if self.edges is None else [edge for edge in self.edges if low <= edge <= high] or None
        found: dict[str, Any] = {} if self.edges is None else {"edges": edges}
        return self.replace(min=low, max=high, **found, **self._adapt_to_bounds(low, high))

    def _adapt_to_bounds(self, low: Any, high: Any) -> dict[str, Any]:  # noqa: ARG002
        """Return the other keys to change for learned bounds."""
        return {}

    @property
    def special_codes(self) -> tuple[int, ...]:
        """The codes of the special values, ascending."""
        return tuple(sorted(self.find_first_code(value) for value in self.special or ()))

    @property
    def special_starts(self) -> set[int]:
        """The codes at which bins of special values begin and end."""
        return {start for code in self.special_codes for start in (code, code + 1)}

    def find_edges(self, codes: Sequence[int]) -> list[Any]:
        """Return the edges of bins that begin at these codes; the first code of the column may not be among them."""
        values = self.decode(np.array([[code - 1, code] for code in codes]).reshape(-1)).to_pylist()
        # A value that float64 cannot hold exactly may round to the next code; the midpoint below it does not.
        pairs = zip(codes, values[::2], values[1::2], strict=True)
        return [value if self.find_first_code(value) == code else (below + value) / 2 for code, below, value in pairs]

    @abstractmethod
    def parse_bound(self, value: Any) -> Any:
        """Return a value to compare with, in the unit of `decode_number`; the column need not be able to hold it."""

    def decode_number(self, code: int) -> Any:
        """Return the value of a code as a number."""
        return self.decode([code])[0].as_py()

    def find_first_code_above(self, spellings: Sequence[Any], *, or_equal: bool) -> int:
        """Return the first code whose value is above a bound, or equal to it; `lattice_size` if there is none."""
        bound = self.parse_bound(spellings[-1])
        low, high = 0, self.lattice_size
        while low < high:
            middle = (low + high) // 2
            value = self.decode_number(middle)
            if value > bound or (or_equal and value == bound):
                high = middle
            else:
                low = middle + 1
        return low

    # --- arithmetic, for rules between columns ---

    @property
    def axis(self) -> str:
        """What its values are; only values on the same axis can be compared."""
        return "numbers"

    @property
    def sum_unit(self) -> str | None:
        """What differences of its values count: "" for numbers; None where its values cannot be added."""
        return ""

    @property
    def ticks(self) -> int:
        """How many of `to_numbers` one such unit has."""
        return 1

    @property
    def holds_whole_numbers(self) -> bool:
        """Whether all its values, as `to_numbers` returns them, are whole numbers."""
        return self.to_numbers([0]).dtype.kind == "i"

    @property
    def rounding(self) -> float:
        """By how much a value that is read may differ from its code's; 0 where all values are kept as they are."""
        return self.spacing[0] / 2

    def to_numbers(self, codes: Any, *, framed: bool = False) -> NDArray[Any]:
        """Return the values of codes that are not null as numbers (whole ones are int64), which add and compare.

        >>> from sundog.data.columns import IntegerColumn
        >>> IntegerColumn(min=17, max=90).to_numbers([0, 3]).tolist()
        [17, 20]

        Args:
            codes: none of them the null code.
            framed: as a DataFrame has them, which may be rounded to float32.
        """
        values = self._decode_array(self._check_codes(codes), None)
        if framed and self.is_float32:
            return to_numpy(self._to_float32(values)).astype(np.float64)
        return to_numpy(values)

    def from_numbers(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
        """Return the codes of the nearest values, and which numbers lie beyond bounds that do not clamp."""
        return self._encode_array(pa.array(numbers))

    @property
    def is_float32(self) -> bool:
        """Whether a DataFrame holds it as float32, to which its values are rounded."""
        return (self.frame_dtype or "").lower() == "float32"

    @cached_property
    def is_written_exactly(self) -> bool:
        """Whether neighbouring values can be told apart in text; a format may be coarser than the resolution."""
        last = self.lattice_size - 1
        codes = np.array(sorted({0, min(1, last), last // 2, max(last - 1, 0), last}))
        try:
            return bool((self.encode(self.spell(self.decode(codes)), where="") == codes).all())
        except DataError:
            return False

    def tighten(self) -> Self:
        """Return the column without clamping: values outside the bounds are refused."""
        return self.model_copy(update={"learn": False, "out_of_bounds": "error"})

    def _list_relaxed_keys(self) -> dict[str, Any]:
        return {"out_of_bounds": "clamp"}

    @abstractmethod
    def _is_on_lattice(self, value: Any) -> bool:
        """Return whether the column can hold a value within the bounds without rounding."""

    def to_positions(self, values: Sequence[Any]) -> list[Any]:
        """Return `to_position` of several bounds or edges."""
        return [self.to_position(value) for value in values]

    @cached_property
    def _ends(self) -> list[Any]:
        """The positions of min and max, once they are known."""
        return self.to_positions([self.min, self.max])

    def _find_problem(self) -> str | None:
        """Return why the declaration is impossible, given the bounds; None if it is possible."""
        if self.size > MAX_CODES:
            return f"{self.size} codes are too many; narrow min and max or coarsen the steps"
        return None

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        check_bounds(self.min, self.max, learn=self.learn)
        if self.edges is not None and self.bins is not None and self.bins not in self.measured_bins:
            raise ValueError("edges and bins are both given; keep one of them")
        positions = self.to_positions(self.edges or ())
        if any(after <= before for before, after in pairwise(positions)):
            raise ValueError("edges must be in ascending order without repeats; sort them")
        if not self.complete:
            return self
        low, high = self._ends
        check_order(low, high, shown_as=(self.min, self.max))
        for edge, position in zip(self.edges or (), positions, strict=True):
            if not low <= position <= high:
                raise ValueError(f"edge {edge} is outside min ({self.min}) and max ({self.max}); remove it")
        if problem := self._find_problem():
            raise ValueError(problem)
        self._check_special(low, high)
        return self

    def _check_special(self, low: Any, high: Any) -> None:
        seen: set[Any] = set()
        for value in self.special or ():
            position = self.to_position(value)
            if not low <= position <= high:
                raise ValueError(f"special value {value} is outside min ({self.min}) and max ({self.max}); widen them")
            if not self._is_on_lattice(value):
                raise ValueError(f"special value {value} lies between two values of the column; use one of those")
            if position in seen:
                raise ValueError(f"special lists {value} twice; keep one")
            seen.add(position)

    def _apply_bounds(self, codes: NDArray[Any], below: Mask, above: Mask) -> tuple[NDArray[Any], Mask]:
        """Return the codes clamped to the bounds, and a mask of the refused values: those outside, unless clamped."""
        codes = np.where(below, 0, np.where(above, self.lattice_size - 1, codes))
        return codes, np.zeros(len(codes), bool) if self.clamps else below | above
