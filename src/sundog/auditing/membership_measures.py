"""How well scores distinguish members from non-members: rates, accuracy, area and advantage, each with an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sundog.evaluation.measure import Measure, Metric, combine
from sundog.evaluation.prediction.roc import Ranking

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
TOP = 100  # candidates
_CONFIDENCE = 0.95
_POINTS = 400  # of a curve
_UNKNOWN = Measure(float("nan"), -1.0, 1.0)

METRICS = {
    **{
        f"tpr_at_{rate:g}": Metric(
            f"True positive rate at {rate:.1%} false positives",
            "low",
            f"The share of members above the score that at most {rate:.1%} of the non-members exceed; an attacker who "
            "guesses at random has the same share of both. The interval is exact for this score (Clopper and Pearson).",
        )
        for rate in FALSE_POSITIVE_RATES
    },
    "top_accuracy": Metric(
        f"Accuracy of the top {TOP}",
        "low",
        f"The share of members among the {TOP} candidates with the highest scores, with an exact interval (Clopper and "
        "Pearson); at random it is the share of members among all.",
    ),
    "auc": Metric(
        "Area under the curve",
        "low",
        "The probability that a random member scores higher than a random non-member: ½ at random. The interval is "
        "that of Hanley and McNeil, inverted.",
        ideal=0.5,
    ),
    "advantage": Metric(
        "Advantage",
        "low",
        "The true minus the false positive rate. The score that separates best is chosen on one half of the candidates "
        "and measured on the other.",
        ideal=0.0,
    ),
}


@dataclass(frozen=True)
class MembershipMeasures:
    """The measures of one attack.

    Args:
        measures: by the names in `METRICS`.
        curve: false and true positive rates, from (0, 0) to (1, 1).
    """

    measures: dict[str, Measure]
    curve: dict[str, list[float]]


def measure_membership(scores: Floats, members: Booleans, rng: np.random.Generator) -> MembershipMeasures:
    """Return the measures of scores, of which none is NaN.

    >>> found = measure_membership(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, True, False, False]),
    ...                            np.random.default_rng(0))
    >>> found.measures["auc"].value, found.measures["tpr_at_0.1"].value
    (1.0, 1.0)

    Args:
        scores: one for each candidate.
        members: which candidates are members.
        rng: breaks ties, and divides the candidates into halves.
    """
    if members.all() or not members.any():  # nothing to compare, as with a handful of rare candidates
        return MembershipMeasures(dict.fromkeys(METRICS, _UNKNOWN), {"fpr": [0.0, 1.0], "tpr": [0.0, 1.0]})
    positives, negatives, curve = trace_rates(scores, members)
    found = {
        f"tpr_at_{rate:g}": measure_exactly(
            int(positives[np.searchsorted(negatives, rate * negatives[-1], side="right") - 1]), int(positives[-1])
        )
        for rate in FALSE_POSITIVE_RATES
    }
    found["top_accuracy"] = _measure_top(scores, members, rng)
    found["auc"] = Ranking(scores, members).measure_area()
    found["advantage"] = _measure_advantage(scores, members, rng)
    return MembershipMeasures(found, curve)


def trace_rates(scores: Floats, members: Booleans) -> tuple[Floats, Floats, dict[str, list[float]]]:
    """Return the numbers of members and of non-members above each threshold, from none to all, and the curve."""
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    positives = np.append(0.0, np.cumsum(members[order])[ends])
    negatives = np.append(0.0, np.cumsum(~members[order])[ends])
    last = max(negatives[-1], 1.0)
    spread = np.append(np.linspace(0, 1, _POINTS // 2), np.geomspace(1 / last, 1, _POINTS // 2))
    kept = np.unique(np.append(0, np.searchsorted(negatives / last, spread, side="right") - 1))
    rates = {"fpr": (negatives[kept] / last).tolist(), "tpr": (positives[kept] / max(positives[-1], 1.0)).tolist()}
    return positives, negatives, rates


def measure_exactly(successes: int, trials: int) -> Measure:
    """Return a proportion with its exact interval of 95% (Clopper and Pearson 1934).

    >>> found = measure_exactly(0, 10)
    >>> found.low, round(found.high, 3)
    (0.0, 0.308)
    """
    from scipy.stats import beta

    if trials == 0:
        return Measure(float("nan"), 0.0, 1.0)
    tail = (1 - _CONFIDENCE) / 2
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1 - tail, successes + 1, trials - successes))
    return Measure(successes / trials, low, high)


def _measure_top(scores: Floats, members: Booleans, rng: np.random.Generator) -> Measure:
    shuffled = rng.permutation(len(scores))  # so that ties are broken at random
    top = shuffled[np.argsort(-scores[shuffled], kind="stable")[:TOP]]
    return measure_exactly(int(members[top].sum()), len(top))


def _measure_advantage(scores: Floats, members: Booleans, rng: np.random.Generator) -> Measure:
    """Choose a threshold on one half of the candidates, and return the advantage on the other."""
    half = rng.permutation(len(scores)) < len(scores) // 2
    if not (members[half].any() and (~members[half]).any()):
        return Measure(float("nan"), -1.0, 1.0)
    thresholds = np.unique(scores[half])[::-1]
    positives, negatives, _ = trace_rates(scores[half], members[half])
    gains = positives[1:] / positives[-1] - negatives[1:] / negatives[-1]
    threshold = thresholds[int(gains.argmax())]
    above, truth = scores[~half] >= threshold, members[~half]
    true = measure_exactly(int((above & truth).sum()), int(truth.sum()))
    false = measure_exactly(int((above & ~truth).sum()), int((~truth).sum()))
    return combine((1, true), (-1, false))
