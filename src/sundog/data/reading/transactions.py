"""Set-valued records: transaction files (one set a line), sparse matrices, and sets spelled in one text cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from sundog.data.reading.source import BARE, AnyPath, Source, open_bytes, reading
from sundog.errors import DataError

Array = np.ndarray[Any, Any]

SPARSE_PARTS = ("indices", "indptr", "shape")
"""The arrays of a set column in an npz archive: compressed sparse rows, all of whose values are one."""

RUNS = "indptr"
"""The array beside a set column that lists the items of all records one after another: where each record begins."""


def open_transactions(path: AnyPath) -> Source:
    r"""Open a transaction file: one record a line, its items apart as the column says, an empty line an empty set.

    Example:
        >>> path = getfixture("tmp_path") / "t.txt"
        >>> _ = path.write_text("1 2\n\n3\n")
        >>> open_transactions(path).load([""])[""].to_pylist()
        ['1 2', '', '3']
    """
    with reading(path.name), open_bytes(path) as file:
        lines = file.read().decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    if broken := next((number for number, line in enumerate(lines, start=1) if "\r" in line), None):
        raise DataError(f"{path.name}: line {broken} has a carriage return in it; end lines with \\n or \\r\\n")
    if lines[-1] == "":
        lines.pop()
    text = pa.chunked_array([pa.array(lines, pa.string())])
    return Source(path.name, {BARE: ()}, lambda names: dict.fromkeys(names, text))


def to_lists(items: Sequence[object], codes: sparse.csr_array) -> pa.ListArray:
    """The items of each record, in the order of the universe.

    Example:
        >>> to_lists(["a", "b"], sparse.csr_array([[1, 1], [0, 0]])).to_pylist()
        [['a', 'b'], []]
    """
    rows = sparse.csr_array(codes)
    rows.sort_indices()
    return pa.ListArray.from_arrays(
        pa.array(rows.indptr, pa.int32()), pa.array(list(items)).take(pa.array(rows.indices))
    )


def from_parts(indices: Array, indptr: Array, shape: Array, where: str) -> sparse.csr_array:
    """Build the matrix from the arrays of an archive, trusting none of them.

    Example:
        >>> from_parts(np.array([0, 2]), np.array([0, 1, 2]), np.array([2, 3]), "a.npz").toarray()
        array([[1, 0, 0],
               [0, 0, 1]], dtype=uint8)
    """
    whole = all(part.ndim == 1 and part.dtype.kind in "iu" for part in (indices, indptr, shape))
    if not whole or len(shape) != 2 or (shape.astype(np.int64) < 0).any() or len(indptr) != int(shape[0]) + 1:
        raise DataError(f"{where}: indices, indptr and shape do not fit together; save the matrix again")
    steps = indptr.astype(np.int64)
    if steps[0] != 0 or steps[-1] != len(indices) or (np.diff(steps) < 0).any():
        raise DataError(f"{where}: indptr does not cut indices into {int(shape[0])} records; save the matrix again")
    places = indices.astype(np.int64)
    bad = np.flatnonzero((places < 0) | (places >= int(shape[1])))
    if len(bad):
        raise DataError(
            f"{where}: item {places[bad[0]]} is outside the {int(shape[1])} of its shape; save the matrix again"
        )
    matrix = sparse.csr_array((np.ones(len(places), np.uint8), places, steps), shape=tuple(map(int, shape)))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def from_runs(items: Array, indptr: Array, where: str) -> sparse.csr_array:
    """Build the matrix from the items of all records in turn, by number and as often as they occur: visits, for one.

    Example:
        >>> from_runs(np.array([2, 0, 2, 1]), np.array([0, 3, 3, 4]), "a.npz").toarray()
        array([[1, 0, 1],
               [0, 0, 0],
               [0, 1, 0]], dtype=uint8)
    """
    whole = all(isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind in "iu" for part in (items, indptr))
    if not whole or len(indptr) == 0:
        raise DataError(f"{where}: its items and {RUNS!r} do not fit together; save both as arrays of whole numbers")
    beyond = int(items.max(initial=0)) + 1  # whether all of these are declared is for the column to say
    return from_parts(items, indptr, np.array([len(indptr) - 1, beyond]), where)
