"""What an audit may publish: a record changes one of four counts by one, and the ledger pays before any is measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.auditing.copied_records import TABLE, make_sets, make_table
from tests.auditing.released_table import CODES, make_broken_release, make_codes, make_release

from sundog.auditing import audit_publication
from sundog.auditing.audit_inputs import RealData
from sundog.auditing.audit_publication import PURPOSE, AuditPublication
from sundog.auditing.auditor import audit
from sundog.data.reading.read import encode, read
from sundog.data.records import Records, concatenate
from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, DataError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import noisy_histogram
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release

SETS = Schema.from_dict(
    {"columns": {"basket": {"type": "set", "universe": 80, "max_size": 60}, "on": {"type": "boolean"}}}
)


def make_ledger(epsilon: float = 1.0) -> Ledger:
    return Ledger(epsilon=epsilon, delta=1e-6)


def plan(release: Release, *, epsilon: float = 0.5, ledger: Ledger | None = None) -> AuditPublication:
    return AuditPublication.plan(release, epsilon=epsilon, ledger=ledger or make_ledger())


def draw_real(members: int, nonmembers: int) -> RealData:
    tables = [make_table(np.random.default_rng(seed), rows) for seed, rows in ((100, members), (200, nonmembers))]
    return RealData(tables[0], tables[1], None, None, None)


def draw_sets(rows: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"basket": make_sets(rng, rows), "on": rng.random(rows) < 0.3}


def make_releases() -> dict[str, tuple[Release, Records]]:
    """A release of each kind of model that has figures to publish, and records like its own."""
    table, sets = make_table(np.random.default_rng(7), 300), draw_sets(300, 0)
    fits = {
        "independent": (Synthesizer("independent", delta=1e-6, seed=0), table, TABLE),
        "marginals": (Synthesizer("marginals", epsilon=50.0, delta=1e-6, seed=0), table, TABLE),
        "mixture": (Synthesizer("marginals", delta=1e-6, clusters=2, seed=0), table, TABLE),
        "sets": (Synthesizer("independent", delta=1e-6, seed=0), sets, SETS),
    }
    return {
        name: (synth.fit(data, schema).release_, encode(read(data, schema), schema))
        for name, (synth, data, schema) in fits.items()
    }


@pytest.mark.filterwarnings("ignore:epsilon = 50")
def test_a_record_changes_one_count_by_one_wherever_it_is_put() -> None:
    for name, (release, records) in make_releases().items():
        planned = plan(release)
        members, others, record = records.take(slice(1, 120)), records.take(slice(120, 300)), records.take([0])
        before = planned.count(members, others)
        assert before.sum() == len(members) + len(others)
        assert 0 < before[0] < len(members), name
        for place in (0, len(members)):
            joined = concatenate([members.take(slice(place)), record, members.take(slice(place, None))])
            change = planned.count(joined, others) - before
            assert sorted(change[:2]) == [0, 1], name
            assert (change[2:] == 0).all(), name
        change = planned.count(members, concatenate([others, record])) - before
        assert (change[:2] == 0).all(), name
        assert sorted(change[2:]) == [0, 1], name


@pytest.mark.filterwarnings("ignore:epsilon = 50")
def test_the_score_of_a_record_depends_on_no_other_to_the_last_bit() -> None:
    for name, (release, records) in make_releases().items():
        planned, fresh = plan(release), records.take(slice(200, 300))
        whole = planned._score(records, fresh)
        for place in range(40):
            assert planned._score(records.take([place]), fresh)[0] == whole[place], name


def test_the_ledger_pays_exactly_what_was_asked_for() -> None:
    ledger = make_ledger()
    real = draw_real(300, 300)
    plan(make_release(), ledger=ledger, epsilon=0.4).measure(real)
    assert 0.395 < ledger.compute_spent() <= 0.4
    assert [charge.purpose for charge in ledger.charges] == [PURPOSE]


def test_the_figures_are_close_to_the_truth() -> None:
    members, nonmembers = make_codes(600, 0), make_codes(600, 1)
    leaking = make_broken_release(members)
    planned = plan(leaking, epsilon=5.0, ledger=make_ledger(5.0))
    counts = planned.count(*(encode(read(each, CODES), CODES) for each in (members, nonmembers)))
    found = planned.measure(RealData(members, nonmembers, None, None, None))
    share, other = counts[0] / counts[:2].sum(), counts[2] / counts[2:].sum()
    assert found["membership.members_guessed"].value == pytest.approx(share, abs=0.05)  # noise of σ < 1 on 600
    assert found["membership.advantage"].value == pytest.approx(share - other, abs=0.1)
    assert found["membership.advantage"].low <= share - other <= found["membership.advantage"].high


def test_a_person_is_protected_with_all_records() -> None:
    schema = Schema.from_dict({**TABLE.to_dict(), "unit": "id", "cap": 3})
    rng = np.random.default_rng(0)
    people = [make_table(rng, 300).assign(id=[f"{kind}/{n // 5}" for n in range(300)]) for kind in "ab"]
    release = Synthesizer("independent", delta=1e-6).fit(people[0], schema).release_
    ledger = make_ledger()
    planned = plan(release, ledger=ledger)
    planned.measure(RealData(people[0], people[1], None, None, None))
    assert ledger.charges[0].count == 6  # the cap, in two counts
    assert planned.sigma > plan(make_release()).sigma


def test_what_cannot_be_published_is_refused_before_anything_is_read() -> None:
    nowhere: dict[str, Any] = {"members": "no.csv", "nonmembers": "no.csv"}
    ledger = make_ledger(0.3)
    with pytest.raises(BudgetExceededError):
        audit(make_release(), **nowhere, publish=0.5, ledger=ledger)
    with pytest.raises(DataError, match="both an ε and a ledger"):
        audit(make_release(), **nowhere, publish=0.2)
    with pytest.raises(DataError, match="only figures about a release"):
        audit(make_table(np.random.default_rng(0), 30), **nowhere, schema=TABLE, publish=0.2, ledger=ledger)
    seeded = Ledger(epsilon=1.0, delta=1e-6, noise=NoiseSource.seeded(0))
    with pytest.raises(SundogError, match="not private"):
        audit(make_release(), **nowhere, publish=0.2, ledger=seeded)
    forged = replace(make_release(), certificate=make_release().certificate.model_copy(update={"epsilon": 0.01}))
    with pytest.raises(SundogError, match="not private"):
        audit(forged, **nowhere, publish=0.2, ledger=ledger)
    rbm = Synthesizer("rbm", delta=1e-6, settings={"epochs": 1}).fit(make_table(np.random.default_rng(0), 100), TABLE)
    with pytest.raises(DataError, match="likelihood of rbm may depend on other records"):
        audit(rbm.release_, **nowhere, publish=0.2, ledger=ledger)
    columns = {**TABLE.to_dict()["columns"], "old": {"type": "categorical", "values": ["no", "yes"], "public": True}}
    public = Synthesizer("independent", delta=1e-6).fit(
        make_table(np.random.default_rng(0), 100), Schema.from_dict({"columns": columns})
    )
    with pytest.raises(DataError, match="columns are public"):
        audit(public.release_, **nowhere, publish=0.2, ledger=ledger)
    assert ledger.compute_spent() == 0


def test_all_records_are_counted_not_those_that_are_attacked() -> None:
    seen: list[int] = []

    def measure(counts: Any, **options: Any) -> Any:
        seen.extend([int(counts[:2].sum()), int(counts[2:].sum())])
        return noisy_histogram(counts, **options)

    real = draw_real(300, 200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_publication, "noisy_histogram", measure)
        found = audit(
            make_release(),
            members=real.members,
            nonmembers=real.nonmembers,
            attack="likelihood",
            rows=50,
            publish=0.5,
            ledger=make_ledger(),
        )
    assert seen == [300, 200]
    assert set(found.published) == set(audit_publication.METRICS)
    assert found.notes[-1] == "The published figures cost ε = 0.5 (δ = 10⁻⁶) of the ledger."
    assert found.to_dict()["published"]["membership"]["advantage"]["low"] < 0.1
    assert found.to_dict()["private"].endswith("except `published`")
    assert "May be published" in found.to_html()


@pytest.mark.parametrize("exact", [False, True])
def test_figures_without_noise_are_noticed(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if exact:
        monkeypatch.setattr(audit_publication, "noisy_histogram", lambda counts, **_: counts)
    real = draw_real(300, 300)
    found = [plan(make_release(), epsilon=0.01).measure(real) for _ in range(2)]
    assert (found[0] == found[1]) is exact  # four counts with noise of σ = 400 are the same once in 10¹²
