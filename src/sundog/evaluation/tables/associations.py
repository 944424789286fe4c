"""Associations: how strongly two columns depend on each other in each table, and the error of that.

Two numeric columns: Pearson's correlation. Two categorical ones: Cramér's V with Bergsma's bias correction (J. Korean
Stat. Soc. 2013), so that independent columns have 0 for any number of categories. One of each: the correlation ratio η.
Rows with a missing value are ignored. A constant column has association 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from sundog.evaluation.bootstrap import Blocks, Floats, Labels
from sundog.evaluation.measure import Measure, Measures, Metric
from sundog.evaluation.tables.distance import Distance
from sundog.evaluation.tables.table_pair import ColumnNames, TablePair

CONSTANT = 1e-9  # a smaller share of the sum of squares is rounding

METRICS = {
    "fidelity.association_error": Metric(
        "Error of associations",
        "low",
        "The error of the strength of association between two columns (mean over pairs of the difference of "
        "correlations; for two categorical columns of bias-corrected Cramér's V).",
        ideal=0.0,
    ),
}


@dataclass(frozen=True)
class Associations:
    """The associations of every pair in both tables.

    Args:
        names: the columns of both matrices.
        real: a symmetric matrix with ones on its diagonal.
        synthetic: the same for the synthetic table.
        error: the mean absolute difference over pairs; None where there is no pair.
        correlations: estimates of both tables for the resampled pairs of numeric columns; NaN if constant.
    """

    names: list[str]
    real: Floats
    synthetic: Floats
    error: Measure | None
    correlations: Mapping[ColumnNames, tuple[Floats, Floats]]

    @property
    def measures(self) -> Measures:
        """The error, if there is a pair."""
        return {} if self.error is None else {"fidelity.association_error": self.error}

    @property
    def details(self) -> dict[str, Any]:
        """Both matrices, for machines."""
        return {
            "associations": {
                "columns": self.names,
                "real": self.real.round(6).tolist(),
                "synthetic": self.synthetic.round(6).tolist(),
            }
        }


def measure_associations(tables: TablePair, pairs: list[ColumnNames]) -> Associations:
    """Measure the associations of all pairs; the given ones are also resampled, for the interval."""
    names = list(tables.columns)
    sides = [_TableSide(tables, place) for place in (0, 1)]
    real, synthetic = (side.build_matrix(names) for side in sides)
    resampled = {pair: (sides[0].estimate(pair), sides[1].estimate(pair)) for pair in pairs}
    return Associations(
        names,
        real,
        synthetic,
        error=_measure_error(real, synthetic, list(resampled.values())) if pairs else None,
        correlations={pair: both for pair, both in resampled.items() if set(pair) <= set(tables.numeric)},
    )


def _measure_error(real: Floats, synthetic: Floats, resampled: list[tuple[Floats, Floats]]) -> Measure:
    upper = np.triu_indices(len(real), 1)
    differences = [Distance.between(np.nan_to_num(one), np.nan_to_num(other)) for one, other in resampled]
    estimates = np.mean([each.estimates for each in differences], axis=0)
    estimates[0] = np.abs(real - synthetic)[upper].mean()  # over all pairs, not only the resampled ones
    return Distance(estimates, float(np.mean([each.by_chance for each in differences]))).measure(highest=2.0)


class _TableSide:
    """One of the two tables."""

    def __init__(self, tables: TablePair, place: int) -> None:
        self.blocks = (tables.real, tables.synthetic)[place]
        self.labels = {name: tables.split(labels)[place] for name, labels in tables.labels.items()}
        self.numbers = {name: _subtract_median(tables.split(values)[place]) for name, values in tables.offsets.items()}

    def build_matrix(self, names: list[str]) -> Floats:
        """Return the associations of all pairs, without resamples."""
        whole = Blocks.whole(len(self.blocks.of_row))
        found = np.eye(len(names))
        for (row, first), (column, second) in combinations(enumerate(names), 2):
            found[row, column] = found[column, row] = np.nan_to_num(self.estimate((first, second), whole)[0])
        return found

    def estimate(self, pair: ColumnNames, blocks: Blocks | None = None) -> Floats:
        """Return estimates of the association of two columns; NaN where one of them is constant."""
        first, second = pair
        blocks = blocks or self.blocks
        if first in self.numbers and second in self.numbers:
            return estimate_pearson(blocks, self.numbers[first], self.numbers[second])
        if first in self.labels and second in self.labels:
            return estimate_cramers_v(blocks, self.labels[first], self.labels[second])
        label, number = (first, second) if first in self.labels else (second, first)
        return estimate_correlation_ratio(blocks, self.labels[label], self.numbers[number])


def _subtract_median(values: Floats) -> Floats:
    """Subtract the median, which limits rounding errors; constant columns become exactly zero."""
    known = values[np.isfinite(values)]
    return values - np.median(known) if len(known) else values


def estimate_pearson(blocks: Blocks, x: Floats, y: Floats) -> Floats:
    """Return estimates of Pearson's correlation of two columns centred at their medians."""
    label = np.where(np.isfinite(x) & np.isfinite(y), 0, -1)
    count, sum_x, sum_y, sum_xx, sum_yy, sum_xy = (
        blocks.sum_labels(label, 1, values)[:, 0] for values in (None, x, y, x * x, y * y, x * y)
    )
    spread = np.sqrt(_sum_squares(count, sum_x, sum_xx) * _sum_squares(count, sum_y, sum_yy))
    return np.clip((sum_xy - sum_x * sum_y / np.maximum(count, 1)) / spread, -1, 1)


