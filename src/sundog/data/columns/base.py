"""What every column type promises: a declared, finite set of codes, and two pure functions to and from them.

Nothing about the data may change an encoder: codes, sizes and shapes follow from the declaration alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sundog.data.columns import arrow
from sundog.data.columns.values import MIXED, alone, chunks, kinds
from sundog.data.validation_errors import explain
from sundog.errors import DataError, SchemaError

MAX_CODES = 2**63  # so that every code fits an int64 as well as a uint64


class Column(BaseModel, ABC):
    """A declared column. Subclasses are frozen: a changed column is another column."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, serialize_by_alias=True)

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
        """The code of a missing value, or None where there can be none."""
        return self.lattice_size if self.nullable else None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned integer type that holds every code."""
        return arrow.smallest_dtype(self.size)

    @property
    def complete(self) -> bool:
        """Whether all is declared; False only for `learn: true` before anything was learned."""
        return True

    def completed(self, **found: Any) -> Self:
        """The finished column, with what was learned filled in. `learn` stays True, for the certificate."""
        try:
            return type(self).model_validate({**self.model_dump(exclude_defaults=True), **found})
        except ValidationError as error:
            raise SchemaError(f"{self.type} column: {explain(error)}") from None

    @property
    def is_learned(self) -> bool:
        """Whether some of what it says was learned from private data, within a budget."""
        return self.learn and self.complete

    def declared(self) -> Self:
        """The column without `learn`, which encodes as it did: what was learned elsewhere is a declaration here."""
        return self.completed(learn=False)

    @abstractmethod
    def encode(self, values: Any, *, where: str) -> Any:
        """The codes of the values; `where` ("adult.csv: column 'age'") begins every error message."""

    @abstractmethod
    def decode(self, codes: Any) -> Any:
        """The values of the codes."""

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain JSON-able data, defaults left out."""
        declared = self.model_dump(mode="json", exclude_defaults=True)
        own = [key for key in type(self).model_fields if key not in Column.model_fields]
        return {"type": self.type, **{key: declared[key] for key in (*own, *declared) if key in declared}}

    def _require_complete(self, where: str) -> None:
        if not self.complete:
            raise DataError(f"{where}: must be learned first; fit with `learn: true`, or declare it in the schema")

    def _checked(self, codes: Any) -> NDArray[Any]:
        """The codes as an array, or a ValueError: codes come from models, never from users."""
        array: NDArray[Any] = np.asarray(codes)
        if array.size and (int(array.min()) < 0 or int(array.max()) >= self.size):
            raise ValueError(f"{self.type} codes must lie in 0 … {self.size - 1}")
        return array


class ScalarColumn(Column):
    """A column with one value a record."""

    distinct: ClassVar[bool] = False  # whether `_codes` should see each distinct value once, typed or not

    frame_dtype: str | None = Field(default=None, alias="dtype")  # in a DataFrame; `dtype` is that of the codes

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one record's value: a scalar."""
        return ()

    def encode(self, values: Any, *, where: str) -> NDArray[Any]:
        """The codes of the values; `where` ("adult.csv: column 'age'") begins every error message."""
        self._require_complete(where)
        parts: list[NDArray[Any]] = [np.empty(0, self.dtype)]
        row = 0
        for chunk in chunks(values, where=where):
            parts.append(self._encode_chunk(chunk, where, row))
            row += len(chunk)
        return np.concatenate(parts)

    def decode(self, codes: Any) -> Any:
        """The values of the codes, as an Arrow array with nulls for the null code."""
        codes = self._checked(codes)
        if not self.nullable:
            return self._values(codes, None)
        null = codes == self.null_code
        return self._values(np.where(null, 0, codes), null)

    def _encode_chunk(self, chunk: Any, where: str, first_row: int) -> NDArray[Any]:
        if pa.types.is_nested(chunk.type) and chunk.type != MIXED:
            raise DataError(f"{where}: holds {chunk.type}, not one value a record; declare another type")
        codes, (bad, missing) = np.empty(len(chunk), self.dtype), np.zeros((2, len(chunk)), bool)
        for rows, part in kinds(chunk):
            codes[rows], bad[rows], missing[rows] = self._encode_kind(part)
        wrong = bad if self.nullable else bad | missing
        if wrong.any():
            row = int(wrong.argmax())
            at = f"{where}: row {first_row + row + 1}"
            if missing[row]:
                raise DataError(f"{at} is empty but the column is not nullable; declare `nullable: true` or fill it")
            raise DataError(f"{at}: {self._refusal(alone(chunk, row))}")
        if self.nullable:
            codes[missing] = self.lattice_size
        return codes

    def _encode_kind(self, values: Any) -> tuple[NDArray[Any], arrow.Mask, arrow.Mask]:
        """Codes, refused and missing of an Arrow array whose values are of one kind."""
        if self.distinct or arrow.is_text(values.type):
            values = values.dictionary_encode()  # so that each spelling is looked at once
        if pa.types.is_dictionary(values.type):
            return self._encode_distinct(values)
        missing = arrow.missing(values)
        codes, bad = self._codes(values)
        return codes.astype(self.dtype, copy=False), bad & ~missing, missing

    def _encode_distinct(self, chunk: Any) -> tuple[NDArray[Any], arrow.Mask, arrow.Mask]:
        """Codes, refused and missing of a dictionary array, from those of its few distinct values."""
        absent = arrow.missing(chunk.indices)
        if not len(chunk.dictionary):
            return np.zeros(len(chunk), self.dtype), np.zeros(len(chunk), bool), absent
        index = arrow.to_numpy(chunk.indices.fill_null(0))
        codes, bad = self._codes(chunk.dictionary)
        missing = absent | arrow.missing(chunk.dictionary)[index]
        return codes.astype(self.dtype)[index], bad[index] & ~missing, missing

    @abstractmethod
    def _codes(self, values: Any) -> tuple[NDArray[Any], arrow.Mask]:
        """The codes of an Arrow array, and which values have none. What stands at a null does not matter."""

    @abstractmethod
    def _values(self, codes: NDArray[Any], null: arrow.Mask | None) -> Any:
        """The Arrow array of valid codes, null where `null` says so."""

    @abstractmethod
    def _refusal(self, one: Any) -> str:
        """Why the value in an Arrow array of one has no code, and what to do about it."""
