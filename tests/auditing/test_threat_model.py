"""Attacks see what their threat model holds, and nothing else."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from tests.auditing.released_table import make_release, read_table

from sundog.auditing.attack import Attack, score_people
from sundog.auditing.attacks.attack_list import choose_attacks, list_attacks
from sundog.auditing.attacks.discriminator_training import TrainingOptions
from sundog.auditing.attacks.known_members import BlindClassifier
from sundog.auditing.attacks.model_likelihood import Likelihood
from sundog.auditing.attacks.trained_discriminator import TrainedDiscriminator
from sundog.auditing.threat_model import Knowledge, NotHeldError, ThreatModel
from sundog.errors import ArgumentError
from sundog.mixture.mixture import Mixture
from sundog.models.rbm.rbm import Rbm


def shorten(attack: Attack) -> Attack:
    return type(attack)(TrainingOptions(steps=3, hidden=16)) if isinstance(attack, TrainedDiscriminator) else attack


ATTACKS = [*map(shorten, list_attacks()), BlindClassifier()]


@pytest.mark.parametrize("kind", Knowledge)
def test_asking_for_what_is_not_held_is_an_error_that_names_it(kind: Knowledge) -> None:
    empty = ThreatModel({})
    assert empty.find_missing([kind]) == [kind]
    with pytest.raises(NotHeldError, match=f"does not hold {kind.value}"):
        getattr(empty, kind.name.lower())


def hold_everything(seed: int = 0) -> dict[Knowledge, object]:
    release = make_release()
    parts = [read_table(200, seed + number) for number in range(4)]
    kinds = (Knowledge.SYNTHETIC, Knowledge.MEMBERS, Knowledge.NONMEMBERS, Knowledge.REFERENCE)
    return {**dict(zip(kinds, parts, strict=True)), Knowledge.RELEASE: release}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_needs_what_it_says_and_no_more(attack: Attack) -> None:
    if Knowledge.PRIVATE_FILE in attack.needs:
        pytest.skip("tested with a critic")
    held = hold_everything()
    candidates = read_table(150, 9)
    enough = ThreatModel({kind: held[kind] for kind in attack.needs})
    assert attack.find_obstacle(enough, candidates.schema) is None
    scores = attack.score(enough, candidates, np.random.default_rng(0))
    assert scores.shape == (150,)
    assert np.isfinite(scores[~np.isnan(scores)]).all()
    assert (~np.isnan(scores)).any()
    for kind in attack.needs:
        less = ThreatModel({other: held[other] for other in attack.needs - {kind}})
        assert less.find_missing(attack.needs) == [kind]
        with pytest.raises(NotHeldError):
            attack.score(less, candidates, np.random.default_rng(0))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_order_of_candidates_does_not_matter(attack: Attack) -> None:
    if Knowledge.PRIVATE_FILE in attack.needs:
        pytest.skip("tested with a critic")
    held = hold_everything()
    candidates = read_table(150, 9)
    threat = ThreatModel({kind: held[kind] for kind in attack.needs})
    order = np.random.default_rng(1).permutation(150)
    scores, shuffled = (
        attack.score(threat, each, np.random.default_rng(0)) for each in (candidates, candidates.take(order))
    )
    assert shuffled == pytest.approx(scores[order], nan_ok=True, abs=2e-3)  # single precision


def test_a_likelihood_needs_a_model_that_tells_probabilities() -> None:
    """Neither the GAN nor a mixture of machines does, whose energies have unknown constants."""

    class Silent:
        name = "silent"

    class Machine(Rbm):
        def __init__(self) -> None:
            pass

    def find_obstacle(model: Any) -> str | None:
        release = dataclasses.replace(make_release(), model=model)
        return Likelihood().find_obstacle(ThreatModel({Knowledge.RELEASE: release}), release.schema)

    assert find_obstacle(make_release().model) is None
    assert find_obstacle(Machine()) is None
    assert find_obstacle(Silent()) == "a model of type silent does not tell probabilities"
    mixture = Mixture([Machine(), Machine()], np.array([0.5, 0.5]), 100, public=False)
    assert find_obstacle(mixture) == "the energies of different components of type rbm cannot be compared"


def test_all_attacks_have_different_names_and_can_be_chosen() -> None:
    names = [attack.name for attack in list_attacks()]
    assert len(set(names)) == len(names)
    assert [attack.name for attack in choose_attacks("all")] == [each.name for each in list_attacks() if not each.slow]
    assert [attack.name for attack in choose_attacks("likelihood")] == ["likelihood"]
    with pytest.raises(ArgumentError, match="there is no attack 'likelyhood'; did you mean 'likelihood'"):
        choose_attacks("likelyhood")


def test_the_score_of_a_person_is_that_of_their_worst_record() -> None:
    people = np.array([2, 0, 2, 1, 0])
    scores = np.array([0.3, np.nan, 0.9, -4.0, np.nan])
    assert score_people(scores, people) == pytest.approx([np.nan, -4.0, 0.9], nan_ok=True)
