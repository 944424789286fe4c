"""Controls of attacks: between two random halves of the members, an attack finds nothing unless it is faulty."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from tests.auditing.copied_records import TABLE, make_table

from sundog.auditing import candidates
from sundog.auditing.attack import Attack
from sundog.auditing.attacks.density_ratio import DensityRatio
from sundog.auditing.audit_inputs import AuditInputs, Sample
from sundog.auditing.auditor import audit
from sundog.auditing.candidates import Fold, make_control_folds, make_folds
from sundog.auditing.membership import AttackResult, run_attacks
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.progress import silent


class Order(Attack):
    """The place of a candidate in the order in which an attack is shown them: the first are suspected."""

    name: ClassVar[str] = "order"
    description: ClassVar[str] = "its place"
    needs: ClassVar[frozenset[Knowledge]] = frozenset()

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Any:
        return -np.arange(len(candidates), dtype=float)


class Slow(Order):
    slow: ClassVar[bool] = True


class Unshuffled:
    """A generator that leaves every order as it is."""

    def permutation(self, count: int) -> Any:
        return np.arange(count)


def make_sample(rows: int, seed: int, *, people: int | None = None) -> Sample:
    records = encode(read(make_table(np.random.default_rng(seed), rows), TABLE), TABLE)
    places = np.arange(rows)
    owners = places if people is None else np.resize(np.arange(people), rows)
    return Sample("table", records, places, owners, frozenset(), rows)


def make_inputs(rows: int = 400, *, people: int | None = None) -> AuditInputs:
    members, others = (make_sample(rows, seed, people=people) for seed in (0, 1))
    held = ThreatModel({Knowledge.SYNTHETIC: make_sample(rows, 2).records})
    return AuditInputs("table", None, TABLE, members, others, held, ())


def attack_members(attack: Attack, inputs: AuditInputs) -> AttackResult:
    folds, again = make_folds(inputs, 0), make_control_folds(inputs, 0)
    return run_attacks([attack], folds, delta=1e-9, seed=0, progress=silent, control_folds=again).attacks[0]


def keep_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show candidates as they were given: members first."""
    right: Any = candidates._make_fold
    monkeypatch.setattr(candidates, "_make_fold", lambda *given: right(*given[:-1], Unshuffled()))


def show_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the reference sample be the non-members among the candidates themselves."""

    def show(fold: Fold, attack: Attack) -> ThreatModel:
        others = fold.records.take(~fold.members[fold.people])
        return ThreatModel({**fold.threat.held, Knowledge.REFERENCE: others})

    monkeypatch.setattr(Fold, "show", show)


@pytest.mark.parametrize(("attack", "plant"), [(Order(), keep_order), (DensityRatio(), show_candidates)])
def test_an_attack_that_is_told_by_accident_is_found_by_its_control(
    attack: Attack, plant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is released here but further records: whatever an attack finds is its own fault."""
    sound = attack_members(attack, make_inputs()).control
    assert sound is not None
    assert sound.bound.epsilon == 0
    assert sound.measures["auc"].low < 0.5 < sound.measures["auc"].high
    plant(monkeypatch)
    faulty = attack_members(attack, make_inputs())
    assert faulty.control is not None
    assert faulty.bound.epsilon > 1
    assert faulty.control.bound.epsilon > 1
    assert faulty.control.measures["auc"].low > 0.9


def test_the_audit_says_which_attacks_fail_their_control(monkeypatch: pytest.MonkeyPatch) -> None:
    members, others, synthetic = (make_table(np.random.default_rng(seed), 300) for seed in range(3))
    given: dict[str, Any] = {"members": members, "nonmembers": others, "schema": TABLE, "attack": "density-ratio"}
    assert not any("two random halves" in note for note in audit(synthetic, **given).notes)
    show_candidates(monkeypatch)
    assert any("tell them apart (density-ratio)" in note for note in audit(synthetic, **given).notes)


def test_the_halves_are_members_alone_each_person_in_one_place() -> None:
    inputs = make_inputs(300, people=100)
    folds = make_control_folds(inputs, 0)
    assert sum(len(fold.members) for fold in folds) == 100
    assert sum(int(fold.members.sum()) for fold in folds) == 50
    shown = pd.concat([pd.DataFrame(fold.records.codes) for fold in folds])
    whole = pd.DataFrame(inputs.members.records.codes)
    names = [str(name) for name in whole]
    assert shown.sort_values(names).to_numpy().tolist() == whole.sort_values(names).to_numpy().tolist()


def test_few_members_and_slow_attacks_have_no_control() -> None:
    assert attack_members(Order(), make_inputs(39)).control is None
    assert attack_members(Slow(), make_inputs(100)).control is None
    assert attack_members(Order(), make_inputs(40)).control is not None
