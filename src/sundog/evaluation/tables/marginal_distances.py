"""Marginals: total variation distances of one, two or three columns over the declared public bins.

The total variation distance is half the sum of the absolute differences of all shares: the share of rows that would
have to change. It is 0 for equal tables and 1 for tables without a common cell.

The figure is the plain distance of the two samples. As an estimate of the distance of their distributions it is biased
upwards, by about √(cells / rows) for equal distributions. The lower end of its interval allows for that
(`estimate_chance_distance`), so that few rows do not show a difference that more rows would refute.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sundog.evaluation.bootstrap import Labels
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.measure import Measure, Measures, Metric, Z, compute_bonferroni_quantile
from sundog.evaluation.tables.distance import Distance
from sundog.evaluation.tables.table_pair import ColumnNames, TablePair, choose_combinations
from sundog.evaluation.total_variation import compute_total_variation, normalise

PAIRS, TRIPLES = 300, 50  # at most

METRICS = {
    "fidelity.tvd_1way": Metric(
        "Distance of columns",
        "low",
        "The share of rows that would have to change for a column to have the real distribution (mean over columns).",
        ideal=0.0,
    ),
    "fidelity.tvd_2way": Metric(
        "Distance of pairs",
        "low",
        "The share of rows that would have to change for two columns to have the real joint distribution "
        "(mean over pairs).",
        ideal=0.0,
    ),
    "fidelity.tvd_3way": Metric(
        "Distance of triples",
        "low",
        "The share of rows that would have to change for three columns to have the real joint distribution "
        "(mean over triples).",
        ideal=0.0,
    ),
}
FURTHEST = "fidelity.tvd_furthest_column"
FURTHEST_METRIC = Metric(
    "Distance of the furthest column",
    "low",
    "The share of rows that would have to change for the worst column to have the real distribution; the interval "
    "allows for the number of columns.",
    ideal=0.0,
)


@dataclass(frozen=True)
class Marginals:
    """The total variation distance of each measured marginal."""

    ways: Sequence[Mapping[ColumnNames, Distance]]

    @property
    def columns(self) -> Measures:
        """The distance of each column."""
        return {name: distance.measure() for (name,), distance in self.ways[0].items()}

    @property
    def pairs(self) -> Mapping[ColumnNames, Distance]:
        """The distance of each pair."""
        return self.ways[1]

    @property
    def measures(self) -> Measures:
        """The means; a table of one column has no pairs."""
        means = {name: Distance.mean(way.values()) for name, way in zip(METRICS, self.ways, strict=True)}
        found = {name: distance.measure() for name, distance in means.items() if distance is not None}
        return {**found, FURTHEST: find_furthest(self._together)}

    @property
    def _together(self) -> Measures:
        """The distance of each column, with simultaneous intervals."""
        columns = self.ways[0]
        return {name: each.measure(z=compute_bonferroni_quantile(len(columns))) for (name,), each in columns.items()}

    @property
    def details(self) -> dict[str, Any]:
        """All distances, for machines."""
        names = ("tvd_columns", "tvd_pairs", "tvd_triples")
        found: dict[str, Any] = {
            name: [{"columns": list(columns), **distance.measure().to_dict()} for columns, distance in way.items()]
            for name, way in zip(names, self.ways, strict=True)
        }
        return {**found, "tvd_columns_together": {name: each.to_dict() for name, each in self._together.items()}}


def find_furthest(together: Measures) -> Measure:
    """Return the largest of several distances with simultaneous intervals.

    >>> find_furthest({"age": Measure(0.2, 0.1, 0.3), "sex": Measure(0.1, 0.0, 0.4)})
    Measure(value=0.2, low=0.1, high=0.4)
    """
    value, low, high = (
        max((getattr(each, end) for each in together.values()), default=math.nan) for end in ("value", "low", "high")
    )
    return Measure(value, low, high)


def measure_marginals(tables: TablePair, comparison: Comparison) -> Marginals:
    """Measure the distances of all columns, pairs and triples, or of random ones where there are too many."""
    names = list(tables.columns)
    looked_at: list[list[ColumnNames]] = [
        [(name,) for name in names],
        choose_combinations(names, 2, PAIRS, comparison.make_rng("fidelity pairs")),
        choose_combinations(names, 3, TRIPLES, comparison.make_rng("fidelity triples")),
    ]
    return Marginals(
        [
            {each: measure_distance(tables, number_cells(*(tables.bins[name] for name in each))) for each in way}
            for way in looked_at
        ]
    )


def number_cells(*labels: NDArray[Any]) -> Labels:
    """Return the cell of each row: the occupied cells of the product of some labels (0, 1, …) are numbered from 0.

    >>> number_cells(np.array([7, 7, 9]), np.array([0, 1, 0])).tolist()
    [0, 1, 2]
    """
    found = np.zeros(len(labels[0]), np.int64)
    for each in labels:
        found = pd.factorize(found * (int(each.max()) + 1) + each)[0].astype(np.int64)
    return found


def measure_distance(tables: TablePair, cell: Labels) -> Distance:
    """Return the total variation distance, given the cell of each row; rows in cell -1 are ignored.

    It is undefined (NaN) where a table has no other rows.
    """
    size = int(cell.max(initial=0)) + 1
    real, synthetic = (np.bincount(cells[cells >= 0], minlength=size) for cells in tables.split(cell))
    # Cells that only one table fills may share a number: their differences have the same sign.
    both = (real > 0) & (synthetic > 0)
    number = np.where(both, np.cumsum(both) + 1, np.where(real > 0, 0, 1))
    numbers = np.where(cell < 0, -1, number[cell])
    shares = (normalise(counts) for counts in tables.sum_labels(numbers, int(number.max()) + 1))
    return Distance(compute_total_variation(*shares), estimate_chance_distance(real, synthetic))


def estimate_chance_distance(real: NDArray[Any], synthetic: NDArray[Any]) -> float:
    """Return how much noise may have added to the total variation distance of two samples, from counts by cell.

    If both samples come from one distribution, the difference of the shares of a cell has the standard error √(rows in
    it / (real rows · synthetic rows)), for any number of rows in the cell. Where a difference is significant, noise
    does not change its sign, and cancels.

    >>> estimate_chance_distance(np.array([50, 50]), np.array([50, 50]))
    0.1
    >>> estimate_chance_distance(np.array([100, 0]), np.array([0, 100]))
    0.0
    """
    rows, other = max(1, real.sum()), max(1, synthetic.sum())
    error = np.sqrt((real + synthetic) / (rows * other))
    return float(error[np.abs(real / rows - synthetic / other) < Z * error].sum() / 2)
