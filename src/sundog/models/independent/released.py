"""Marginals as they are in a release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.models.independent.column_marginals import get_marginal
from sundog.models.protocol import State
from sundog.models.released import MOST_RECORDS, ReleasedModel, is_whole
from sundog.privacy.events import Charge, normalize_purpose


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
            p = state.tensors[key]
            marginal = get_marginal(column)
            if p.dtype != np.float64 or p.shape != marginal.shape or not ((p >= 0) & (p <= 1)).all():
                raise ReleaseError(f"the marginal of column {name!r} is not an array of probabilities")
            if not marginal.is_possible(p):
                raise ReleaseError(f"the marginal of column {name!r} does not add up to one")
        self.schema, self.records = schema, config["records"]

    def find_unpaid(self, charges: Sequence[Charge]) -> list[str]:
        """Name the private marginals that no charge paid for."""
        measured = [charge for charge in charges if charge.event.kind == "discrete_gaussian"]
        paid = Counter((charge.purpose, charge.count) for charge in measured)
        missing = []
        for name, column in self.schema.columns.items():
            due = normalize_purpose(name_marginal_purpose(name)), get_marginal(column).touched * self.schema.cap
            paid[due] -= not column.public
            if paid[due] < 0:
                missing.append(f"marginal of {name!r}")
        return missing


def list_marginal_keys(schema: Schema) -> list[str]:
    """Return the names of the arrays, by the place of their column: names of columns may be private."""
    return [f"marginal.{place}" for place in range(len(schema.columns))]


def name_marginal_purpose(name: str) -> str:
    """Return the purpose of the charge for a marginal."""
    return f"marginal of {name}"
