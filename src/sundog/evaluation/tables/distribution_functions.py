"""Empirical distribution functions of a numeric column in both tables."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sundog.evaluation.bootstrap import Floats
from sundog.evaluation.tables.distance import Distance
from sundog.evaluation.tables.table_pair import TablePair
from sundog.evaluation.total_variation import divide

PLACES = 1000  # the most points where resamples are evaluated; the data itself is evaluated everywhere
WIDEST = math.sqrt(math.pi / 2) * math.log(2)  # the mean of Kolmogorov's distribution, the effect of chance


@dataclass(frozen=True, eq=False)
class DistributionFunctions:
    """The non-null values of a column in both tables, and the distance of their distribution functions.

    Args:
        real: the real values, scaled to the declared range.
        synthetic: the synthetic ones.
        places: points of evaluation, ascending.
        gaps: (estimates, places) the gaps between the distribution functions there.
    """

    real: Floats
    synthetic: Floats
    places: Floats
    gaps: Floats

    @classmethod
    def of(cls, tables: TablePair, name: str) -> DistributionFunctions | None:
        """Build the functions of a column; None where a table has no values in it."""
        values = tables.scale(name)
        real, synthetic = (side[np.isfinite(side)] for side in tables.split(values))
        if not len(real) or not len(synthetic):
            return None
        distinct = np.unique(values[np.isfinite(values)])
        places = distinct[np.linspace(0, len(distinct) - 1, min(len(distinct), PLACES)).astype(np.int64)]
        label = np.where(np.isfinite(values), np.searchsorted(places, values), -1)
        below = [np.cumsum(counts, axis=1) for counts in tables.sum_labels(label, len(places))]
        functions = [divide(each, each[:, -1:]) for each in below]
        return cls(real, synthetic, places, np.abs(functions[0] - functions[1]))

    @property
    def kolmogorov(self) -> Distance:
        """The Kolmogorov–Smirnov statistic: the largest gap."""
        everywhere = np.concatenate([self.real, self.synthetic])
        real, synthetic = (
            np.searchsorted(np.sort(side), everywhere, side="right") / len(side) for side in (self.real, self.synthetic)
        )
        widest: Floats = self.gaps.max(axis=1)
        widest[0] = np.abs(real - synthetic).max()
        return Distance(widest, WIDEST * math.sqrt(1 / len(self.real) + 1 / len(self.synthetic)))

    @property
    def wasserstein(self) -> Floats:
        """Estimates of the Wasserstein distance: the area between the functions."""
        from scipy.stats import wasserstein_distance

        area = self.gaps[:, :-1] @ np.diff(self.places)
        area[0] = wasserstein_distance(self.real, self.synthetic)
        return area


def build_distribution_functions(tables: TablePair) -> dict[str, DistributionFunctions]:
    """Build the functions of all numeric columns with values in both tables."""
    found = {name: DistributionFunctions.of(tables, name) for name in tables.numeric}
    return {name: curves for name, curves in found.items() if curves is not None}
