"""Coverage: whether the synthetic table covers the values of the real one and adds no others. Nulls are separate.

The range coverage of a numeric column is the share of the real range, from minimum to maximum, that the synthetic
values span (SDMetrics' RangeCoverage); undefined for a constant column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sundog.evaluation.bootstrap import Floats, average_estimates, get_value, measure_estimates
from sundog.evaluation.measure import Measures, Metric
from sundog.evaluation.tables.table_pair import TablePair
from sundog.evaluation.total_variation import divide

METRICS = {
    "fidelity.range_coverage": Metric(
        "Range coverage",
        "high",
        "The share of the real range, from minimum to maximum, that synthetic values span (mean over numeric columns).",
    ),
    "fidelity.category_coverage": Metric(
        "Category coverage",
        "high",
        "The share of the real categories that occur among the synthetic records (mean over columns).",
    ),
    "fidelity.category_adherence": Metric(
        "Category adherence",
        "high",
        "The share of synthetic values whose category occurs among the real records (mean over columns).",
    ),
    "fidelity.null_difference": Metric(
        "Difference of missing values",
        "low",
        "The error of the share of missing values (mean over nullable columns).",
        ideal=0.0,
    ),
}


@dataclass(frozen=True)
class Coverage:
    """Estimates by measure and column."""

    found: Mapping[str, Mapping[str, Floats]]

    @property
    def measures(self) -> Measures:
        """The means over columns, where there are columns of the kind."""
        means = {name: average_estimates(list(columns.values())) for name, columns in self.found.items()}
        return {name: measure_estimates(estimates) for name, estimates in means.items() if estimates is not None}

    @property
    def details(self) -> dict[str, Any]:
        """The values by column, for machines; null where undefined."""
        return {
            name.removeprefix("fidelity."): {column: get_value(estimates) for column, estimates in columns.items()}
            for name, columns in self.found.items()
        }


def measure_coverage(tables: TablePair) -> Coverage:
    """Measure the coverage of every column."""
    categories = {name: _compare_categories(tables, name) for name in tables.categorical}
    found = (
        {name: _compare_range(tables, name) for name in tables.numeric},
        {name: covered for name, (covered, _) in categories.items()},
        {name: adherent for name, (_, adherent) in categories.items()},
        {name: _compare_nulls(tables, name) for name in tables.missing},
    )
    return Coverage(dict(zip(METRICS, found, strict=True)))


def _compare_range(tables: TablePair, name: str) -> Floats:
    real, synthetic = tables.split(tables.offsets[name])
    (low, high), (lowest, highest) = tables.real.find_extremes(real), tables.synthetic.find_extremes(synthetic)
    length = np.where(high > low, high - low, np.nan)
    missed = np.maximum(lowest - low, 0) + np.maximum(high - highest, 0)
    missed = np.where(np.isnan(lowest), length, missed)  # a table without values covers nothing
    return np.maximum(1 - missed / length, 0)


def _compare_categories(tables: TablePair, name: str) -> tuple[Floats, Floats]:
    """Return coverage and adherence of a column."""
    labels = tables.labels[name]
    real, synthetic = tables.sum_labels(labels, int(labels.max(initial=0)) + 1)
    known = real > 0
    covered = divide((known & (synthetic > 0)).sum(axis=1), known.sum(axis=1))
    return covered, divide((synthetic * known).sum(axis=1), synthetic.sum(axis=1))


def _compare_nulls(tables: TablePair, name: str) -> Floats:
    shares = [
        counts[:, 1] / counts.sum(axis=1) for counts in tables.sum_labels(tables.missing[name].astype(np.int64), 2)
    ]
    return np.asarray(np.abs(shares[0] - shares[1]))
