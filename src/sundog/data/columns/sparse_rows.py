"""Sets of items as sparse rows: their parts in an archive, and lists of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sundog.errors import DataError

Array = np.ndarray[Any, Any]

PARTS = ("indices", "indptr", "shape")
"""The arrays of a set column in an npz archive: compressed sparse rows, all of whose values are one."""

RUNS = "indptr"
"""The array of the positions where each record begins, if a set column lists the items of all records."""


def to_lists(items: Sequence[object], codes: Any) -> Any:
    """Return the items of each record, in the order of the universe.

    >>> from scipy import sparse
    >>> to_lists(["a", "b"], sparse.csr_array([[1, 1], [0, 0]])).to_pylist()
    [['a', 'b'], []]
    """
    from scipy import sparse

    rows = sparse.csr_array(codes)
    rows.sort_indices()
    return pa.ListArray.from_arrays(
        pa.array(rows.indptr, pa.int32()), pa.array(list(items)).take(pa.array(rows.indices))
    )


def from_parts(indices: Array, indptr: Array, shape: Array, where: str) -> Any:
    """Build the matrix from the arrays of an archive, after checking them.

    >>> from_parts(np.array([0, 2]), np.array([0, 1, 2]), np.array([2, 3]), "a.npz").toarray()
    array([[1, 0, 0],
           [0, 0, 1]], dtype=uint8)
    """
    from scipy import sparse

    whole = all(part.ndim == 1 and part.dtype.kind in "iu" for part in (indices, indptr, shape))
    if not whole or len(shape) != 2 or (shape.astype(np.int64) < 0).any() or len(indptr) != int(shape[0]) + 1:
        raise DataError(f"{where}: indices, indptr and shape do not fit together; save the matrix again")
    steps = indptr.astype(np.int64)
    if steps[0] != 0 or steps[-1] != len(indices) or (np.diff(steps) < 0).any():
        raise DataError(f"{where}: indptr does not divide indices into {int(shape[0])} records; save the matrix again")
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


def from_runs(items: Array, indptr: Array, where: str) -> Any:
    """Build the matrix from the item numbers of all records, one record after another; items may repeat.

    >>> from_runs(np.array([2, 0, 2, 1]), np.array([0, 3, 3, 4]), "a.npz").toarray()
    array([[1, 0, 1],
           [0, 0, 0],
           [0, 1, 0]], dtype=uint8)
    """
    whole = all(isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind in "iu" for part in (items, indptr))
    if not whole or len(indptr) == 0:
        raise DataError(f"{where}: its items and {RUNS!r} do not fit together; save both as arrays of whole numbers")
    beyond = int(items.max(initial=0)) + 1  # the column checks that all of them are declared
    return from_parts(items, indptr, np.array([len(indptr) - 1, beyond]), where)
