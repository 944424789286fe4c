"""Wasserstein distances: how far values would have to move, as a share of the declared range.

For one column the distance is exact. Several columns together are projected onto random directions, where the distance
is that of one column again: the sliced distance is the mean over directions (Bonneel et al., J. Math. Imaging Vis.
2015).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sundog.evaluation.bootstrap import Blocks, Floats, average_estimates, get_value, measure_estimates
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.measure import Measures, Metric
from sundog.evaluation.tables.distribution_functions import DistributionFunctions
from sundog.evaluation.tables.table_pair import TablePair

DIRECTIONS, ROWS, PLACES = 128, 20_000, 256

METRICS = {
    "fidelity.wasserstein_1d": Metric(
        "Wasserstein distance of columns",
        "low",
        "How far the values of a numeric column would have to move to be distributed as the real ones, as a share of "
        "the declared range (mean over columns).",
        ideal=0.0,
    ),
    "fidelity.wasserstein_sliced": Metric(
        "Sliced Wasserstein distance",
        "low",
        "The same for all numeric columns jointly, projected onto random directions (mean over directions).",
        ideal=0.0,
    ),
}


@dataclass(frozen=True)
class WassersteinDistances:
    """Estimates of the distance of each numeric column, and of all of them together."""

    columns: dict[str, Floats]
    sliced: Floats | None

    @property
    def measures(self) -> Measures:
        """The measures that are defined."""
        found = dict(zip(METRICS, (average_estimates(list(self.columns.values())), self.sliced), strict=True))
        return {
            name: measure_estimates(estimates, highest=np.inf)
            for name, estimates in found.items()
            if estimates is not None
        }

    @property
    def details(self) -> dict[str, Any]:
        """The distances by column, for machines."""
        return {"wasserstein_1d": {name: get_value(estimates) for name, estimates in self.columns.items()}}


def measure_wasserstein_distances(
    tables: TablePair, curves: Mapping[str, DistributionFunctions], comparison: Comparison
) -> WassersteinDistances:
    """Measure the distance of each numeric column with values in both tables, and of all of them together."""
    columns = {name: each.wasserstein for name, each in curves.items()}
    if len(tables.numeric) < 2:
        return WassersteinDistances(columns, None)
    points = np.column_stack([tables.scale(name) for name in tables.numeric])
    # Both use the same random numbers, so that equal tables give equal rows.
    real, synthetic = (
        _choose_points(side, comparison.make_rng("fidelity sliced rows")) for side in tables.split(points)
    )
    if not len(real) or not len(synthetic):
        return WassersteinDistances(columns, None)
    return WassersteinDistances(
        columns, estimate_sliced_distance(real, synthetic, comparison.make_rng("fidelity directions"))
    )


def _choose_points(points: Floats, rng: np.random.Generator) -> Floats:
    """Return the complete rows, or a random subset of them."""
    complete = points[np.isfinite(points).all(axis=1)]
    return complete if len(complete) <= ROWS else complete[rng.choice(len(complete), ROWS, replace=False)]


def estimate_sliced_distance(real: Floats, synthetic: Floats, rng: np.random.Generator) -> Floats:
    """Return estimates of the sliced Wasserstein distance of two clouds of points, one point per row.

    >>> points = np.random.default_rng(0).random((50, 2))
    >>> float(estimate_sliced_distance(points, points, np.random.default_rng(0))[0])
    0.0
    """
    directions = rng.standard_normal((DIRECTIONS, real.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    slices = directions @ real.T, directions @ synthetic.T
    blocks = Blocks.deal(len(real), rng), Blocks.deal(len(synthetic), rng)
    estimates = _estimate_resampled(blocks, slices)
    count = max(len(real), len(synthetic))
    estimates[0] = np.abs(_take_quantiles(slices[0], count) - _take_quantiles(slices[1], count)).mean()
    return estimates


def _take_quantiles(slices: Floats, count: int) -> Floats:
    """Return `count` evenly spaced quantiles of each slice: its sorted values, if there are `count` of them."""
    size = slices.shape[1]
    return np.sort(slices, axis=1)[:, (2 * np.arange(count) + 1) * size // (2 * count)]


def _estimate_resampled(blocks: tuple[Blocks, Blocks], slices: tuple[Floats, Floats]) -> Floats:
    """Return estimates of the mean distance over directions, from counts in narrow bins."""
    low = np.minimum(*(each.min(axis=1) for each in slices))[:, None]
    width = (np.maximum(*(each.max(axis=1) for each in slices))[:, None] - low) / PLACES
    first = PLACES * np.arange(DIRECTIONS)[:, None]  # every direction has its own bins; all are counted at once
    below = []
    for side, values in zip(blocks, slices, strict=True):
        label = np.minimum((values - low) / np.where(width > 0, width, 1), PLACES - 1).astype(np.int64)
        counts = side.sum_labels(first + label, DIRECTIONS * PLACES).reshape(-1, DIRECTIONS, PLACES)
        below.append(np.cumsum(counts, axis=2) / counts.sum(axis=2, keepdims=True))
    area: Floats = (np.abs(below[0] - below[1]).sum(axis=2) * width[:, 0]).mean(axis=1)
    return area
