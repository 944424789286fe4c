"""What columns with one value a record share: they are encoded value by value, and have a DataFrame dtype."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from sundog.data.columns import arrow, frame_dtypes
from sundog.data.columns.column import Column
from sundog.data.columns.containers import MIXED, split_kinds, take_one, to_chunks
from sundog.data.columns.forms import Form, Scale
from sundog.data.columns.number_parsing import EXACT
from sundog.data.validation_errors import suggest
from sundog.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


_EMPTY = "is empty but the column is not nullable; declare `nullable: true` or fill it"


class ScalarColumn(Column):
    """A column with one value a record."""

    form: ClassVar[Literal[Form.SCALAR]] = Form.SCALAR
    scale: ClassVar[Scale]
    distinct: ClassVar[bool] = False  # whether `_encode_array` should see each distinct value once, typed or not
    objects_are_text: ClassVar[bool] = False  # whether dtype `object` means text, and not typed values

    frame_dtype: str | None = Field(default=None, alias="dtype")  # in a DataFrame; `dtype` is that of the codes

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one record's value: a scalar."""
        return ()

    def encode(self, values: Any, *, where: str) -> NDArray[Any]:
        """Return the codes of the values; `where` ("adult.csv: column 'age'") begins every error message."""
        self._require_complete(where)
        parts: list[NDArray[Any]] = [np.empty(0, self.dtype)]
        row = 0
        for chunk in to_chunks(values, where=where):
            parts.append(self._encode_chunk(chunk, where, row))
            row += len(chunk)
        return np.concatenate(parts)

    def decode(self, codes: Any) -> Any:
        """Return the values of the codes, as an Arrow array with nulls for the null code."""
        codes = self._check_codes(codes)
        if not self.nullable:
            return self._decode_array(codes, None)
        null = codes == self.null_code
        return self._decode_array(np.where(null, 0, codes), null)

    def _encode_chunk(self, chunk: Any, where: str, first_row: int) -> NDArray[Any]:
        if pa.types.is_nested(chunk.type) and chunk.type != MIXED:
            raise DataError(f"{where}: holds {chunk.type}, not one value a record; declare another type")
        codes, (bad, missing) = np.empty(len(chunk), self.dtype), np.zeros((2, len(chunk)), bool)
        for rows, part in split_kinds(chunk):
            codes[rows], bad[rows], missing[rows] = self._encode_kind(part)
        wrong = bad if self.nullable else bad | missing
        if wrong.any():
            row = int(wrong.argmax())
            at = f"{where}: row {first_row + row + 1}"
            if missing[row]:
                raise DataError(f"{at} {_EMPTY}")
            raise DataError(f"{at}: {self._explain_refusal(take_one(chunk, row))}")
        if self.nullable:
            codes[missing] = self.lattice_size
        return codes

    def _encode_kind(self, values: Any) -> tuple[NDArray[Any], arrow.Mask, arrow.Mask]:
        """Return codes and masks of refused and missing values, for an Arrow array of one kind."""
        if self.distinct or arrow.is_text(values.type):
            values = values.dictionary_encode()  # so that each spelling is parsed once
        if pa.types.is_dictionary(values.type):
            return self._encode_distinct(values)
        missing = arrow.is_missing(values)
        codes, bad = self._encode_array(values)
        return codes.astype(self.dtype, copy=False), bad & ~missing, missing

    def _encode_distinct(self, chunk: Any) -> tuple[NDArray[Any], arrow.Mask, arrow.Mask]:
        """Return codes and masks of refused and missing values, for a dictionary array."""
        absent = arrow.is_missing(chunk.indices)
        if not len(chunk.dictionary):
            return np.zeros(len(chunk), self.dtype), np.zeros(len(chunk), bool), absent
        index = arrow.to_numpy(chunk.indices.fill_null(0))
        codes, bad = self._encode_array(chunk.dictionary)
        missing = absent | arrow.is_missing(chunk.dictionary)[index]
        return codes.astype(self.dtype)[index], bad[index] & ~missing, missing

    @abstractmethod
    def _encode_array(self, values: Any) -> tuple[NDArray[Any], arrow.Mask]:
        """Return the codes of an Arrow array, and a mask of the values without a code; both are arbitrary at nulls."""

    @abstractmethod
    def _decode_array(self, codes: NDArray[Any], null: arrow.Mask | None) -> Any:
        """Return the values of valid codes as an Arrow array, with nulls at the mask `null`."""

    @abstractmethod
    def _explain_refusal(self, one: Any) -> str:
        """Return why the value of an Arrow array of length 1 has no code, and what to do."""

    # --- conditions on values ---

    def find_code(self, *spellings: Any, missing: Sequence[str] = ()) -> int:
        """Return the code of the first of these spellings that the column declares; raise DataError if none is.

        Args:
            spellings: alternative spellings of one value.
            missing: the spellings of a missing value.
        """
        refusal = None
        given = list(dict.fromkeys(spellings)) if isinstance(spellings[0], str) else list(spellings)
        for reader, value in product(self.tighten().list_readings(), given):
            try:
                absent = self.nullable and isinstance(value, str) and value in missing
                return int(reader.encode([None if absent else value], where="")[0])
            except DataError as error:
                refusal = refusal or error
        reason = str(refusal).removeprefix(": row 1").lstrip(": ").partition(";")[0]
        raise DataError(f"{reason}; ask for a value that the schema declares") from None

    def find_first_code_above(self, spellings: Sequence[Any], *, or_equal: bool) -> int:
        """Return the first code whose value is above the given one, or equal to it; `lattice_size` if there is none.

        Types of an ordinal or interval scale override it.
        """
        raise NotImplementedError(f"a {self.type} column has no order")

    def tighten(self) -> Self:
        """Return the column without clamping and without a catch-all category: it refuses such values."""
        return self.model_copy(update={"learn": False})

    def list_readings(self) -> list[Self]:
        """Return the column for each format in which a value may be written."""
        return [self]

    def label(self, code: int) -> str:
        """Return a short text for the value of a code, for plots."""
        (value,) = self._shorten(self.decode(np.array([code]))).to_pylist()
        return "missing" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)

    def _shorten(self, values: Any) -> Any:
        return values

    # --- features ---

    @property
    def spacing(self) -> tuple[float, float]:
        """The distance between neighbouring values, and between the lowest and the highest."""
        return 1, self.lattice_size - 1

    @property
    def feature_count(self) -> int:
        """One for each bin."""
        return self.bin_count

    @property
    def squared_norms(self) -> tuple[int, int]:
        """One and one: a single feature is 1, the others are 0."""
        return 1, 1

    @property
    def largest_distance(self) -> int:
        """The distance between two records in different bins."""
        return 2

    # --- learning ---

    def encode_present(self, values: Any, *, where: str) -> NDArray[np.int64]:
        """Return the codes of the values that are not missing."""
        codes = self.encode(values, where=where)
        return (codes[codes != self.null_code] if self.nullable else codes).astype(np.int64)

    def _iter_chunks(self, values: Any, where: str) -> Iterator[Any]:
        """Yield the values as Arrow arrays; refuse missing values unless the column is nullable."""
        row = 0
        for part in to_chunks(values, where=where):
            chunk = part.dictionary_decode() if pa.types.is_dictionary(part.type) else part
            absent = arrow.is_missing(chunk)
            if absent.any() and not self.nullable:
                at = f"{where}: row {row + int(absent.argmax()) + 1}"
                raise DataError(f"{at} {_EMPTY}")
            row += len(chunk)
            yield chunk

    # --- dtypes ---

    @property
    def possible_dtypes(self) -> tuple[str, ...]:
        """The dtypes that can hold its values in a DataFrame."""
        return frame_dtypes.TEXT

    @property
    def unlearned_dtype(self) -> str | None:
        """The dtype before the column is learned; None if it is not known."""
        return None

    def find_dtype_problem(self) -> str | None:
        """Return why the declared dtype cannot hold the declared values, and what to do; None if it can.

        >>> from sundog.data.columns import IntegerColumn
        >>> IntegerColumn(min=0, max=300, dtype="int8").find_dtype_problem()
        'dtype int8 does not hold 300 (its values are -128 to 127); use a larger one'
        """
        name, possible = self.frame_dtype, self.possible_dtypes
        if name is None:
            return None
        if name not in frame_dtypes.DTYPES:
            return f"unknown dtype {name!r}; {suggest(name, frame_dtypes.DTYPES)}"
        if name not in possible:
            return f"dtype {name} does not hold the values of a column of this type; use {', '.join(possible)}"
        if self.nullable and (name in frame_dtypes.WHOLE or name == "bool"):
            use = frame_dtypes.to_nullable(name)
            return f"dtype {name} cannot hold missing values, but the column is nullable; use {use}"
        return self._find_limit_problem(name)

    def _find_limit_problem(self, name: str) -> str | None:  # noqa: ARG002
        """Return why one of the possible dtypes does not hold all values; None if it does."""
        return None

    @property
    def is_respelled(self) -> bool:
        """Whether the column declares spellings for typed values, so that they are written as text."""
        return False

    def spell(self, values: Any) -> Any:
        """Return decoded values as text that `encode` maps back to the same codes."""
        return pc.cast(values, pa.string())

    # --- writing ---

    def to_text(self, codes: Any) -> list[Any]:
        """Return the values as text that `encode` reads."""
        return [self.spell(self.decode(codes))]

    def to_arrow(self, codes: Any) -> Any:
        """Return the values in the type and spelling that the schema declares.

        >>> from sundog.data.columns import BooleanColumn, IntegerColumn
        >>> BooleanColumn(true="Yes", false="No").to_arrow([1, 0]).to_pylist()
        ['Yes', 'No']
        >>> IntegerColumn(min=0, max=9, dtype="int16").to_arrow([3]).type
        DataType(int16)
        """
        name = self.frame_dtype
        if name == "category":
            return self._to_categories(codes)
        values = self.decode(codes)
        if name in (None, "object"):
            is_text = self.is_respelled or (name == "object" and self.objects_are_text)
            return self.spell(values) if is_text else values
        if name in frame_dtypes.TEXT:
            return self.spell(values)
        if name in frame_dtypes.TIME:
            return values.cast(pa.timestamp(frame_dtypes.TIME[name], values.type.tz))
        if name == "date":
            return values.cast(pa.date32())
        if name.lower() == "float32":
            return self._to_float32(values)
        return values.cast(frame_dtypes.NUMBERS[name]) if name in frame_dtypes.NUMBERS else values

    def to_frame(self, name: str, codes: Any) -> dict[str, Any]:
        """Return the values as a pandas Series."""
        return {name: self.to_series(codes)}

    def to_series(self, codes: Any) -> pd.Series[Any]:
        """Return the values as a pandas Series of the declared dtype.

        >>> from sundog.data.columns import IntegerColumn
        >>> IntegerColumn(min=0, max=9, nullable=True).to_series([3, 10]).tolist()
        [3, <NA>]
        """
        import pandas as pd

        name, values = self.frame_dtype, self.to_arrow(codes)
        if name == "object":
            return pd.Series(values.to_pylist(), dtype=object)
        nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        special: dict[Any, Any] = nullable if name is None and self.nullable else {}
        if name in frame_dtypes.EXTENDED:
            special = {frame_dtypes.EXTENDED[name]: pd.api.types.pandas_dtype(name)}
        if values.type in special:
            return values.to_pandas(types_mapper=special.get)  # type: ignore[no-any-return]
        return values.to_pandas()  # type: ignore[no-any-return]

    def to_values(self, codes: Any) -> Any:
        """Return the values as an Arrow array."""
        return self.to_arrow(codes)

    def to_arrays(self, codes: Any, null: str) -> dict[str, NDArray[Any]]:
        """Return one numpy array.

        >>> from sundog.data.columns import CategoricalColumn
        >>> CategoricalColumn(values=["x", "y"]).to_arrays(np.array([1, 0]), "")
        {'': array(['y', 'x'], dtype='<U1')}
        """
        values = self.decode(codes)
        if pa.types.is_string(values.type):
            spellings = np.array([*self.decode(np.arange(self.lattice_size)).to_pylist(), null])
            return {"": spellings[codes]}
        if not self.nullable:
            return {"": values.to_numpy(zero_copy_only=False)}
        whole = pa.types.is_integer(values.type)
        if whole and any(abs(end.as_py()) > EXACT for end in pc.min_max(values.drop_null()).values() if end.is_valid):
            return {"": np.array(values.cast(pa.string()).fill_null(null).to_pylist())}
        return {"": values.cast(pa.float64()).to_numpy(zero_copy_only=False)}

    def _to_categories(self, codes: Any) -> Any:
        """Return a dictionary array of all declared categories in their order, whether they occur or not."""
        numbers: NDArray[np.int64] = np.asarray(codes).astype(np.int64)
        self.decode(numbers)  # refuses invalid codes
        declared = self.decode(np.arange(self.lattice_size))
        declared = self.spell(declared) if self.is_respelled else declared
        indices = pa.array(numbers, pa.int32(), mask=numbers >= self.lattice_size)
        return pa.DictionaryArray.from_arrays(indices, declared, ordered=self.scale is Scale.ORDINAL)

    def _to_float32(self, values: Any) -> Any:
        return values.cast(pa.float64()).cast(pa.float32(), safe=False)
