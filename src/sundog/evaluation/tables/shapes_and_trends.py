"""Shapes and trends: the scores between 0 and 1 of SDMetrics' quality report.

A numeric column scores 1 - the Kolmogorov–Smirnov statistic, any other 1 - the total variation distance of its
categories; nulls are ignored. A pair of numeric columns scores 1 - half the difference of their correlations, any other
1 - the total variation distance of the joint table, where null is a category and a numeric column is cut into ten bins
of equal width between the minimum and maximum real value (values beyond have bins of their own). All pairs count,
however weak their association; pairs with a constant numeric column have no correlation and are ignored. The overall
quality is the mean of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sundog.evaluation.bootstrap import Labels, get_value
from sundog.evaluation.measure import Measures, Metric
from sundog.evaluation.tables.associations import Associations
from sundog.evaluation.tables.distance import Distance
from sundog.evaluation.tables.distribution_functions import DistributionFunctions
from sundog.evaluation.tables.marginal_distances import Marginals, measure_distance, number_cells
from sundog.evaluation.tables.table_pair import ColumnNames, TablePair

BINS = 10

METRICS = {
    "fidelity.column_shapes": Metric(
        "Column shapes",
        "high",
        "The similarity of the distributions of single columns (mean over columns; as SDMetrics defines it).",
        ideal=1.0,
    ),
    "fidelity.column_pair_trends": Metric(
        "Column pair trends",
        "high",
        "The similarity of the relations between two columns (mean over pairs; as SDMetrics defined it, whose newer "
        "versions leave out weakly related pairs).",
        ideal=1.0,
    ),
    "fidelity.quality": Metric(
        "Overall quality",
        "high",
        "The mean of column shapes and column pair trends (the overall score of SDMetrics, over all pairs).",
        ideal=1.0,
    ),
}


@dataclass(frozen=True)
class ShapesAndTrends:
    """The scores of each column and each pair, as distances (1 - score)."""

    shapes: Mapping[str, Distance]
    trends: Mapping[ColumnNames, Distance]

    @property
    def measures(self) -> Measures:
        """The means, and the mean of both; undefined ones are left out."""
        shapes, trends = Distance.mean(self.shapes.values()), Distance.mean(self.trends.values())
        quality = Distance.mean([each for each in (shapes, trends) if each is not None])
        found = dict(zip(METRICS, (shapes, trends, quality), strict=True))
        return {name: distance.measure_similarity() for name, distance in found.items() if distance is not None}

    @property
    def details(self) -> dict[str, Any]:
        """All scores, for machines; null where undefined."""
        return {
            "column_shapes": {name: get_value(1 - shape.estimates) for name, shape in self.shapes.items()},
            "column_pair_trends": [
                {"columns": list(pair), "score": get_value(1 - trend.estimates)} for pair, trend in self.trends.items()
            ],
        }


def score_shapes_and_trends(
    tables: TablePair, marginals: Marginals, associations: Associations, curves: Mapping[str, DistributionFunctions]
) -> ShapesAndTrends:
    """Score all columns, and the pairs whose marginals were measured."""
    cut = {name: _bin_values(tables, name) for name in tables.numeric} if tables.categorical else {}
    trends = {}
    for pair in marginals.pairs:
        if pair in associations.correlations:
            real, synthetic = associations.correlations[pair]
            trends[pair] = Distance.between(real / 2, synthetic / 2)
        elif set(pair) <= set(tables.categorical):
            trends[pair] = marginals.pairs[pair]
        else:
            trends[pair] = measure_distance(tables, number_cells(*(cut.get(name, tables.bins[name]) for name in pair)))
    return ShapesAndTrends({name: _measure_shape(tables, name, curves) for name in tables.columns}, trends)


def _measure_shape(tables: TablePair, name: str, curves: Mapping[str, DistributionFunctions]) -> Distance:
    """Return the distance of a column: 1 where all synthetic values are missing, undefined where all real ones are."""
    if name in curves:
        return curves[name].kolmogorov
    if name in tables.categorical:
        shape = measure_distance(tables, tables.labels[name])
        if np.isfinite(shape.estimates[0]):
            return shape
    known, _ = tables.split(~tables.missing[name])
    return Distance(np.full(len(tables.real.weights), 1.0 if known.any() else np.nan), by_chance=0.0)


def _bin_values(tables: TablePair, name: str) -> Labels:
    """Return the bin of each value as in SDMetrics: the maximum real value starts the last bin; nulls have a bin."""
    values = tables.offsets[name]
    known, _ = tables.split(values)
    known = known[np.isfinite(known)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
    room = 0.5 if low == high else 0.0  # around a constant, as in `np.histogram`
    found = np.digitize(values, np.linspace(low - room, high + room, BINS + 1))
    return np.where(np.isfinite(values), found, BINS + 2)
