"""Candidates: members and non-members in random order, in two folds.

Of the candidates of the other fold the attacker knows which are members; the non-members among them are the reference
sample, unless one was given. So every record is a candidate once, and nothing that the attacker knows is a candidate.

An attacker who uses this knows the truth about one fold while guessing about the other. The guesses of both folds are
not independent then, however little the release reveals, and each fold is judged by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sundog.auditing.attack import Attack, Floats, score_people
from sundog.auditing.audit_inputs import FEWEST, AuditInputs, Sample
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records, concatenate
from sundog.evaluation.comparison import make_rng

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Fold:
    """Candidates, and what the attacker holds.

    Args:
        records: the candidates, members and others in random order.
        people: the number of the owner of each record, from 0 within the fold.
        members: by person, whether they are a member.
        first_places: by person, the position of their first record among the members that were read; −1 for others.
        threat: what the attacker holds.
        telling: what of this tells who is a member of the other fold.
    """

    records: Records
    people: Integers
    members: Booleans
    first_places: Integers
    threat: ThreatModel
    telling: frozenset[Knowledge]

    def knows_members(self, attack: Attack) -> bool:
        """Return whether an attack depends on who is a member of the other fold."""
        return bool(attack.needs & self.telling)

    def show(self, attack: Attack) -> ThreatModel:
        """Return what an attack may see: only those that need it are told of the other fold."""
        return self.threat if self.knows_members(attack) else self.threat.without(self.telling)


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of one attack, by person; NaN where it does not guess."""

    values: Floats
    members: Booleans
    places: Integers

    def drop_unscored(self) -> Scores:
        """Return those that were guessed about."""
        kept = ~np.isnan(self.values)
        return Scores(self.values[kept], self.members[kept], self.places[kept])


def make_folds(inputs: AuditInputs, seed: int) -> list[Fold]:
    """Return two folds. The attacker knows of the candidates of the other one which are members.

    All people are dealt together, so that who is in a fold says nothing about membership, and the members of each are a
    random subset of it.
    """
    rng = make_rng(seed, "folds")
    people = [_count_people(sample) for sample in (inputs.members, inputs.nonmembers)]
    is_first = rng.permutation(sum(people)) < (sum(people) + 1) // 2
    members, nonmembers = (
        _deal(sample, own)
        for sample, own in zip((inputs.members, inputs.nonmembers), np.split(is_first, people[:1]), strict=True)
    )
    folds = []
    for own, other in ((0, 1), (1, 0)):
        known = {Knowledge.MEMBERS: members[other].records, Knowledge.NONMEMBERS: nonmembers[other].records}
        told = {Knowledge.REFERENCE: nonmembers[other].records, **known}
        threat = ThreatModel({**told, **inputs.held.held})
        folds.append(_make_fold(members[own], nonmembers[own], threat, frozenset(told) - set(inputs.held.held), rng))
    return folds


def make_control_folds(inputs: AuditInputs, seed: int) -> list[Fold]:
    """Return two folds of members alone, of whom a random half plays the non-members, as candidates and as reference.

    Nobody in them is a non-member: what an attack finds here is not membership, but a fault of the attack, such as a
    reference that holds the candidates, or an order of records that gives them away. None are made of too few members.
    """
    count = _count_people(inputs.members)
    if count < 2 * FEWEST:
        return []
    playing = make_rng(seed, "halves of the members").permutation(count) < count // 2
    others, members = _deal(inputs.members, playing)
    return make_folds(replace(inputs, members=_renumber(members), nonmembers=_renumber(others)), seed)


def _renumber(sample: Sample) -> Sample:
    """Return the same records, whose people are numbered from 0."""
    return replace(sample, people=np.unique(sample.people, return_inverse=True)[1].astype(np.int64))


def score_folds(attack: Attack, folds: Sequence[Fold], seed: int) -> list[Scores]:
    """Return the scores of an attack on the candidates of each fold."""
    parts = []
    for number, fold in enumerate(folds):
        rng = make_rng(seed, f"{attack.name}, fold {number}")
        scores = attack.score(fold.show(attack), fold.records, rng)
        parts.append(Scores(score_people(scores, fold.people), fold.members, fold.first_places))
    return parts


def join_scores(parts: list[Scores]) -> Scores:
    """Return the scores of all folds together."""
    return Scores(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("values", "members", "places"))
    )


def _count_people(sample: Sample) -> int:
    return int(sample.people.max(initial=-1)) + 1


def _deal(sample: Sample, is_first: Booleans) -> tuple[Sample, Sample]:
    """Return the records of the people of the first fold, and those of the second."""
    first = is_first[sample.people]
    return sample.take(first), sample.take(~first)


def _make_fold(
    members: Sample, nonmembers: Sample, threat: ThreatModel, telling: frozenset[Knowledge], rng: np.random.Generator
) -> Fold:
    order = rng.permutation(len(members.records) + len(nonmembers.records))
    records = concatenate([members.records, nonmembers.records]).take(order)
    owners = np.concatenate([members.people, nonmembers.people + _count_people(members)])[order]
    is_member = np.repeat([True, False], [len(members.records), len(nonmembers.records)])[order]
    places = np.concatenate([members.places, np.full(len(nonmembers.records), -1)])[order]
    _, first, people = np.unique(owners, return_index=True, return_inverse=True)
    lowest = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(lowest, people, places)
    return Fold(records, np.asarray(people, np.int64), is_member[first], lowest, threat, telling)
