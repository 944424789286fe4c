"""Guesses about canaries, made from scores, and what they prove."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from sundog.auditing.canaries.one_run_bounds import bound_epsilon, bound_mu
from sundog.auditing.canaries.one_run_p_values import Floats, compute_tradeoff_p_value
from sundog.auditing.tradeoff_curve import TradeoffCurve
from sundog.privacy.analytic_gaussian import compute_gaussian_epsilon


@dataclass(frozen=True)
class CanaryGuesses:
    """How many guesses were made in one run, and how many were right.

    >>> guesses = CanaryGuesses(canaries=1000, guesses=100, correct=95)
    >>> round(guesses.bound_gaussian_epsilon(delta=1e-5), 2), round(guesses.bound_epsilon(delta=1e-5), 2)
    (3.32, 2.17)

    Args:
        canaries: how many there were, each included by a fair coin.
        guesses: how many of them were guessed.
        correct: how many guesses were right.
    """

    canaries: int
    guesses: int
    correct: int

    @classmethod
    def make(cls, scores: Floats, included: npt.NDArray[np.bool_], *, guesses: int) -> CanaryGuesses:
        """Guess the canaries whose scores are the farthest from zero: that they were included if they are positive.

        >>> scores, included = np.array([0.1, 3.0, 0.2, -2.0]), np.array([False, True, True, True])
        >>> CanaryGuesses.make(scores, included, guesses=2)
        CanaryGuesses(canaries=4, guesses=2, correct=1)

        Args:
            scores: how much likelier it is that a canary was included than that it was not: the log of a ratio.
            included: whether it was.
            guesses: how many to make.
        """
        surest = np.argsort(-np.abs(scores), kind="stable")[:guesses]
        return cls(len(scores), len(surest), int(((scores > 0) == included)[surest].sum()))

    def bound_gaussian_epsilon(self, *, delta: float, confidence: float = 0.95) -> float:
        """Return a lower bound on ε at δ for mechanisms with Gaussian DP, from the f-DP bound on μ."""
        mu = bound_mu(canaries=self.canaries, guesses=self.guesses, correct=self.correct, confidence=confidence)
        return compute_gaussian_epsilon(noise_multiplier=1 / mu, delta=delta) if mu > 0 else 0.0

    def bound_epsilon(self, *, delta: float, confidence: float = 0.95) -> float:
        """Return the lower bound on ε at δ of Steinke, Nasr and Jagielski, for any (ε, δ)-DP mechanism."""
        return bound_epsilon(
            canaries=self.canaries, guesses=self.guesses, correct=self.correct, delta=delta, confidence=confidence
        )

    def compute_p_value(self, curve: TradeoffCurve) -> float:
        """Return the p-value of the guesses if the mechanism has this trade-off curve."""
        return compute_tradeoff_p_value(
            canaries=self.canaries,
            guesses=self.guesses,
            correct=self.correct,
            least_fpr=partial(compute_curve_fpr, curve=curve),
        )


def compute_curve_fpr(tpr: Floats, *, curve: TradeoffCurve) -> Floats:
    """Return the least false positive rate of a test with this true positive rate, whichever hypothesis it favours.

    Of the δ for a removed record and that for an added one, the larger is taken at each ε, so that 1 − f is concave, as
    the bounds for one run require.

    >>> from sundog.auditing.tradeoff_curve import make_gaussian_curve
    >>> np.round(compute_curve_fpr(np.array([0.5]), curve=make_gaussian_curve(1.0)), 3).tolist()
    [0.159]
    """
    delta, tpr = np.maximum(curve.removal, curve.addition), np.asarray(tpr)[..., None]
    factor = np.exp(np.minimum(curve.epsilons, 700.0))
    likely, unlikely = (tpr - delta) / factor, 1 - delta - factor * (1 - tpr)
    return np.asarray(np.maximum(0.0, np.maximum(likely.max(axis=-1), unlikely.max(axis=-1))))
