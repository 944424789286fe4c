"""The membership audit: every attack that applies, with its control, and one bound on ε that all of them share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sundog.auditing.attack import Attack
from sundog.auditing.attacks.known_members import BlindClassifier
from sundog.auditing.candidates import Fold, Scores, join_scores, score_folds
from sundog.auditing.guess_bound import GuessBound, bound_right_guesses, find_best_bound
from sundog.auditing.membership_measures import measure_membership
from sundog.evaluation.comparison import make_rng
from sundog.evaluation.measure import Measure
from sundog.progress import Progress

FAILURE = 0.05  # the probability with which a correct release may be accused, by all audits together
BLIND_FAILURE = 0.01  # that with which a random split is taken for one that is not
RANDOM = "random"


@dataclass(frozen=True)
class AttackControl:
    """What an attack finds where there is nothing to find: between two random halves of the members.

    Args:
        measures: of one half against the other; those of guessing if the attack is sound.
        bound: the lower bound on ε; 0 if the attack is sound, but for chance.
    """

    measures: dict[str, Measure]
    bound: GuessBound

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        measures = {name: measure.to_dict() for name, measure in self.measures.items()}
        return {"measures": measures, "epsilon": self.bound.to_dict()}


@dataclass(frozen=True)
class AttackResult:
    """What one attack found.

    Args:
        name: of the attack.
        description: one sentence.
        measures: of members against non-members.
        curve: false and true positive rates.
        bound: the lower bound on ε, corrected for all attacks.
        provable: the bound if all guesses had been right.
        control: the same attack on one random half of the members against the other; None where it was not repeated.
        scored: how many candidates it guessed about.
        seconds: what it took.
    """

    name: str
    description: str
    measures: dict[str, Measure]
    curve: dict[str, list[float]]
    bound: GuessBound
    provable: float
    control: AttackControl | None
    scored: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "description": self.description,
            "scored": self.scored,
            "measures": {name: measure.to_dict() for name, measure in self.measures.items()},
            "epsilon": self.bound.to_dict(),
            "provable": self.provable,
            "control": None if self.control is None else self.control.to_dict(),
            "curve": self.curve,
            "seconds": round(self.seconds, 2),
        }


@dataclass(frozen=True, eq=False)
class MembershipResults:
    """The results of all attacks, and of two baselines: guessing at random, and without any look at the release.

    Args:
        attacks: in the order in which they were run.
        random: scores that are random numbers.
        blind: a classifier of the records alone.
        scores: of each attack, by its name.
        skipped: why attacks were not run, by their names.
        share: the share of members among the candidates.
    """

    attacks: tuple[AttackResult, ...]
    random: AttackResult
    blind: AttackResult
    scores: dict[str, Scores]
    skipped: dict[str, str]
    share: float

    def list_all(self) -> list[AttackResult]:
        """Return the attacks and after them both baselines."""
        return [*self.attacks, self.blind, self.random]

    @property
    def provable(self) -> float:
        """The highest bound that any attack would have proven if all its guesses had been right."""
        return max((result.provable for result in self.attacks), default=0.0)

    @property
    def best(self) -> AttackResult | None:
        """The attack with the highest bound on ε; None where none was run."""
        return max(self.attacks, key=lambda result: result.bound.epsilon, default=None)


def run_attacks(
    attacks: Sequence[Attack],
    folds: list[Fold],
    *,
    delta: float,
    seed: int,
    progress: Progress,
    failure: float = FAILURE,
    control_folds: Sequence[Fold] = (),
) -> MembershipResults:
    """Run all attacks that apply, and measure what they find; again on members alone, but for slow attacks.

    Args:
        attacks: to run.
        folds: the candidates.
        delta: the δ for which ε is bounded.
        seed: fixes all random choices.
        progress: is called with the current attack.
        failure: the probability with which the bound on ε may be wrong.
        control_folds: members alone, of whom a half plays the non-members; none for no control of attacks.
    """
    skipped = {attack.name: why for attack in attacks if (why := _find_obstacle(attack, folds)) is not None}
    runnable = [attack for attack in attacks if attack.name not in skipped]
    members = np.concatenate([fold.members for fold in folds])
    judge = _Judge(delta, failure / max(1, len(runnable)), seed)
    scores: dict[str, Scores] = {}
    results = []
    for place, attack in enumerate(runnable):
        progress(f"attack {attack.name}", place / (len(runnable) + 1))
        result, scores[attack.name] = judge.run(attack, folds)
        if control_folds and not attack.slow:
            again, _ = judge.run(attack, control_folds)
            result = replace(result, control=AttackControl(again.measures, again.bound))
        results.append(result)
    progress("controls", len(runnable) / (len(runnable) + 1))
    start = time.perf_counter()
    classifier = BlindClassifier()
    blind = replace(judge, failure=BLIND_FAILURE).judge(
        classifier.name, classifier.description, score_folds(classifier, folds, seed), start
    )
    guesses = Scores(make_rng(seed, RANDOM).random(len(members)), members, np.zeros(len(members), np.int64))
    random = judge.judge(RANDOM, "random numbers", [guesses], time.perf_counter())
    return MembershipResults(tuple(results), random, blind, scores, skipped, float(members.mean()))


def _find_obstacle(attack: Attack, folds: list[Fold]) -> str | None:
    fold = folds[0]
    missing = fold.threat.find_missing(attack.needs)
    if missing:
        return f"needs {' and '.join(kind.value for kind in missing)}"
    return attack.find_obstacle(fold.threat, fold.records.schema)


@dataclass(frozen=True)
class _Judge:
    """Runs attacks and measures their scores.

    Args:
        delta: the δ for which ε is bounded.
        failure: the probability with which the bound of an attack may be wrong.
        seed: fixes all random choices.
    """

    delta: float
    failure: float
    seed: int

    def run(self, attack: Attack, folds: Sequence[Fold]) -> tuple[AttackResult, Scores]:
        """Return the result of an attack and its scores; each fold is bounded by itself if it knows of the other."""
        start = time.perf_counter()
        parts = score_folds(attack, folds, self.seed)
        joined = join_scores(parts)
        lots = parts if any(fold.knows_members(attack) for fold in folds) else [joined]
        return self.judge(attack.name, attack.description, lots, start), joined

    def judge(self, name: str, description: str, lots: Sequence[Scores], start: float) -> AttackResult:
        """Return the result of an attack that began at a time, from scores that are bounded each by themselves."""
        guessed = join_scores([lot.drop_unscored() for lot in lots])
        rng = make_rng(self.seed, f"measures of {name}")
        found = measure_membership(guessed.values, guessed.members, rng)
        return AttackResult(
            name=name,
            description=description,
            measures=found.measures,
            curve=found.curve,
            bound=max((self._bound(lot, len(lots)) for lot in lots), key=lambda lot: lot.epsilon),
            provable=max(self._bound_right_guesses(lot, len(lots)) for lot in lots),
            control=None,
            scored=len(guessed.values),
            seconds=time.perf_counter() - start,
        )

    def _bound(self, lot: Scores, count: int) -> GuessBound:
        return find_best_bound(lot.values, lot.members, delta=self.delta, failure=self.failure, count=count)

    def _bound_right_guesses(self, lot: Scores, count: int) -> float:
        members = lot.drop_unscored().members
        return bound_right_guesses(members, delta=self.delta, failure=self.failure, count=count).epsilon
