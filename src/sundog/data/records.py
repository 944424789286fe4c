"""Records: a whole dataset as integer codes, one array a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sundog.data.schema import Schema


@dataclass(frozen=True)
class Records:
    """Encoded records. Each array has shape (count, *column.shape); sets are sparse.

    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 9}}})
    >>> records = Records(schema, {"age": np.array([3, 1, 2], np.uint8)}, 3)
    >>> len(records), records.take([0, 2]).codes["age"].tolist()
    (3, [3, 2])
    """

    schema: Schema
    codes: dict[str, Any]  # NDArray of the column's dtype, or scipy.sparse.csr_array for sets
    count: int
    unit: npt.NDArray[np.int64] | None = (
        None  # the number of the person of each record, from 0, if the schema has a unit
    )

    def __post_init__(self) -> None:
        for name, column in self.schema.columns.items():
            expected = (self.count, *column.shape)
            if self.codes[name].shape != expected:
                raise ValueError(f"codes of column {name!r} have shape {self.codes[name].shape}, expected {expected}")

    def __len__(self) -> int:
        return self.count

    def take(self, index: Any) -> Records:
        """Return the records that an index (positions, a slice or a boolean mask) selects."""
        rows = np.arange(self.count)[index]
        unit = None if self.unit is None else self.unit[rows]
        return Records(self.schema, {name: codes[rows] for name, codes in self.codes.items()}, len(rows), unit)


def concatenate(parts: Sequence[Records]) -> Records:
    """Return the synthetic records of one or more parts together."""
    first = parts[0]
    codes = {name: stack_codes([part.codes[name] for part in parts]) for name in first.schema.columns}
    return Records(first.schema, codes, sum(map(len, parts)))


def stack_codes(parts: Sequence[Any]) -> Any:
    """Return the codes of several parts of one column together.

    >>> stack_codes([np.array([1, 2]), np.array([3])]).tolist()
    [1, 2, 3]
    """
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
