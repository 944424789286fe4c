"""Whole audits: of releases as they should be, of broken ones, of people, and of what cannot be judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.auditing.copied_records import TABLE, make_table
from tests.auditing.released_table import CODES, make_broken_release, make_codes, make_release

import sundog
from sundog.auditing.auditor import audit
from sundog.auditing.finding import Verdict, reach_verdict
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.record_count import compute_fit_epsilon

pytestmark = pytest.mark.usefixtures("seeded_twins")


def test_a_release_as_it_should_be_holds_and_says_what_was_not_tried() -> None:
    members, nonmembers = (make_table(np.random.default_rng(seed), 800) for seed in (100, 200))
    found = audit(make_release(), members=members, nonmembers=nonmembers, quick=True)
    finding, *repeated = found.findings
    assert {each.name: each.verdict for each in repeated} == dict.fromkeys(
        ["replay", "canaries", "game"], Verdict.HOLDS
    )
    assert finding.verdict is Verdict.HOLDS
    assert finding.promise == pytest.approx(compute_fit_epsilon(make_release().certificate.charges, delta=1e-9))
    assert 1.0 < (finding.promise or 0.0) < 2.0
    assert not found.is_violated
    tried = {attack.name for attack in found.membership.attacks}
    assert {"likelihood", "likelihood-ratio", "exact-match", "known-members"} <= tried
    assert any(line.startswith("critic: needs the private file") for line in found.not_tried)
    assert (finding.bound or 0.0) < (
        finding.promise or 0.0
    )  # a fit of 800 records may reveal a little: that much is allowed
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.to_dict()["private"].startswith("measured on private records")


@pytest.mark.parametrize(("broken", "verdict"), [(True, Verdict.BROKEN), (False, Verdict.HOLDS)])
def test_a_release_without_noise_breaks_its_promise(broken: bool, verdict: Verdict) -> None:
    members, nonmembers = make_codes(600, 0), make_codes(600, 1)
    honest = Synthesizer("independent", epsilon=1.0, delta=1e-6, seed=0).fit(members, CODES).release_
    release = make_broken_release(members) if broken else honest
    found = audit(release, members=members, nonmembers=nonmembers, attack="likelihood", n=600)
    assert found.findings[0].verdict is verdict
    assert found.is_violated == broken
    assert found.not_tried[0] == "all attacks but likelihood: ask for --attack all"


def test_a_split_that_is_not_random_is_no_evidence() -> None:
    """Members are young and others old: any attack distinguishes them, and so does a look at the records alone."""
    rng = np.random.default_rng(0)
    people = make_table(rng, 6000)
    members, nonmembers = people[people.age < 40][:800], people[people.age >= 60][:800]
    found = audit(
        make_table(rng, 800)[lambda table: table.age < 40], members=members, nonmembers=nonmembers, schema=TABLE
    )
    (finding,) = found.findings
    assert finding.bound > 1
    assert finding.verdict is Verdict.UNUSABLE
    assert any("not a random split" in note for note in found.notes)


def test_it_says_what_could_have_been_found_at_most() -> None:
    """Of a release of 800 records, 29 members and 29 others prove nothing whatever is released; 800 could."""
    everyone, nonmembers = (make_table(np.random.default_rng(seed), 800) for seed in (100, 200))
    few = audit(make_release(), members=everyone[:29], nonmembers=nonmembers[:29], attack="density-ratio")
    (finding,) = few.findings
    assert finding.verdict is Verdict.HOLDS
    assert 0 <= (finding.provable or 0.0) < (finding.promise or 0.0)
    assert any(f"prove no more than ε = {finding.provable:.2f}, and ε = " in note for note in few.notes)
    assert any(
        note.startswith(f"29 members were given, and the release was fitted on about {make_release().records} ")
        for note in few.notes
    )
    assert f"{finding.provable:.2f}" in few.to_text()
    assert few.to_dict()["findings"][0]["provable"] == finding.provable
    enough = audit(make_release(), members=everyone, nonmembers=nonmembers, attack="density-ratio")
    assert (enough.findings[0].provable or 0.0) > 2 * (enough.findings[0].promise or 0.0)
    assert not any("would prove no more" in note or "were given" in note for note in enough.notes)


def test_verdicts() -> None:
    assert reach_verdict(0.0, 1.0) is Verdict.HOLDS
    assert reach_verdict(1.1, 1.0) is Verdict.BROKEN
    assert reach_verdict(0.5, None, blind=0.2) is Verdict.UNUSABLE
    assert reach_verdict(1.1, 1.0, blind=0.2) is Verdict.UNUSABLE
    assert reach_verdict(0.9, 1.0, blind=0.2) is Verdict.HOLDS
    assert reach_verdict(0.5, None) is Verdict.LEAKS
    assert reach_verdict(0.0, None) is Verdict.SILENT


def make_people(people: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = make_table(rng, 3 * people)
    return table.assign(id=[f"{seed}/{number}" for number in rng.permutation(np.repeat(np.arange(people), 3))])


def test_the_unit_of_an_audit_is_that_of_the_schema() -> None:
    schema = Schema.from_dict({**TABLE.to_dict(), "unit": "id", "cap": 2})
    members, nonmembers = make_people(300, 0), make_people(300, 1)
    synthetic = make_table(np.random.default_rng(5), 600)
    found = audit(synthetic, members=members, nonmembers=nonmembers, schema=schema, attack="euclidean-distance")
    assert found.membership.attacks[0].scored == 600  # people, of both kinds
    assert any("A candidate is a person (id)" in note for note in found.notes)
    shared = pd.concat([nonmembers, members[members.id == "0/7"]])
    with pytest.raises(DataError, match="DataFrame: 1 of its people are in DataFrame too"):
        audit(synthetic, members=members, nonmembers=shared, schema=schema)


def test_nothing_is_promised_about_public_columns() -> None:
    declared = TABLE.to_dict()
    declared["columns"]["age"]["public"] = True
    schema = Schema.from_dict(declared)
    members, nonmembers = (make_table(np.random.default_rng(seed), 300) for seed in (0, 1))
    release = Synthesizer("independent", epsilon=1.0, delta=1e-6, seed=0).fit(members, schema).release_
    found = audit(release, members=members, nonmembers=nonmembers, attack="exact-match")
    assert found.findings[0].promise is None
    assert any("Some columns are public" in note for note in found.notes)


def test_a_reference_sample_may_be_given(tmp_path: Path) -> None:
    members, nonmembers, reference, synthetic = (make_table(np.random.default_rng(seed), 300) for seed in range(4))
    reference.to_csv(tmp_path / "reference.csv", index=False)
    found = audit(
        synthetic,
        members=members,
        nonmembers=nonmembers,
        reference=tmp_path / "reference.csv",
        schema=TABLE,
        attack="density-ratio",
    )
    assert found.membership.attacks[0].scored == 600
    with pytest.raises(DataError, match=r"reference.csv: 100% of its records are in DataFrame too"):
        audit(synthetic, members=reference, nonmembers=nonmembers, reference=tmp_path / "reference.csv", schema=TABLE)


def test_the_same_seed_gives_the_same_figures_and_the_function_is_sundogs() -> None:
    members, nonmembers = (make_table(np.random.default_rng(seed), 200) for seed in (0, 1))
    synthetic = make_table(np.random.default_rng(2), 200)
    found = [
        sundog.audit(synthetic, members=members, nonmembers=nonmembers, schema=TABLE, seed=3).to_dict()
        for _ in range(2)
    ]
    for each in found:
        for attack in (*each["attacks"].values(), *each["baselines"].values()):
            attack.pop("seconds")
    assert found[0] == found[1]
