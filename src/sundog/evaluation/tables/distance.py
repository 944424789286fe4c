"""Distances between two tables, with intervals that allow for what sampling adds to a distance."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from sundog.evaluation.bootstrap import Floats, average_estimates, compute_error, measure_estimates
from sundog.evaluation.measure import Measure, Z


@dataclass(frozen=True, eq=False)
class Distance:
    """Estimates of a distance, and how much of it sampling alone may have added.

    The distance of two samples is biased upwards: noise has no sign in it and does not cancel, so two samples of one
    distribution are apart, too. The interval therefore reaches further down than up, by what noise may have added;
    that of 1 - distance reaches further up.

    >>> Distance(np.array([0.5, 0.4, 0.6, 0.5]), by_chance=0.1).measure()
    Measure(value=0.5, low=0.20400..., high=0.69599...)
    """

    estimates: Floats
    by_chance: float

    def measure(self, *, highest: float = 1.0, z: float = Z) -> Measure:
        """Return the distance with its interval, of 95% unless another normal quantile is given."""
        found = measure_estimates(self.estimates, lowest=-np.inf, highest=highest, z=z)
        return Measure(found.value, min(found.value, max(0.0, found.low - self.by_chance)), found.high)

    def measure_similarity(self) -> Measure:
        """Return 1 - distance with its interval."""
        found = self.measure()
        return Measure(1 - found.value, 1 - found.high, 1 - found.low)

    @classmethod
    def mean(cls, distances: Collection[Distance]) -> Distance | None:
        """Return the mean of the defined distances; None where none is."""
        estimates = average_estimates([each.estimates for each in distances])
        if estimates is None:
            return None
        return cls(estimates, float(np.mean([each.by_chance for each in distances if np.isfinite(each.estimates[0])])))

    @classmethod
    def between(cls, real: Floats, synthetic: Floats) -> Distance:
        """Return the absolute difference of one statistic of two tables."""
        differences = real - synthetic
        error = compute_error(differences)
        return cls(np.abs(differences), error if abs(differences[0]) < Z * error else 0.0)
