"""The interface of all column types: a declared, finite set of codes, and pure functions to and from them.

The data never changes an encoder: codes, sizes and shapes follow from the declaration alone. Everything else that
depends on the type of a column (its bins, its text, how it is learned, how it is matched to a source) is a method or
an attribute here, which the types override.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from sundog.data.columns import arrow
from sundog.data.columns.forms import Form, Scale, Unknown
from sundog.data.columns.value_kinds import spell_value
from sundog.data.validation_errors import explain
from sundog.errors import DataError, SchemaError

MAX_CODES = 2**63  # so that every code fits an int64 as well as a uint64


class Column(BaseModel, ABC):
    """A declared column. Columns are immutable: `replace` returns a changed copy."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, serialize_by_alias=True)

    form: ClassVar[Form]
    scale: ClassVar[Scale | None] = None  # of a scalar
    unknown: ClassVar[Unknown | None] = None  # what `learn: true` leaves out
    extent_intervals: ClassVar[int] = 0  # the intervals of an extent
    archive_parts: ClassVar[tuple[str, ...]] = ()  # the names of its arrays in an archive, where it takes several
    text_hint: ClassVar[str] = ""  # another fix for an array of text, in error messages

    type: str
    nullable: bool = False
    public: bool = False
    learn: bool = False
    unit: str | None = None

    if TYPE_CHECKING:  # `image` declares its shape as a field; a property here would shadow it

        @property
        def shape(self) -> tuple[int, ...]:
            """The shape of one record's value: () for a scalar."""

    @property
    @abstractmethod
    def lattice_size(self) -> int:
        """The number of codes without the null code."""

    @property
    def size(self) -> int:
        """The number of codes, the null code (always the last one) included."""
        return self.lattice_size + int(self.nullable)

    @property
    def null_code(self) -> int | None:
        """The code of a missing value; None if the column is not nullable."""
        return self.lattice_size if self.nullable else None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned integer type that holds every code."""
        return arrow.find_smallest_dtype(self.size)

    @property
    def complete(self) -> bool:
        """Whether nothing is left to learn; False only for `learn: true` before the column is learned."""
        return True

    def replace(self, **changed: Any) -> Self:
        """Return a copy with some keys changed; raise SchemaError if the result is not a valid declaration."""
        try:
            return type(self).model_validate({**self.model_dump(exclude_defaults=True), **changed})
        except ValidationError as error:
            raise SchemaError(f"{self.type} column: {explain(error)}") from None

    @property
    def is_learned(self) -> bool:
        """Whether part of the declaration was learned from private data, within a budget."""
        return self.learn and self.complete

    def declare_learned(self) -> Self:
        """Return the column without `learn`, with the same encoding: what was learned becomes declared."""
        return self.replace(learn=False)

    @abstractmethod
    def encode(self, values: Any, *, where: str) -> Any:
        """Return the codes of the values; `where` ("adult.csv: column 'age'") begins every error message."""

    @abstractmethod
    def decode(self, codes: Any) -> Any:
        """Return the values of the codes."""

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as JSON-serializable data, without defaults."""
        declared = self.model_dump(mode="json", exclude_defaults=True)
        own = [key for key in type(self).model_fields if key not in Column.model_fields]
        return {"type": self.type, **{key: declared[key] for key in (*own, *declared) if key in declared}}

    def _require_complete(self, where: str) -> None:
        if not self.complete:
            raise DataError(f"{where}: must be learned first; fit with `learn: true`, or declare it in the schema")

    def _check_codes(self, codes: Any) -> NDArray[Any]:
        """Return the codes as an array; raise ValueError (they come from models, not users) if out of range."""
        array: NDArray[Any] = np.asarray(codes)
        if array.size and (int(array.min()) < 0 or int(array.max()) >= self.size):
            raise ValueError(f"{self.type} codes must lie in 0 … {self.size - 1}")
        return array

    # --- form and scale ---

    @property
    def is_scalar(self) -> bool:
        """Whether a record holds one value."""
        return self.form is Form.SCALAR

    @property
    def is_numeric(self) -> bool:
        """Whether a record holds one number or time: values with distances."""
        return self.scale is Scale.INTERVAL

    @property
    def is_categorical(self) -> bool:
        """Whether a record holds one category, true and false included."""
        return self.is_scalar and not self.is_numeric

    # --- bins and features ---

    @property
    def bin_limit(self) -> int:
        """The largest number of bins of equal width that the codes are divided into."""
        return self.lattice_size

    def list_bin_starts(self) -> list[int]:
        """Return the first code of each bin except the null bin; it depends on the declaration alone."""
        return cut_evenly(self.lattice_size, self.bin_limit)

    @property
    def bin_count(self) -> int:
        """The number of bins, the null bin included, computed without creating them.

        >>> from sundog.data.columns import IntegerColumn
        >>> IntegerColumn(min=0, max=10**12, bins=2**20).bin_count
        1048576
        """
        return min(self.bin_limit, self.lattice_size) + int(self.nullable)

    @property
    def awaits_quantiles(self) -> bool:
        """Whether its bins are still to be learned at quantiles."""
        return False

    @property
    def awaits_edges(self) -> bool:
        """Whether its declaration asks for measured bins that have not been measured yet."""
        return False

    @property
    def awaits_refinement(self) -> bool:
        """Whether `fit` refines its bins: they are the default bins, and wider than one value."""
        return False

    def with_default_bins(self) -> Self:
        """Return the column, with default bins if its own are still to be learned."""
        return self

    @property
    @abstractmethod
    def feature_count(self) -> int:
        """The number of features that a network reads, without the flags for missing values."""

    @property
    @abstractmethod
    def squared_norms(self) -> tuple[int, int]:
        """The smallest and the largest possible squared norm of the features of one record."""

    @property
    @abstractmethod
    def largest_distance(self) -> int:
        """The largest squared distance between the features of two records."""

    # --- learning ---

    def to_learning_input(self, values: Any, *, where: str) -> Any:  # noqa: ARG002
        """Return the values in the form in which they are measured; `unknown` names the measurement.

        That is counts by spelling for values, numbers for a range, and interval numbers for an extent.
        """
        raise DataError(f"{where}: a {self.type} column cannot be learned; declare it in the schema")

    def complete_with(self, answer: Any) -> Self:
        """Return the completed column, given what was measured: a list of values, or two bounds.

        `learn` stays True, for the certificate.
        """
        raise NotImplementedError(f"a {self.type} column has nothing to learn, got {answer!r}")

    @property
    def has_nothing_learned(self) -> bool:
        """Whether values were learned but none was found: all records are in the catch-all category."""
        return False

    # --- sources ---

    def name_table_columns(self, name: str) -> list[str]:
        """Return the names of the csv or DataFrame columns that hold it, given its own name."""
        return [name]

    @property
    def declared_texts(self) -> Sequence[Any]:
        """The values that the schema lists, in its spelling."""
        return ()

    def find_null_spellings(self, nulls: Sequence[str]) -> list[str]:
        """Return the spellings that mean "missing" in this column: those that are not declared values.

        >>> from sundog.data.columns import CategoricalColumn
        >>> CategoricalColumn(values=["DE", "NA"]).find_null_spellings(["", "NA"])
        ['']
        """
        declared = {text for value in self.declared_texts for text in (str(value), spell_value(value))}
        return [null for null in nulls if null not in declared]

    @property
    def reads_text(self) -> bool:
        """Whether values are read as text, so that their spelling matters."""
        return False

    @property
    def respells(self) -> bool:
        """Whether whole numbers stand for declared texts that spell them differently."""
        return False

    def misreads_text(self, nulls: Sequence[str]) -> bool:  # noqa: ARG002
        """Return whether it may misread numbers that numpy has converted to an array of text."""
        return False

    def from_parts(self, parts: Sequence[Any], *, where: str) -> Any:
        """Return the values, given the arrays of an archive that make them up."""
        raise DataError(f"{where}: is in {len(parts)} arrays; save it as one")

    def relax(self) -> Self:
        """Return the column for data of another tool: undeclared values are counted as different instead of refused."""
        declared = {**self.model_dump(exclude_defaults=True), "nullable": True, **self._list_relaxed_keys()}
        declared.pop("dtype", None)  # the dtype may not allow missing values
        return type(self).model_validate(declared)

    def _list_relaxed_keys(self) -> dict[str, Any]:
        """Return the keys to change so that no value is refused."""
        return {}

    # --- writing ---

    @property
    def text_problem(self) -> str | None:
        """Why it cannot be written to a csv file, and what to do; None if it can."""
        return None

    @abstractmethod
    def to_text(self, codes: Any) -> list[Any]:
        """Return the values as Arrow arrays of text, one for each name of `name_table_columns`; null if missing."""

    @abstractmethod
    def to_arrow(self, codes: Any) -> Any:
        """Return the values as an Arrow array of the type that the schema declares."""

    @abstractmethod
    def to_frame(self, name: str, codes: Any) -> dict[str, Any]:
        """Return the values as DataFrame columns by name."""

    def to_values(self, codes: Any) -> Any:
        """Return the values for other libraries: Arrow for one value a record, otherwise numpy or scipy."""
        return self.decode(codes)

    def to_arrays(self, codes: Any, null: str) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        """Return the numpy arrays of an archive: the values under "", or the `archive_parts` under their names.

        A missing value is NaN, NaT or, in text, the given spelling.
        """
        return {"": self.decode(codes)}

    def to_json(self, codes: Any) -> list[Any]:
        """Return the values as JSON types; None for a missing one."""
        found: list[Any] = self.to_arrow(codes).to_pylist()
        return found

    def make_empty_codes(self) -> Any:
        """Return an array of codes for zero records."""
        return np.zeros((0, *self.shape), self.dtype)


def cut_evenly(size: int, count: int) -> list[int]:
    """Return the first codes of `count` intervals of nearly equal width; one a code where there are fewer codes.

    >>> cut_evenly(10, 3)
    [0, 3, 6]
    """
    count = min(count, size)
    return [place * size // count for place in range(count)]
