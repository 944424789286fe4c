"""Receiver operating characteristics: the area under the curve, fast enough for a bootstrap, and the curve itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

POINTS = 200  # of a curve that is drawn


class Ranking:
    """Records in the order of their scores, sorted once and then weighed as often as needed.

    >>> ranking = Ranking([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    >>> ranking.area()
    0.75
    >>> ranking.area(np.array([1, 0, 1, 1]))
    1.0
    """

    def __init__(self, scores: ArrayLike, positive: ArrayLike) -> None:
        """Takes a score for each record, and whether it is one of those that should have high scores."""
        scores = np.asarray(scores)
        self._order = np.argsort(-scores, kind="stable")
        self._positive = np.asarray(positive, bool)[self._order]
        ordered = scores[self._order]
        self._starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))  # of equal scores

    def area(self, weights: NDArray[Any] | None = None) -> float:
        """How often a positive record beats a negative one, a tie counting half; NaN where one kind is missing."""
        positive, negative = self._totals(weights)
        pairs = positive.sum() * negative.sum()
        if not pairs:
            return float("nan")
        beaten = negative.sum() - np.cumsum(negative) + negative / 2
        return float((positive * beaten).sum() / pairs)

    def curve(self) -> dict[str, list[float]]:
        """False and true positive rates from (0, 0) to (1, 1), at most `POINTS` of them, evenly spread."""
        rates = [np.append(0.0, np.cumsum(total) / total.sum()) for total in self._totals(None)]
        along = (rates[0] + rates[1]).searchsorted(np.linspace(0.0, 2.0, POINTS))
        kept = np.unique(np.append(0, along.clip(max=len(rates[0]) - 1)))
        kept = kept if len(kept) <= POINTS else kept[::2]
        return {"fpr": rates[1][kept].tolist(), "tpr": rates[0][kept].tolist()}

    def _totals(self, weights: NDArray[Any] | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The weight of positive and of negative records at each distinct score, the highest first."""
        ordered = np.ones(len(self._order)) if weights is None else np.asarray(weights, float)[self._order]
        positive = np.add.reduceat(ordered * self._positive, self._starts)
        return positive, np.add.reduceat(ordered, self._starts) - positive
