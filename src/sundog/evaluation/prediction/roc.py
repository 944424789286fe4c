"""Receiver operating characteristics: the curve, and the area under it with its interval.

Resampling understates the uncertainty of an area with few records of a class: where all pairs are ranked correctly, no
resample differs. So the interval also covers an analytic one: all areas no further from the observed one than their own
standard error allows (Hanley and McNeil 1982, inverted and made symmetric by Newcombe 2006).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sundog.evaluation.bootstrap import bootstrap_rows
from sundog.evaluation.measure import Measure, Z, average_measures

POINTS = 200  # of a curve that is drawn


class Ranking:
    """Records sorted by score once, to be weighted as often as needed.

    >>> ranking = Ranking([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    >>> ranking.compute_area()
    0.75
    >>> ranking.compute_area(np.array([1, 0, 1, 1]))
    1.0
    """

    def __init__(self, scores: ArrayLike, positive: ArrayLike) -> None:
        """Take the score of each record, and whether it is positive, i.e. should score high."""
        scores = np.asarray(scores)
        self._order = np.argsort(-scores, kind="stable")
        self._positive = np.asarray(positive, bool)[self._order]
        ordered = scores[self._order]
        self._starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))  # of equal scores

    def compute_area(self, weights: NDArray[Any] | None = None) -> float:
        """Return the share of pairs in which the positive record outranks the negative one, ties counting half."""
        positive, negative = self._sum_weights(weights)
        pairs = positive.sum() * negative.sum()
        if not pairs:
            return float("nan")
        beaten = negative.sum() - np.cumsum(negative) + negative / 2
        return float((positive * beaten).sum() / pairs)

    def measure_area(self) -> Measure:
        """Return the area with its analytic interval, which depends on the number of records of each class only.

        >>> found = Ranking([1, 2, 3, 4, 5], [False, False, False, True, True]).measure_area()
        >>> round(found.low, 2), found.value, found.high
        (0.44, 1.0, 1.0)
        """
        positive, negative = (float(total.sum()) for total in self._sum_weights(None))
        area = self.compute_area()
        if not math.isfinite(area):
            return Measure(area, 0.0, 1.0)

        def compute_error(at: float) -> float:
            more = (positive + negative) / 2 - 1
            both = 1 + more * (1 - at) / (2 - at) + more * at / (1 + at)
            return math.sqrt(at * (1 - at) * both / (positive * negative))

        return Measure(area, *(_find_limit(area, end, compute_error) for end in (0.0, 1.0)))

    def trace_curve(self) -> dict[str, list[float]]:
        """Return false and true positive rates from (0, 0) to (1, 1), at most `POINTS`, evenly spread."""
        rates = [np.append(0.0, np.cumsum(total) / total.sum()) for total in self._sum_weights(None)]
        along = (rates[0] + rates[1]).searchsorted(np.linspace(0.0, 2.0, POINTS))
        kept = np.unique(np.append(0, along.clip(max=len(rates[0]) - 1)))
        kept = kept if len(kept) <= POINTS else kept[::2]
        return {"fpr": rates[1][kept].tolist(), "tpr": rates[0][kept].tolist()}

    def _sum_weights(self, weights: NDArray[Any] | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weight of positive and negative records at each distinct score, highest score first."""
        ordered = np.ones(len(self._order)) if weights is None else np.asarray(weights, float)[self._order]
        positive = np.add.reduceat(ordered * self._positive, self._starts)
        return positive, np.add.reduceat(ordered, self._starts) - positive


def measure_mean_area(rankings: Sequence[Ranking], kinds: NDArray[Any], rng: np.random.Generator) -> Measure:
    """Return the mean area of several rankings of the same records with its interval.

    Args:
        rankings: the rankings; those where a class is missing are ignored.
        kinds: the class of each record; records are resampled within classes.
        rng: draws the resamples.
    """
    rankings = [ranking for ranking in rankings if math.isfinite(ranking.compute_area())]
    if not rankings:
        return Measure(math.nan, 0.0, 1.0)

    def compute_area(rows: NDArray[np.int64]) -> float:
        weights = np.bincount(rows, minlength=len(kinds))
        return float(np.mean([ranking.compute_area(weights) for ranking in rankings]))

    resampled = bootstrap_rows(compute_area, len(kinds), rng, strata=kinds, lowest=0.0, highest=1.0)
    formula = average_measures([ranking.measure_area() for ranking in rankings])
    return Measure(resampled.value, min(resampled.low, formula.low), max(resampled.high, formula.high))


def _find_limit(area: float, end: float, compute_error: Callable[[float], float]) -> float:
    """Return the value furthest from the area, towards one end, that is within its own error of the area."""
    near, far = area, end
    for _ in range(50):
        middle = (near + far) / 2
        near, far = (middle, far) if abs(middle - area) <= Z * compute_error(middle) else (near, middle)
    return near
