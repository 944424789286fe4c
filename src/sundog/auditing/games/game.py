"""A game: a mechanism runs many times, half of them with one record more, and an attack guesses in which.

    for each run:
        ledger = a new one, with noise of its own
        scores = play(present, ledger)          runs the mechanism, and scores what it released
    promise = the curve of what the ledgers were charged
    thresholds are chosen on the first fifth of the runs, errors are counted on the rest
    alarm if the errors contradict the promise

What a game holds against a mechanism is what the mechanism charged by itself, so that a charge that is too small is
seen just as noise that is too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sundog.auditing.epsilon_bounds import MuEstimate, bound_corrected_epsilon, bound_epsilon, estimate_mu
from sundog.auditing.error_test import Errors, choose_thresholds, compute_corrected_p_value, count_errors
from sundog.auditing.tradeoff_curve import compute_gaussian_mu, compute_tradeoff_curve
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource
from sundog.privacy.record_count import compute_fit_epsilon
from sundog.progress import Progress, silent

Floats = npt.NDArray[np.float64]
Play = Callable[[bool, Ledger], Sequence[float]]

_UNLIMITED = {"epsilon": 1e9, "delta": 0.5}  # budget of the ledgers: a game looks at charges, and refuses none
_CHOOSING = 0.2  # the share of runs on which thresholds are chosen
_FEWEST = 20  # runs
_STEPS = 50  # of a progress bar


class ChargeDependenceError(RuntimeError):
    """The mechanism of a game is charged otherwise in different runs, so that charges reveal something."""


@dataclass(frozen=True)
class Game:
    """A mechanism and an attack on it.

    Args:
        name: for reports.
        play: runs the mechanism without the record or with it, spending from a ledger, and returns one score for each
            attack. A higher score means that the record is likelier to be there. The first attack is the one by which
            μ is estimated.
    """

    name: str
    play: Play


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of all runs, (runs, attacks), and what one run was charged."""

    absent: Floats
    present: Floats
    charges: tuple[Charge, ...]


@dataclass(frozen=True)
class GameResult:
    """What a game found.

    Args:
        name: of the game.
        runs: how many there were, with the record and without it.
        delta: at which all ε are stated.
        promise: ε of what was charged.
        lower_bound: the ε that was proven if only the scale of the noise may be wrong.
        threshold_bound: the ε that Clopper and Pearson's bounds prove at the best threshold, whatever the mechanism.
        promised_mu: μ of the Gaussian mechanism with the promised ε.
        mu: the estimate of μ by the first attack, with its interval. Nothing is proven by it.
        p_value: the probability of errors as rare as those that were counted, if the promise holds.
        alarm: whether the errors contradict the promise.
    """

    name: str
    runs: int
    delta: float
    promise: float
    lower_bound: float
    threshold_bound: float
    promised_mu: float
    mu: MuEstimate
    p_value: float
    alarm: bool

    @property
    def tightness(self) -> float:
        """The estimate of μ as a share of the promise: close to 1 for the best attack on Gaussian noise."""
        return self.mu.value / self.promised_mu

    @property
    def verdict(self) -> str:
        """What the game shows, in a sentence."""
        if self.alarm:
            return f"the promise of ε = {self.promise:.3g} is broken (p = {self.p_value:.2g})"
        return f"consistent with ε = {self.promise:.3g}; at least {self.lower_bound:.3g} is proven"


def run_game(
    game: Game,
    *,
    runs: int,
    seed: int,
    delta: float = 1e-5,
    confidence: float = 0.95,
    progress: Progress = silent,
) -> GameResult:
    """Play a game and test what it shows against what was charged.

    >>> from sundog.privacy.mechanisms import noisy_count
    >>> def play(present, ledger):
    ...     return [noisy_count(10 + present, epsilon=1.0, ledger=ledger, purpose="a count")]
    >>> result = run_game(Game("a count", play), runs=400, seed=0)
    >>> round(result.promise, 3), result.alarm
    (1.0, False)

    Args:
        game: the mechanism and the attack.
        runs: with the record and without it, together.
        seed: of the test noise. The mechanisms are those of a fit, but their noise is repeatable.
        delta: at which ε is stated.
        confidence: one minus the probability of an alarm for a mechanism that keeps its promise.
        progress: the callback for progress messages.
    """
    return judge_scores(
        game.name, play_game(game, runs=runs, seed=seed, progress=progress), delta=delta, confidence=confidence
    )


def play_game(game: Game, *, runs: int, seed: int, progress: Progress = silent) -> Scores:
    """Play a game and return its scores.

    Args:
        game: the mechanism and the attack.
        runs: with the record and without it, together; half of each.
        seed: of the test noise.
        progress: the callback for progress messages.
    """
    if runs < _FEWEST:
        raise ValueError(f"a game needs at least {_FEWEST} runs, not {runs}")
    scores: tuple[list[Sequence[float]], list[Sequence[float]]] = ([], [])
    charges: tuple[Charge, ...] | None = None
    for run in range(runs):
        if run % max(1, runs // _STEPS) == 0:
            progress(f"game: {game.name}", run / runs)
        present = run % 2 == 1
        noise = NoiseSource.seeded(0).derive_stream(game.name, seed, run)
        ledger = Ledger(**_UNLIMITED, noise=noise)
        scores[present].append(game.play(present, ledger))
        made = tuple(merge_blocks(ledger.charges))
        if charges is None:
            charges = made
        elif made != charges:
            raise ChargeDependenceError(f"game {game.name!r}: what is charged depends on the data or on the noise")
    progress(f"game: {game.name}", 1.0)
    absent, with_record = (np.array(each, np.float64) for each in scores)
    return Scores(
        np.where(np.isnan(absent), np.inf, absent), np.where(np.isnan(with_record), np.inf, with_record), charges or ()
    )


def judge_scores(name: str, scores: Scores, *, delta: float = 1e-5, confidence: float = 0.95) -> GameResult:
    """Return what the scores of a game show.

    Args:
        name: of the game.
        scores: of all runs.
        delta: at which ε is stated.
        confidence: of the alarm, of the bounds, and of the interval of μ.
    """
    found = count_all_errors(scores)
    p_value = compute_promise_p_value(scores)
    promise = compute_fit_epsilon(scores.charges, delta=delta)
    return GameResult(
        name=name,
        runs=len(scores.absent) + len(scores.present),
        delta=delta,
        promise=promise,
        lower_bound=bound_epsilon(found, scores.charges, delta=delta, confidence=confidence),
        threshold_bound=bound_corrected_epsilon(found, delta=delta, confidence=confidence),
        promised_mu=compute_gaussian_mu(epsilon=promise, delta=delta),
        mu=estimate_mu(scores.absent[:, 0], scores.present[:, 0], confidence=confidence),
        p_value=p_value,
        alarm=p_value <= 1 - confidence,
    )


def compute_promise_p_value(scores: Scores) -> float:
    """Return the probability of errors as rare as those of the attacks, if what was charged is true."""
    return compute_corrected_p_value(count_all_errors(scores), compute_tradeoff_curve(scores.charges))


def count_all_errors(scores: Scores) -> list[Errors]:
    """Return the errors at all thresholds of all attacks, on other runs than those that the thresholds come from."""
    found: list[Errors] = []
    for absent, present in zip(scores.absent.T, scores.present.T, strict=True):
        first, second = (math.ceil(_CHOOSING * len(each)) for each in (absent, present))
        thresholds = choose_thresholds(absent[:first], present[:second])
        found += [count_errors(absent[first:], present[second:], threshold) for threshold in thresholds]
    return found
