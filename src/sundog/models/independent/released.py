"""Marginals as they are in a release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sundog.data.columns import AnyColumn
from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.models.independent.column_marginals import get_marginal
from sundog.models.protocol import State
from sundog.models.released import MOST_RECORDS, DueCharge, ReleasedModel, find_unpaid_counts, is_whole
from sundog.privacy.events import Charge


class ReleasedIndependent(ReleasedModel):
    """The marginals of all columns, by the place of their column."""

    counts_records: ClassVar[bool] = False  # the histograms show it
    records: int

    def __init__(self, schema: Schema, state: State) -> None:
        config, keys = state.config, list_marginal_keys(schema)
        if (
            set(config) != {"records"}
            or not is_whole(config["records"], MOST_RECORDS)
            or set(state.tensors) != set(keys)
        ):
            raise ReleaseError("the weights are not those of an `independent` model of this schema")
        for key, (name, column) in zip(keys, schema.columns.items(), strict=True):
            check_marginal(name, column, state.tensors[key])
        self.schema, self.records = schema, config["records"]

    def find_unpaid(self, charges: Sequence[Charge]) -> list[str]:
        """Name the private marginals that no charge paid for."""
        return find_unpaid_counts(charges, list_due_marginals(self.schema))


def list_marginal_keys(schema: Schema) -> list[str]:
    """Return the names of the arrays, by the place of their column: names of columns may be private."""
    return [name_marginal_key(place) for place in range(len(schema.columns))]


def name_marginal_key(place: int) -> str:
    """Return the name of the array of a column's marginal."""
    return f"marginal.{place}"


def check_marginal(name: str, column: AnyColumn, p: npt.NDArray[Any]) -> None:
    """Raise ReleaseError unless an array has the probabilities of a column's marginal."""
    marginal = get_marginal(column)
    if p.dtype != np.float64 or p.shape != marginal.shape or not ((p >= 0) & (p <= 1)).all():
        raise ReleaseError(f"the marginal of column {name!r} is not an array of probabilities")
    if not marginal.is_possible(p):
        raise ReleaseError(f"the marginal of column {name!r} does not add up to one")


def list_due_marginals(schema: Schema) -> list[DueCharge]:
    """Return the charge that is due for each private column's marginal."""
    return [
        DueCharge(f"marginal of {name!r}", name_marginal_purpose(name), get_marginal(column).touched * schema.cap)
        for name, column in schema.columns.items()
        if not column.public
    ]


def name_marginal_purpose(name: str) -> str:
    """Return the purpose of the charge for a marginal."""
    return f"marginal of {name}"
