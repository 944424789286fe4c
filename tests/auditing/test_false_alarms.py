"""Correct releases are accused in few of many audits, whatever the attacker knows of the other fold."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from tests.auditing.copied_records import MAKERS, TABLE, make_material, make_table

from sundog.auditing.attack import Attack
from sundog.auditing.attacks.attack_list import list_attacks
from sundog.auditing.attacks.density_ratio import RareDensityRatio
from sundog.auditing.attacks.exact_match import ExactMatch
from sundog.auditing.attacks.known_members import BlindClassifier
from sundog.auditing.attacks.singling_out import SinglingOut
from sundog.auditing.audit_inputs import AuditInputs, Sample
from sundog.auditing.auditor import audit
from sundog.auditing.candidates import make_folds
from sundog.auditing.guess_p_value import compute_split_p_value
from sundog.auditing.membership import run_attacks
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.progress import silent

POOL = 1200
NAMES = Schema.from_dict({"columns": {"name": {"type": "integer", "min": 0, "max": POOL - 1}}})
BLOCKS, GUESSES = 20, 32


def make_records(names: npt.NDArray[np.int64]) -> Records:
    return Records(NAMES, {"name": names}, len(names))


def find_known(threat: ThreatModel) -> npt.NDArray[np.bool_]:
    """Return which candidates of the other fold are members, in the order of their names."""
    names = np.concatenate([threat.members.codes["name"], threat.nonmembers.codes["name"]])
    return np.asarray((np.arange(len(names)) < len(threat.members))[np.argsort(names)])


class Copied(Attack):
    """Whether a candidate is among the synthetic records."""

    name: ClassVar[str] = "copied"
    description: ClassVar[str] = "whether it is released"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC})

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Any:
        return np.isin(candidates.codes["name"], threat.synthetic.codes["name"]).astype(float)


class Echo(Copied):
    """The truth about a candidate of the other fold, where it does not contradict the release."""

    name: ClassVar[str] = "echo"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC, Knowledge.MEMBERS, Knowledge.NONMEMBERS})

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Any:
        known = np.resize(find_known(threat), len(candidates))
        places = np.argsort(np.argsort(candidates.codes["name"]))
        return 2 * super().score(threat, candidates, rng) + known[places]


class BestBlock(Echo):
    """Of blocks of candidates, the one that has most members in the other fold; the release decides among equals."""

    name: ClassVar[str] = "best-block"

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Any:
        counts = find_known(threat)[: BLOCKS // 2 * GUESSES].reshape(BLOCKS // 2, -1).sum(axis=1)
        places = np.argsort(np.argsort(candidates.codes["name"]))
        chosen = places // GUESSES == counts.argmax()
        return 2 * chosen + Copied.score(self, threat, candidates, rng)


def audit_response(epsilon: float, seed: int) -> list[float]:
    """Return the bounds of three attacks on randomised response about the membership of every candidate."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(POOL)
    is_member = np.arange(POOL) < POOL // 2
    released = is_member == (rng.random(POOL) < 1 / (1 + math.exp(-epsilon)))
    kinds = []
    for each in (names[is_member], names[~is_member]):
        places = np.arange(len(each))
        kinds.append(Sample("names", make_records(each), places, places, frozenset(), len(each)))
    held = ThreatModel({Knowledge.SYNTHETIC: make_records(names[released])})
    inputs = AuditInputs("response", None, NAMES, kinds[0], kinds[1], held, ())
    found = run_attacks(
        (Copied(), Echo(), BestBlock()), make_folds(inputs, seed), delta=0.0, seed=seed, progress=silent
    )
    return [attack.bound.epsilon for attack in found.attacks]


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_randomised_response_is_accused_in_few_audits(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """At ε = 0 the release is independent of the members; at ε = 1 all of it is used."""
    monkeypatch.setattr(BlindClassifier, "score", lambda _self, _threat, records, _rng: np.zeros(len(records)))
    bounds = np.array([audit_response(epsilon, seed) for seed in range(60)])
    assert (bounds > epsilon).any(axis=1).sum() <= 3  # 5% of 60; the seeds are fixed
    assert bounds.max(axis=1).mean() >= 0.6 * epsilon


AUDITS = 20  # of each kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
def test_samples_that_reveal_nothing_are_accused_in_few_audits(kind: str) -> None:
    """Synthetic records are as good as any can be: further records of the population. All attacks are run."""
    alarms, controls = 0, 0
    for seed in range(AUDITS):
        schema, members, nonmembers, synthetic = make_material(kind, rows=200, seed=seed)
        found = audit(synthetic, members=members, nonmembers=nonmembers, schema=schema)
        alarms += found.findings[0].bound > 0
        again = [attack.control.bound.epsilon for attack in found.membership.attacks if attack.control is not None]
        controls += max(again) > 0
    assert alarms <= 0.05 * AUDITS  # the seeds are fixed
    assert controls <= 0.05 * AUDITS


@pytest.mark.slow
def test_people_of_whom_nothing_is_revealed_are_accused_in_few_audits() -> None:
    """A person has one to four records, which resemble each other."""
    schema = Schema.from_dict({**TABLE.to_dict(), "unit": "id", "cap": 4})
    alarms = 0
    for seed in range(AUDITS):
        rng = np.random.default_rng(seed)
        members, nonmembers, others = (make_people(rng, 200) for _ in range(3))
        found = audit(others.drop(columns="id"), members=members, nonmembers=nonmembers, schema=schema)
        alarms += found.findings[0].bound > 0
    assert alarms <= 0.05 * AUDITS


def make_people(rng: np.random.Generator, count: int) -> pd.DataFrame:
    first = make_table(rng, count).assign(id=[str(number) for number in rng.permutation(10**6)[:count]])
    people = first.loc[np.repeat(np.arange(count), rng.integers(1, 5, count))].reset_index(drop=True)
    return people.assign(age=(people.age + rng.integers(-2, 3, len(people))).clip(0, 99))


@pytest.mark.parametrize(("alone", "accused"), [(True, False), (False, True)])
def test_attackers_who_know_the_other_fold_are_judged_fold_by_fold(alone: bool, accused: bool) -> None:
    """A planted fault: guesses about two folds, each made from the truth about the other, are counted together.

    Of twenty blocks of coins, the best one of the other fold is guessed. No release is involved. Both folds guess the
    same block in one of twenty audits, and then they are right about twice as many as chance explains.
    """
    level, rng, runs = 0.001, np.random.default_rng(0), 20_000
    size = BLOCKS * GUESSES
    blocks = rng.multivariate_hypergeometric([GUESSES] * BLOCKS, size // 2, (2, runs))
    right = np.stack(
        [np.take_along_axis(own, other.argmax(axis=1)[:, None], 1)[:, 0] for own, other in (blocks, blocks[::-1])]
    )
    folds, right = (2, right) if alone else (1, right.sum(axis=0)[None])
    p_values = np.array(
        [
            compute_split_p_value(
                candidates=2 // folds * size,
                members=size // folds,
                guesses=2 // folds * GUESSES,
                right=number,
                epsilon=0.0,
                delta=0.0,
            )
            for number in range(2 // folds * GUESSES + 1)
        ]
    )
    alarms = (p_values[right].min(axis=0) <= level / folds).sum()
    assert (alarms > 2 * level * runs) == accused
    if not accused:
        assert alarms <= level * runs


def test_only_attacks_that_need_the_other_fold_see_it() -> None:
    places = np.arange(POOL // 2)
    kinds = [
        Sample("names", make_records(places + start), places, places, frozenset(), len(places)) for start in (0, 600)
    ]
    held = {Knowledge.SYNTHETIC: make_records(places)}
    for given in ({}, {Knowledge.REFERENCE: make_records(places)}):
        (fold, _) = make_folds(AuditInputs("x", None, NAMES, kinds[0], kinds[1], ThreatModel({**held, **given}), ()), 0)
        for attack in (Copied(), Echo(), *list_attacks()):
            assert fold.show(attack).find_missing(attack.needs) == fold.threat.find_missing(attack.needs)
            told = set(attack.needs) & ({Knowledge.MEMBERS, Knowledge.NONMEMBERS, Knowledge.REFERENCE} - set(given))
            assert fold.knows_members(attack) == bool(told)
            assert (Knowledge.MEMBERS in fold.show(attack).held) == bool(told)


def test_folds_say_nothing_about_membership() -> None:
    """The number of members in a fold varies as in a random half, and so does who they are."""
    places = np.arange(20)
    kinds = [Sample("names", make_records(places + start), places, places, frozenset(), 20) for start in (0, 20)]
    counts = []
    for seed in range(300):
        folds = make_folds(AuditInputs("x", None, NAMES, kinds[0], kinds[1], ThreatModel(), ()), seed)
        assert [len(fold.records) for fold in folds] == [20, 20]
        counts.append(int(folds[0].members.sum()))
    assert np.mean(counts) == pytest.approx(10, abs=0.5)
    assert np.var(counts) == pytest.approx(20 * 0.25 * 20 / 39, rel=0.35)


@pytest.mark.parametrize("attack", [ExactMatch(), SinglingOut(), RareDensityRatio()], ids=lambda attack: attack.name)
def test_which_candidates_are_guessed_about_depends_on_them_alone(attack: Attack) -> None:
    rng = np.random.default_rng(0)
    candidates, reference, *released = (encode(read(make_table(rng, 200), TABLE), TABLE) for _ in range(4))
    guessed = []
    for synthetic in released:
        threat = ThreatModel({Knowledge.SYNTHETIC: synthetic, Knowledge.REFERENCE: reference})
        guessed.append(~np.isnan(attack.score(threat, candidates, np.random.default_rng(1))))
    assert (guessed[0] == guessed[1]).all()
    assert guessed[0].sum() == 40
