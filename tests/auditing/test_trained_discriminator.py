"""Attacks that train a discriminator find what a target copied, and nothing where it copied nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.auditing.copied_records import IMAGES, SERIES, SETS, TABLE, Material, make_sets, make_table

from sundog.auditing.attacks.attack_list import choose_attacks, list_untried_attacks
from sundog.auditing.attacks.discriminator_training import DiscriminatorTraining, Evidence, TrainingOptions
from sundog.auditing.attacks.trained_discriminator import (
    Discriminator,
    Gan,
    GanWithKnownRecords,
    GanWithMembers,
    NonmemberDiscriminator,
    TrainedDiscriminator,
)
from sundog.auditing.auditor import audit
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.reading.read import encode, read
from sundog.data.records import Records, concatenate
from sundog.errors import SundogError
from sundog.evaluation.prediction.roc import Ranking

KINDS: tuple[type[TrainedDiscriminator], ...] = (
    Gan,
    GanWithMembers,
    GanWithKnownRecords,
    Discriminator,
    NonmemberDiscriminator,
)
SHORT = TrainingOptions(steps=300, delay=100, hidden=32, learning_rate=2e-3)
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
COUNT = 24  # of members, and of others


def make_images(rng: np.random.Generator, rows: int) -> Records:
    return Records(IMAGES, {"image": rng.integers(0, 256, (rows, 8, 8)).astype(np.uint8)}, rows)


def attack_images(kind: type[TrainedDiscriminator], *, copies: bool, options: TrainingOptions = SHORT) -> np.ndarray:
    """Return the scores of members, followed by those of others, where the target repeats members or other images."""
    rng = np.random.default_rng(0)
    members, others, known, nonmembers, strangers = (make_images(rng, COUNT) for _ in range(5))
    told = concatenate([members, known]) if copies else strangers
    synthetic = told.take(np.resize(np.arange(len(told)), 288))
    everything = {Knowledge.SYNTHETIC: synthetic, Knowledge.MEMBERS: known, Knowledge.NONMEMBERS: nonmembers}
    threat = ThreatModel({what: everything[what] for what in kind.needs})
    return kind(options).score(threat, concatenate([members, others]), np.random.default_rng(1))


def measure_area(scores: np.ndarray) -> float:
    return Ranking(scores, np.repeat([True, False], COUNT)).measure_area().value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_copied_images_are_recognised(kind: type[TrainedDiscriminator]) -> None:
    assert measure_area(attack_images(kind, copies=True)) > 0.65


@pytest.mark.parametrize("kind", [Gan, NonmemberDiscriminator], ids=lambda kind: kind.name)
def test_nothing_is_found_where_nothing_was_copied(kind: type[TrainedDiscriminator]) -> None:
    assert abs(measure_area(attack_images(kind, copies=False)) - 0.5) < 0.2  # 2.4 standard errors


def test_the_same_seed_gives_the_same_scores() -> None:
    options = TrainingOptions(steps=20, hidden=32)
    state = torch.random.get_rng_state()
    first, second = (attack_images(GanWithKnownRecords, copies=True, options=options) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert torch.equal(torch.random.get_rng_state(), state)


def test_known_records_are_used_after_the_delay() -> None:
    lengths = (TrainingOptions(steps=20, delay=delay, hidden=32) for delay in (0, 20, 30))
    early, never, late = (attack_images(GanWithMembers, copies=True, options=each).tolist() for each in lengths)
    assert early != never
    assert never == late


def test_a_score_depends_on_one_record_alone() -> None:
    images = make_images(np.random.default_rng(0), 64)
    training = DiscriminatorTraining(Evidence(images), TrainingOptions(steps=5, hidden=32), seed=0)
    training.run()
    assert training.score(images)[:3] == pytest.approx(training.score(images.take(slice(0, 3))), abs=1e-5)


def test_an_observer_is_told_of_the_last_step() -> None:
    seen: list[int] = []
    training = DiscriminatorTraining(Evidence(make_images(np.random.default_rng(0), 64)), TrainingOptions(3), seed=0)
    training.run(lambda step, _: seen.append(step))
    assert seen == [3]


@pytest.mark.parametrize("form", ["table", "sets", "series"])
def test_other_records_are_attacked_with_perceptrons(form: str) -> None:
    rng = np.random.default_rng(0)
    schema = {"table": TABLE, "sets": SETS, "series": SERIES}[form]
    makers: dict[str, Callable[[], Any]] = {
        "table": lambda: make_table(rng, 40),
        "sets": lambda: make_sets(rng, 40),
        "series": lambda: 10 * rng.random((40, 24)),
    }
    members, others = makers[form](), makers[form]()
    own, other = (encode(read(part, schema), schema) for part in (members, others))
    threat = ThreatModel({Knowledge.SYNTHETIC: own, Knowledge.NONMEMBERS: other.take(slice(0, 20))})
    options = TrainingOptions(steps=150, hidden=32, learning_rate=2e-3)
    candidates = concatenate([own, other.take(slice(20, 40))])
    scores = NonmemberDiscriminator(options).score(threat, candidates, np.random.default_rng(1))
    assert Ranking(scores, np.repeat([True, False], [40, 20])).measure_area().value > 0.6
    assert np.isfinite(
        Gan(TrainingOptions(steps=5, hidden=32)).score(threat, candidates, np.random.default_rng(1))
    ).all()


@pytest.mark.parametrize(
    ("device", "name"),
    [("cpu", "discriminator-nonmembers"), pytest.param("cuda", "gan-known", marks=needs_gpu, id="cuda")],
)
def test_an_attack_by_name_trains_on_the_device(device: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds there that every member was copied."""
    seen: set[str] = set()
    score = DiscriminatorTraining.score

    def note_device(training: DiscriminatorTraining, records: Records) -> np.ndarray:
        seen.add(next(training.critic.parameters()).device.type)
        return score(training, records)

    monkeypatch.setattr(DiscriminatorTraining, "score", note_device)
    monkeypatch.setattr("sundog.auditing.attacks.trained_discriminator._STEPS", 200 if device == "cpu" else 2000)
    rng = np.random.default_rng(0)
    members, others = (rng.integers(0, 256, (60, 8, 8)).astype(np.uint8) for _ in range(2))
    copies = np.repeat(members, 5, axis=0)
    found = audit(copies, members=members, nonmembers=others, schema=IMAGES, attack=name, device=device)
    assert seen == {device}
    assert found.membership.attacks[0].measures["auc"].value > 0.6
    assert found.about["device"] == device


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_not_there_is_refused() -> None:
    assert [attack.name for attack in choose_attacks("gan")] == ["gan"]
    with pytest.raises(SundogError, match="device 'cuda': torch finds no CUDA device here; leave the device out"):
        choose_attacks("gan", "cuda")


def test_all_leaves_slow_attacks_out_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(attack.slow for attack in choose_attacks("all"))
    assert [type(attack) for attack in list_untried_attacks("all")] == list(KINDS)
    monkeypatch.setattr("sundog.auditing.attacks.trained_discriminator._STEPS", 20)
    rng = np.random.default_rng(0)
    material = Material(IMAGES, *(rng.integers(0, 256, (60, 8, 8)).astype(np.uint8) for _ in range(3)))
    asked = audit(
        material.synthetic, members=material.members, nonmembers=material.nonmembers, schema=IMAGES, attack="gan-known"
    )
    assert [attack.name for attack in asked.membership.attacks] == ["gan-known"]
    found = audit(material.synthetic, members=material.members, nonmembers=material.nonmembers, schema=IMAGES)
    assert "gan-known: takes long; ask for --attack gan-known" in found.not_tried
