"""Shapes and trends: scores between 0 and 1 with the meaning that they have in SDMetrics' quality report.

A numeric column has 1 - the Kolmogorov–Smirnov statistic, any other 1 - the total variation distance of its
categories; nulls are left out. A pair of numeric columns has 1 - half the difference of their correlations, any other
1 - the total variation distance of the joint table, where null is a category and a numeric column is cut into ten bins
of equal width between the least and the greatest real value (what is beyond has bins of its own). All pairs count,
however weak their relation is; those with a constant numeric column have no correlation, and are left out. The overall
quality is the mean of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sundog.evaluate.measure import Measures, Metric
from sundog.evaluate.tables.associations import Associations
from sundog.evaluate.tables.blocks import Floats, Labels, mean, measured, plain
from sundog.evaluate.tables.curves import Curves
from sundog.evaluate.tables.marginals import Marginals, cells, distance, variation
from sundog.evaluate.tables.table import Columns, Tables

BINS = 10

METRICS = {
    "fidelity.column_shapes": Metric(
        "Column shapes",
        "high",
        "How alike the distributions of single columns are (mean over columns; the score of that name in SDMetrics).",
    ),
    "fidelity.column_pair_trends": Metric(
        "Column pair trends",
        "high",
        "How alike the relations between two columns are (mean over pairs; the score of that name in SDMetrics).",
    ),
    "fidelity.quality": Metric(
        "Overall quality",
        "high",
        "The mean of column shapes and column pair trends (the overall score of SDMetrics).",
    ),
}


@dataclass(frozen=True)
class Scores:
    """Estimates of the score of each column and of each pair."""

    shapes: Mapping[str, Floats]
    trends: Mapping[Columns, Floats]

    @property
    def measures(self) -> Measures:
        """The means, and the mean of them; those that nothing is known of are left out."""
        shapes, trends = mean(list(self.shapes.values())), mean(list(self.trends.values()))
        quality = mean([each for each in (shapes, trends) if each is not None])
        found = dict(zip(METRICS, (shapes, trends, quality), strict=True))
        return {name: measured(estimates) for name, estimates in found.items() if estimates is not None}

    @property
    def details(self) -> dict[str, Any]:
        """All scores, for machines; null where a score is not defined."""
        return {
            "column_shapes": {name: plain(score) for name, score in self.shapes.items()},
            "column_pair_trends": [
                {"columns": list(pair), "score": plain(score)} for pair, score in self.trends.items()
            ],
        }


def scores(tables: Tables, marginals: Marginals, associations: Associations, curves: Mapping[str, Curves]) -> Scores:
    """The scores of all columns, and of the pairs whose marginals were looked at."""
    cut = {name: _cut(tables, name) for name in tables.numeric} if tables.categorical else {}
    trends = {}
    for pair in marginals.pairs:
        if pair in associations.correlations:
            real, synthetic = associations.correlations[pair]
            trends[pair] = 1 - np.abs(real - synthetic) / 2
        elif set(pair) <= set(tables.categorical):
            trends[pair] = 1 - marginals.pairs[pair]
        else:
            trends[pair] = 1 - distance(tables, cells(*(cut.get(name, tables.bins[name]) for name in pair)))
    return Scores({name: _shape(tables, name, curves) for name in tables.columns}, trends)


def _shape(tables: Tables, name: str, curves: Mapping[str, Curves]) -> Floats:
    """The score of a column. Where all synthetic values are missing it is 0; where all real ones are, there is none."""
    if name in curves:
        return 1 - curves[name].kolmogorov
    if name in tables.categorical:
        labels = tables.labels[name]
        score = 1 - variation(*tables.sums(labels, int(labels.max(initial=0)) + 1))
        if np.isfinite(score[0]):
            return score
    known, _ = tables.split(~tables.missing[name])
    return np.zeros(len(tables.real.weights)) if known.any() else np.full(len(tables.real.weights), np.nan)


def _cut(tables: Tables, name: str) -> Labels:
    """The bin of each value, as SDMetrics has it: the greatest real value begins the last one; null has its own."""
    values = tables.offsets[name]
    known, _ = tables.split(values)
    known = known[np.isfinite(known)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
    room = 0.5 if low == high else 0.0  # around a constant, as in `np.histogram`
    found = np.digitize(values, np.linspace(low - room, high + room, BINS + 1))
    return np.where(np.isfinite(values), found, BINS + 2)
