"""What an experiment found, and the files in which that is kept."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sundog.auditing.guess_bound import find_best_bound
from sundog.auditing.membership_measures import measure_exactly
from sundog.evaluation.prediction.roc import Ranking

TOPS = (20, 40, 60, 80, 100)  # per cent of the guessed training set


@dataclass(frozen=True)
class Accuracy:
    """The share of members among the n candidates with the highest scores, where n are members.

    Args:
        value: this share.
        low: the lower end of its exact 95% interval.
        high: the upper end.
        chance: the share of members among all candidates.
        area: under the curve.
        epsilon: the lower bound on ε that the guesses prove, at δ = 1e-9 and 95%.
        tops: the share of members among the first 20, 40, … per cent of these n.
    """

    value: float
    low: float
    high: float
    chance: float
    area: float
    epsilon: float
    tops: dict[str, float]


@dataclass(frozen=True)
class Outcome:
    """What one experiment found, so far or at its end.

    Args:
        accuracy: at the last point.
        curve: accuracy by epochs of the target, or steps of the attacker.
        seconds: what it took, besides other experiments.
        complete: whether it is at its end.
        extra: further figures by name, with what they are compared with.
    """

    accuracy: Accuracy
    curve: dict[str, float]
    seconds: float
    complete: bool
    extra: dict[str, tuple[float, float]] = field(default_factory=dict)


def measure_accuracy(scores: NDArray[np.float64], members: NDArray[np.bool_]) -> Accuracy:
    """Return how many of the n highest scores are members', and what it proves."""
    order = np.random.default_rng(0).permutation(len(scores))  # ties are broken at random
    order = order[np.argsort(-scores[order], kind="stable")]
    count = int(members.sum())
    found = measure_exactly(int(members[order[:count]].sum()), count)
    tops = {str(top): float(members[order[: max(1, round(count * top / 100))]].mean()) for top in TOPS}
    bound = find_best_bound(scores, members, delta=1e-9, failure=0.05, count=1)
    area = Ranking(scores, members).measure_area().value
    return Accuracy(found.value, found.low, found.high, float(members.mean()), area, bound.epsilon, tops)


def keep_outcome(path: Path, outcome: Outcome) -> None:
    """Write an outcome, whole or not at all."""
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(asdict(outcome), indent=1) + "\n")
    part.replace(path)


def read_outcome(path: Path) -> Outcome | None:
    """Return the outcome that is kept in a file; None if there is none."""
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    extra = {name: (float(ours), float(peer)) for name, (ours, peer) in kept["extra"].items()}
    return Outcome(**{**kept, "accuracy": Accuracy(**kept["accuracy"]), "extra": extra})