def estimate_correlation_ratio(blocks: Blocks, category: Labels, x: Floats) -> Floats:
    """Return estimates of η, the root of the share of variance of a centred column between categories."""
    label = np.where(np.isfinite(x), category, -1)
    size = int(label.max(initial=0)) + 1
    counts, sums = blocks.sum_labels(label, size), blocks.sum_labels(label, size, x)
    count, sum_x = counts.sum(axis=1), sums.sum(axis=1)
    total = _sum_squares(count, sum_x, blocks.sum_labels(np.minimum(label, 0), 1, x * x)[:, 0])
    between = (sums**2 / np.maximum(counts, 1)).sum(axis=1) - sum_x**2 / np.maximum(count, 1)
    return np.asarray(np.sqrt(np.clip(between / total, 0, 1)))


def estimate_cramers_v(blocks: Blocks, a: Labels, b: Labels) -> Floats:
    """Return estimates of Cramér's V of two columns of labels, with Bergsma's correction."""
    known = (a >= 0) & (b >= 0)
    width = int(b.max(initial=0)) + 1
    cell, occupied = pd.factorize(np.where(known, a * width + b, np.nan))
    row, column = np.divmod(np.asarray(occupied, np.int64), width)
    joint = blocks.sum_labels(cell, len(occupied))  # empty cells add nothing to the sum below
    rows = blocks.sum_labels(np.where(known, a, -1), int(a.max(initial=0)) + 1)
    columns = blocks.sum_labels(np.where(known, b, -1), width)
    count = joint.sum(axis=1)
    phi = (joint**2 / np.maximum(rows[:, row] * columns[:, column], 1)).sum(axis=1) - 1
    spare = np.maximum(count - 1, 1)
    height, breadth = (rows > 0).sum(axis=1), (columns > 0).sum(axis=1)
    unbiased = np.maximum(phi - (height - 1) * (breadth - 1) / spare, 0)
    most = np.minimum(height - (height - 1) ** 2 / spare, breadth - (breadth - 1) ** 2 / spare) - 1
    return np.asarray(np.sqrt(np.minimum(unbiased / np.where(most > 0, most, np.nan), 1)))


def _sum_squares(count: Floats, total: Floats, squares: Floats) -> Floats:
    """Return the sum of squares about the mean; NaN where all values are equal, or there are none."""
    spread = squares - total**2 / np.maximum(count, 1)
    return np.where(spread > CONSTANT * squares, spread, np.nan)
