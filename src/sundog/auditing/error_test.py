"""An exact test of a trade-off curve: can a mechanism with this guarantee have made the errors that were counted?

An attack gives each run a score, and guesses "the record was there" above a threshold. False alarms among the runs
without the record, and misses among those with it, are two independent binomial counts.

    for each rate α of false alarms that may be true:
        p₁ = P(so few false alarms | α),   p₂ = P(so few misses | f(α))         both exact
        p(α) = u·(1 − log u), where u = p₁·p₂                                   Fisher's combination of both
    p = the largest p(α)

If the guarantee holds, the true rates are some α and some β ≥ f(α); for these p₁ and p₂ are p-values and independent,
so p(α) is one, and p is no smaller (docs/audit_games.md). Thresholds are chosen on other runs than those that are
counted, and the smallest p of several thresholds and attacks is multiplied by their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from sundog.auditing.tradeoff_curve import TradeoffCurve

Floats = npt.NDArray[np.float64]

_CELLS = 256  # intervals of α at the start, and into which the undecided ones are cut
_PRECISE = 0.01  # of the logarithm of p₁·p₂
_ROUNDS = 30
_CANDIDATES = 200  # thresholds that are compared
_CAUTION = 0.95  # the confidence of the bounds by which thresholds are chosen


@dataclass(frozen=True)
class Errors:
    """How often a guess was wrong.

    Args:
        false_alarms: guesses that the record was there, in runs without it.
        absent: the number of runs without the record.
        misses: guesses that it was not there, in runs with it.
        present: the number of runs with the record.
    """

    false_alarms: int
    absent: int
    misses: int
    present: int


def count_errors(absent: Floats, present: Floats, threshold: float) -> Errors:
    """Count the errors of the guess that a record was there if the score is above a threshold.

    >>> count_errors(np.array([0.0, 1.0, 3.0]), np.array([2.0, 4.0]), 2.5)
    Errors(false_alarms=1, absent=3, misses=1, present=2)
    """
    return Errors(int((absent > threshold).sum()), len(absent), int((present <= threshold).sum()), len(present))


def compute_p_value(errors: Errors, curve: TradeoffCurve) -> float:
    """Return an upper bound on the probability of errors as rare as these, under the guarantee.

    >>> from sundog.auditing.tradeoff_curve import make_gaussian_curve
    >>> claim = make_gaussian_curve(1.0)
    >>> compute_p_value(Errors(31, 100, 31, 100), claim) > 0.5, compute_p_value(Errors(11, 100, 11, 100), claim) < 1e-9
    (True, True)

    Args:
        errors: counted at a threshold that does not depend on them.
        curve: the guarantee.
    """
    low = np.linspace(0, 1, _CELLS + 1)
    low, high = low[:-1], low[1:]
    best = -np.inf
    for _ in range(_ROUNDS):
        # p₁ falls with α and p₂ rises, so that the ends of an interval bound both
        upper = _take_log_p1(errors, low) + _take_log_p2(errors, curve(high))
        middle = (low + high) / 2
        best = max(best, float((_take_log_p1(errors, middle) + _take_log_p2(errors, curve(middle))).max()))
        most = float(upper.max())
        if not most > best + _PRECISE:  # also if both are minus infinity
            break
        undecided = upper > best + _PRECISE / 2
        parts = max(2, _CELLS // int(undecided.sum()))
        width = (high[undecided] - low[undecided]) / parts
        low = (low[undecided, None] + width[:, None] * np.arange(parts)).ravel()
        high = low + np.repeat(width, parts)
    return float(np.exp(most) * (1 - most)) if np.isfinite(most) else 0.0


def _take_log_p1(errors: Errors, alpha: Floats) -> Floats:
    return _take_log(special.bdtr(errors.false_alarms, errors.absent, np.clip(alpha, 0.0, 1.0)))


def _take_log_p2(errors: Errors, beta: Floats) -> Floats:
    return _take_log(special.bdtr(errors.misses, errors.present, np.clip(beta, 0.0, 1.0)))


def _take_log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def compute_corrected_p_value(found: Sequence[Errors], curve: TradeoffCurve) -> float:
    """Return the p-value of several thresholds and attacks together (Bonferroni)."""
    return min(1.0, len(found) * min(compute_p_value(errors, curve) for errors in found))


# --- thresholds --------------------------------------------------------------------------------------------------


def choose_thresholds(absent: Floats, present: Floats) -> list[float]:
    """Return one or two thresholds: the one that promises most, and the one with about as many errors of each kind.

    What a threshold promises is the μ of Gaussian noise that leaves as many errors as there may be at the most, by
    bounds on both rates.

    >>> rng = np.random.default_rng(0)
    >>> found = choose_thresholds(rng.normal(0, 1, 1000), rng.normal(2, 1, 1000))
    >>> [0.0 < threshold < 2.0 for threshold in found]
    [True, True]

    Args:
        absent: scores of runs without the record, of which none is counted later.
        present: scores of runs with the record.
    """
    scores = np.unique(np.concatenate([absent, present]))
    if len(scores) > _CANDIDATES:
        scores = np.unique(np.quantile(scores, np.linspace(0, 1, _CANDIDATES + 1), method="nearest"))
    candidates = _find_middles(scores) if len(scores) > 1 else scores
    alarms = len(absent) - np.searchsorted(np.sort(absent), candidates, side="right")
    misses = np.searchsorted(np.sort(present), candidates, side="right")
    most_alarms = special.betaincinv(alarms + 1.0, np.maximum(len(absent) - alarms, 1e-9), _CAUTION)
    most_misses = special.betaincinv(misses + 1.0, np.maximum(len(present) - misses, 1e-9), _CAUTION)
    promise = -special.ndtri(most_alarms) - special.ndtri(most_misses)
    balance = np.abs(alarms / len(absent) - misses / len(present))
    return [float(candidates[place]) for place in dict.fromkeys([int(promise.argmax()), int(balance.argmin())])]


def _find_middles(scores: Floats) -> Floats:
    """Return the middle between each score and the next: other runs are seldom exactly as high as one of these."""
    middles = scores[:-1] / 2 + scores[1:] / 2
    return np.where(np.isfinite(middles), middles, scores[:-1])
