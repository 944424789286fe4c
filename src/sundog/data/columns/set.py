"""Sets: which items of a declared universe a record holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, StrictInt, StrictStr, field_validator, model_validator

from sundog.data.columns import arrow, sparse_rows
from sundog.data.columns.column import Column
from sundog.data.columns.containers import MIXED, from_objects, simplify, spell_values, to_chunks
from sundog.data.columns.forms import Form
from sundog.data.columns.ordered import Whole
from sundog.data.validation_errors import format_value
from sundog.errors import DataError


class SetColumn(Column):
    """A set of at most `max_size` items; a larger one keeps its first items in the order of the universe.

    >>> basket = SetColumn(universe=["bread", "milk", "tea"], max_size=2)
    >>> codes = basket.encode([["tea", "milk", "bread"], []], where="shop.txt: column 'basket'")
    >>> codes.toarray().tolist()
    [[1, 1, 0], [0, 0, 0]]
    """

    form: ClassVar[Literal[Form.SET]] = Form.SET
    scale: ClassVar[None] = None
    archive_parts: ClassVar[tuple[str, ...]] = sparse_rows.PARTS

    type: Literal["set"] = "set"
    universe: Annotated[Whole, Field(ge=1)] | Annotated[tuple[StrictStr | StrictInt, ...], Field(fail_fast=True)]
    max_size: Annotated[Whole, Field(ge=1)]
    undeclared: Literal["error", "drop"] = "error"

    @field_validator("universe")
    @classmethod
    def _check_universe(cls, universe: int | tuple[str | int, ...]) -> int | tuple[str | int, ...]:
        if isinstance(universe, tuple):
            if not universe:
                raise ValueError("universe is empty; list the items, or give their number")
            seen: set[str] = set()
            for item in universe:
                if str(item) in seen:
                    raise ValueError(f"universe lists {format_value(item)} twice; keep one")
                seen.add(str(item))
        return universe

    @model_validator(mode="after")
    def _check_declaration(self) -> Self:
        if self.max_size > self.shape[0]:
            raise ValueError(f"max_size ({self.max_size}) is above the number of items ({self.shape[0]}); lower it")
        if self.nullable or self.learn:
            key, fix = ("nullable", "use an empty set") if self.nullable else ("learn", "declare the universe")
            raise ValueError(f"a set column cannot be `{key}`; remove it and {fix}")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of the universe, as the shape of one record."""
        return (self.universe if isinstance(self.universe, int) else len(self.universe),)

    @property
    def lattice_size(self) -> int:
        """Two: in or out."""
        return 2

    @property
    def items(self) -> tuple[str | int, ...]:
        """The items, in the order of their codes."""
        return tuple(range(self.universe)) if isinstance(self.universe, int) else self.universe

    @property
    def feature_count(self) -> int:
        """One for each item."""
        return self.shape[0]

    @property
    def squared_norms(self) -> tuple[int, int]:
        """Zero and `max_size`: the possible numbers of items."""
        return 0, self.max_size

    @property
    def largest_distance(self) -> int:
        """The distance between two sets without a common item."""
        return min(self.shape[0], 2 * self.max_size)

    def relax(self) -> Self:
        """Return the column itself: undeclared items are not part of its sets."""
        return self

    def encode(self, values: Any, *, where: str) -> Any:
        """Return a sparse array of (records, items), given lists, lines of items, or a matrix of 0 and 1."""
        if hasattr(values, "tocsr") or (isinstance(values, np.ndarray) and values.ndim != 1):
            return self._from_matrix(values, where)
        rows: list[NDArray[Any]] = []
        items: list[NDArray[Any]] = []
        first_row = 0
        for chunk in self._iter_chunks(values, where):
            row, item = self._encode_chunk(chunk, where, first_row)
            rows.append(row + first_row)
            items.append(item)
            first_row += len(chunk)
        return self._cap_sizes(np.concatenate([[], *rows]), np.concatenate([[], *items]), first_row)

    def decode(self, codes: Any) -> Any:
        """Return the sets as a sparse array of (records, items)."""
        from scipy import sparse

        return sparse.csr_array(codes).astype(np.uint8)

    def from_parts(self, parts: Sequence[Any], *, where: str) -> Any:
        """Return a sparse array, given its parts, or the items of all records and where each record begins."""
        if len(parts) == 2:
            items, starts = parts
            return sparse_rows.from_runs(items, starts, where)
        indices, indptr, shape = parts
        return sparse_rows.from_parts(indices, indptr, shape, where)

    def to_arrow(self, codes: Any) -> Any:
        """Return lists of items."""
        return sparse_rows.to_lists(self.items, codes)

    def to_frame(self, name: str, codes: Any) -> dict[str, Any]:
        """Return lists of items."""
        return {name: self.to_arrow(codes).to_pandas()}

    @property
    def text_problem(self) -> str | None:
        """Why items cannot be separated in a line of text; None if they can."""
        if any(self.separator in str(item) or not str(item) for item in self.items):
            return f"items with {self.separator!r} or without a name do not fit a csv; write .parquet"
        return None

    def to_text(self, codes: Any) -> list[Any]:
        """Return the items of each set on one line."""
        return [pc.binary_join(sparse_rows.to_lists([str(item) for item in self.items], codes), self.separator)]

    def to_arrays(self, codes: Any, null: str) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        """Return the parts of a sparse matrix."""
        from scipy import sparse

        rows = sparse.csr_array(codes)
        return {"indices": rows.indices, "indptr": rows.indptr, "shape": np.array(rows.shape, np.int64)}

    def make_empty_codes(self) -> Any:
        """Return a sparse array of no records."""
        from scipy import sparse

        return sparse.csr_array((0, *self.shape), dtype=np.uint8)

    @cached_property
    def separator(self) -> str:
        """The separator of items in text: a space, or a bar if items contain spaces.

        >>> SetColumn(universe=["whole milk", "bread"], max_size=2).separator
        '|'
        """
        return "|" if any(len(str(item).split()) != 1 for item in self.items) else " "

    @cached_property
    def _code_of(self) -> Mapping[str, int]:
        return {str(item): code for code, item in enumerate(self.items)}

    def _encode_chunk(self, chunk: Any, where: str, first_row: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the row and the code of each item."""
        lists = self._chunk_to_lists(chunk, where, first_row)
        row = arrow.to_numpy(pc.list_parent_indices(lists))
        items = simplify(pc.list_flatten(lists), where=where)
        found = (spell_values(items, where=where) if items.type == MIXED else items).dictionary_encode()
        known = [self._find_code(name) for name in spell_values(found.dictionary, where=where).to_pylist()]
        item = np.array([*known, -1])[arrow.to_numpy(found.indices.fill_null(len(known)))]
        undeclared = item == -1
        if undeclared.any() and self.undeclared == "error":
            at = int(undeclared.argmax())
            place, name = f"{where}: row {first_row + int(row[at]) + 1}", format_value(found[at].as_py())
            fix = "add it to the universe, fix the row or declare `undeclared: drop`"
            raise DataError(f"{place}: item {name} is not declared; {fix}")
        return row[item >= 0], item[item >= 0]

    def _iter_chunks(self, values: Any, where: str) -> Iterator[Any]:
        """Yield the records as Arrow arrays of text or lists."""
        from pandas.api.types import infer_dtype

        typed = isinstance(values, np.ndarray) and values.dtype.kind != "O"
        if typed or isinstance(values, pa.Array | pa.ChunkedArray) or infer_dtype(values, skipna=True) == "string":
            yield from to_chunks(values, where=where)
        else:
            yield self._to_lists(values, where)

    def _to_lists(self, records: Any, where: str) -> Any:
        """Return records in memory as lists of spellings."""
        items: list[Any] = []
        ends, rows = [0], []
        for row, record in enumerate(records, start=1):
            items += self._split_record(record, f"{where}: row {row}")
            rows += [row] * (len(items) - ends[-1])
            ends.append(len(items))
        texts = spell_values(from_objects(items, where=where, rows=rows), where=where)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), texts)

    def _split_record(self, record: Any, at: str) -> list[Any]:
        """Return the items of one record: a collection, or a line of text."""
        if isinstance(record, str):
            return list(self._split(pa.array([record]))[0].as_py())
        if isinstance(record, Collection) and not isinstance(record, bytes | Mapping):
            return list(record)
        missing = record is None or str(record) in ("nan", "<NA>", "NaT")
        raise DataError(
            f"{at} {'is missing; write an empty set' if missing else 'is not a set; give it a list'} instead"
        )

    def _chunk_to_lists(self, chunk: Any, where: str, first_row: int) -> Any:
        if pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_decode()
        if chunk.null_count:
            row = first_row + int(arrow.is_missing(chunk).argmax()) + 1
            raise DataError(f"{where}: row {row} is missing; write an empty set instead")
        if arrow.is_text(chunk.type):
            return self._split(chunk)
        if not pa.types.is_list(chunk.type) and not pa.types.is_large_list(chunk.type):
            raise DataError(f"{where}: holds {chunk.type}; give it lists of items")
        if pa.types.is_nested(chunk.type.value_type):
            raise DataError(f"{where}: holds {chunk.type}; give it lists of items")
        return chunk

    def _split(self, texts: Any) -> Any:
        """Split lines of text into lists of items; each distinct line is split once."""
        if self.separator == " ":
            return pc.split_pattern_regex(pc.utf8_trim_whitespace(texts), r"\s+")
        known = texts.dictionary_encode()
        lists = [[item for item in cell.split(self.separator) if item] for cell in known.dictionary.to_pylist()]
        return pa.array(lists, pa.list_(pa.string())).take(known.indices)

    def _find_code(self, name: str | None) -> int:
        """Return the code of an item; -1 if it is not declared, -2 for the empty text of an empty line."""
        if name is None:
            return -1
        code = self._code_of.get(name, self._code_of.get(name.strip()))
        return code if code is not None else -2 if name == "" else -1

    def _from_matrix(self, values: Any, where: str) -> Any:
        from scipy import sparse

        if values.ndim != 2 or np.dtype(values.dtype).kind not in "biuf":
            found = f"{values.dtype} values of shape {values.shape}"
            raise DataError(f"{where}: holds {found}; give it a matrix of 0 and 1, or lists of items")
        matrix = sparse.coo_array(values)
        matrix.eliminate_zeros()
        row, item = matrix.coords
        beyond = item >= self.shape[0]
        if beyond.any() and self.undeclared == "error":
            at = int(beyond.argmax())
            fix = "enlarge the universe or declare `undeclared: drop`"
            raise DataError(
                f"{where}: row {row[at] + 1}: item {item[at]} is not among the {self.shape[0]} declared; {fix}"
            )
        return self._cap_sizes(row[~beyond], item[~beyond], matrix.shape[0])

    def _cap_sizes(self, row: NDArray[Any], item: NDArray[Any], count: int) -> Any:
        """Return each record's first `max_size` items in the order of the universe, each once."""
        from scipy import sparse

        size = self.shape[0]
        pairs = np.unique(row.astype(np.int64) * size + item.astype(np.int64))
        row, item = pairs // size, pairs % size
        lengths = np.bincount(row, minlength=count)
        rank = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        row, item = row[rank < self.max_size], item[rank < self.max_size]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=count))])
        return sparse.csr_array((np.ones(len(item), np.uint8), item, indptr), shape=(count, size))
