"""Overlap between held-out and real records: a test on training records would be too optimistic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sundog.data.records import Records

MOST = 0.25  # a larger share of copies gives a warning
MANY = 20  # distinct records that two samples do not hold equally often by chance
_MIX = np.uint64(0x9E3779B97F4A7C15)


def compute_copied_share(real: Records, held_out: Records) -> float:
    """Return the share of the held-out records that are copies of real ones.

    Equal records need not be the same record: a new record has a duplicate among the real ones about as often as a real
    one has among the others. Only what exceeds that share, and chance, counts. Where most records have duplicates, only
    an identical set of records counts.

    >>> from sundog.data.schema import Schema
    >>> schema = Schema.from_dict({"columns": {"id": {"type": "integer", "min": 0, "max": 999}}})
    >>> records = [Records(schema, {"id": np.arange(start, start + 50)}, 50) for start in (0, 25)]
    >>> compute_copied_share(records[0], records[0]), compute_copied_share(*records)
    (1.0, 0.5)
    """
    known, asked = hash_records(real), hash_records(held_out)
    distinct, place, counts = np.unique(known, return_inverse=True, return_counts=True)
    if np.array_equal(known, asked) or (len(distinct) >= MANY and np.array_equal(np.sort(known), np.sort(asked))):
        return 1.0
    twins = float((counts[place] > 1).mean())
    beyond = float(np.isin(asked, known).mean()) - twins
    by_chance = 5 * math.sqrt(twins * (1 - twins) * (1 / len(asked) + 2 / len(known)))
    return beyond / (1 - twins) if beyond > by_chance else 0.0


def hash_records(records: Records) -> NDArray[np.uint64]:
    """Return a hash of each record, equal for equal records."""
    found = np.zeros(len(records), np.uint64)
    for codes in records.codes.values():
        found = (found ^ (found >> np.uint64(29))) * _MIX + _hash_column(codes)
    return found


def _hash_column(codes: Any) -> NDArray[np.uint64]:
    if sparse.issparse(codes):
        ends = codes.tocsr()
        ends.sort_indices()
        rows = (ends.indices[start:end].tobytes() for start, end in zip(ends.indptr, ends.indptr[1:], strict=False))
    elif codes.ndim == 1:
        return np.asarray(codes, np.uint64)
    else:
        rows = (row.tobytes() for row in np.ascontiguousarray(codes))
    return np.fromiter((hash(row) for row in rows), np.int64, codes.shape[0]).astype(np.uint64)
