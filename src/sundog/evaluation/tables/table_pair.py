"""Two tables side by side, in the forms that the measures need."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sundog.data.bins import Bins, make_bins
from sundog.data.columns import ScalarColumn
from sundog.errors import DataError
from sundog.evaluation.bootstrap import Blocks, Floats, Labels
from sundog.evaluation.comparison import Comparison

ColumnNames = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TablePair:
    """The scalar columns of real and synthetic records. Every array has the real rows first, then the synthetic ones.

    Args:
        columns: the scalar columns; integers, numbers and times are `numeric`, all others `categorical`.
        real: the real rows, in blocks.
        synthetic: the synthetic rows, in blocks.
        bins: the declared bin of each value; null has a separate one.
        labels: of categorical columns, a number for each category that occurs; -1 for null.
        offsets: of numeric columns, the distance of each value from the declared minimum; NaN for null.
        missing: of nullable columns, which values are null.
    """

    columns: Mapping[str, ScalarColumn]
    real: Blocks
    synthetic: Blocks
    bins: Mapping[str, NDArray[Any]]
    labels: Mapping[str, Labels]
    offsets: Mapping[str, Floats]
    missing: Mapping[str, NDArray[np.bool_]]

    @classmethod
    def of(cls, comparison: Comparison) -> TablePair:
        """Build the tables of a comparison."""
        for kind, records in (("real", comparison.real), ("synthetic", comparison.synthetic)):
            if not len(records):
                raise DataError(f"there are no {kind} records to compare; give at least one")
        rng = comparison.make_rng("fidelity blocks")
        columns = comparison.real.schema.scalars
        codes = {
            name: np.concatenate([comparison.real.codes[name], comparison.synthetic.codes[name]]) for name in columns
        }
        numeric = {name: column for name, column in columns.items() if column.is_numeric}
        return cls(
            columns=columns,
            real=Blocks.deal(len(comparison.real), rng),
            synthetic=Blocks.deal(len(comparison.synthetic), rng),
            bins={name: choose_bins(column).to_bins(codes[name]) for name, column in columns.items()},
            labels={name: _label_categories(columns[name], codes[name]) for name in columns if name not in numeric},
            offsets={name: compute_offsets(column, codes[name]) for name, column in numeric.items()},
            missing={name: codes[name] == column.null_code for name, column in columns.items() if column.nullable},
        )

    @property
    def numeric(self) -> list[str]:
        """The names of the numeric columns."""
        return list(self.offsets)

    @property
    def categorical(self) -> list[str]:
        """The names of all others."""
        return list(self.labels)

    def scale(self, name: str) -> Floats:
        """Return the values of a numeric column scaled from the declared range to 0 … 1."""
        _, span = self.columns[name].spacing
        return self.offsets[name] / (float(span) or 1.0)

    def split(self, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Split an array into the parts of the real and the synthetic rows."""
        rows = len(self.real.of_row)
        return values[:rows], values[rows:]

    def sum_labels(self, labels: NDArray[Any], size: int) -> tuple[Floats, Floats]:
        """Return estimates of how many rows of each table have each label."""
        real, synthetic = self.split(labels)
        return self.real.sum_labels(real, size), self.synthetic.sum_labels(synthetic, size)


def choose_bins(column: ScalarColumn) -> Bins:
    """Return the declared bins; default ones where quantile bins were declared but never learned."""
    return make_bins(column.with_default_bins())


def compute_offsets(column: ScalarColumn, codes: NDArray[Any]) -> Floats:
    """Return the distance of values from the declared minimum; NaN for null.

    >>> from sundog.data.columns import IntegerColumn
    >>> compute_offsets(IntegerColumn(min=100, max=125, step=10, nullable=True), np.array([0, 2, 3, 4])).tolist()
    [0.0, 20.0, 25.0, nan]
    """
    step, span = column.spacing
    found = np.minimum(codes.astype(np.float64) * step, float(span))  # the last step may be shorter
    return np.where(codes == column.null_code, np.nan, found) if column.nullable else found


def _label_categories(column: ScalarColumn, codes: NDArray[Any]) -> Labels:
    seen, _ = pd.factorize(np.where(codes == column.null_code, np.nan, codes) if column.nullable else codes)
    return np.asarray(seen, np.int64)


def choose_combinations(names: list[str], size: int, most: int, rng: np.random.Generator) -> list[ColumnNames]:
    """Return all combinations of `size` columns, or `most` random ones.

    >>> choose_combinations(["a", "b", "c"], 2, 10, np.random.default_rng(0))
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    if math.comb(len(names), size) <= most:
        return list(combinations(names, size))
    places: set[tuple[int, ...]] = set()
    while len(places) < most:
        places.add(tuple(sorted(rng.choice(len(names), size, replace=False).tolist())))
    return [tuple(names[place] for place in each) for each in sorted(places)]
