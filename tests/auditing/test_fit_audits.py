"""Audits that repeat the fit of a release: which of them are run, on what, and what they find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.auditing.copied_records import TABLE, make_images, make_material, make_table
from tests.auditing.released_table import make_release
from tests.auditing.replay.planted_breaches import tell_count
from tests.auditing.replay.replay_cases import CASES, IMAGES

from sundog.auditing.auditor import audit
from sundog.auditing.finding import Finding, Verdict
from sundog.auditing.fit_audit import RepeatedFit
from sundog.auditing.fit_audit_list import choose_fit_audits, list_fit_audits
from sundog.auditing.fit_recipe import FitRecipe
from sundog.auditing.games import game_audit
from sundog.auditing.games.game import ChargeDependenceError
from sundog.auditing.membership import FAILURE
from sundog.auditing.report.fit_audit_sections import render_fit_audit
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.errors import ArgumentError, DataError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.independent import independent
from sundog.privacy.ledger import Ledger
from sundog.privacy.measure_once import measure_once
from sundog.progress import silent
from sundog.release.release import Release

pytestmark = pytest.mark.usefixtures("no_fsync", "remembered_answers", "one_thread", "seeded_twins")

AUDITS = {each.name: each for each in list_fit_audits()}
LABELLED = Schema.from_dict(
    {"columns": {"image": {"type": "image", "shape": [6, 5]}, "label": {"type": "categorical", "values": list("abc")}}}
)


def repeat(
    name: str, release: Release, members: Any, *, settings: dict[str, Any] | None = None, labels: Any = None
) -> Finding:
    recipe = FitRecipe(release, settings or {})
    records = encode(read(members, release.schema, labels=labels), release.schema)
    fit = RepeatedFit(recipe, members, labels, records, quick=True, seed=0, progress=silent)
    return AUDITS[name].run(fit, failure=0.01)


def fit_case(name: str) -> tuple[Release, dict[str, Any]]:
    case = CASES[name]
    options = {"epsilon": 1.0, **case.settings}
    release = Synthesizer(case.model, seed=0, **options).fit(case.data, case.schema).release_
    return release, options.get("settings", {})


# --- which audits are run ---


def list_chosen(recipe: FitRecipe | None, *names: str, attack: str = "all") -> tuple[list[str], dict[str, str]]:
    chosen, untried = choose_fit_audits(names, recipe, attack=attack)
    return [each.name for each in chosen], untried


def test_all_that_are_quick_are_run_by_default() -> None:
    tables, network = FitRecipe(make_release()), FitRecipe(fit_case("vae")[0])
    assert list_chosen(tables) == (["replay", "canaries", "game"], {})
    chosen, untried = list_chosen(network)
    assert chosen == ["replay", "game"]
    assert untried == {"canaries": "a twin takes as long to train as the release did; ask for --audit canaries"}
    assert list_chosen(network, "all") == (["replay", "canaries", "game"], {})


def test_those_that_are_named_are_run_alone() -> None:
    recipe = FitRecipe(make_release())
    chosen, untried = list_chosen(recipe, "game")
    assert (chosen, list(untried)) == (["game"], ["replay", "canaries"])
    assert list_chosen(recipe, attack="likelihood")[0] == []
    assert list_chosen(recipe, "membership", "replay", attack="likelihood")[0] == ["replay"]


@pytest.mark.parametrize(
    ("case", "untried"),
    [
        (None, {"replay": "not one", "canaries": "not one", "game": "not one"}),
        ("public", {"replay": "public records", "canaries": "public records", "game": "public records"}),
        ("clusters of rbm", {"canaries": "in a mixture of rbm", "game": "there is none for a mixture of rbm"}),
    ],
)
def test_what_does_not_apply_is_said_and_refused_if_it_is_named(case: str | None, untried: dict[str, str]) -> None:
    recipe = None if case is None else FitRecipe(fit_case(case)[0])
    _, found = list_chosen(recipe)
    assert found.keys() == untried.keys()
    assert all(reason in found[name] for name, reason in untried.items())
    assert list_chosen(recipe, "all")[1] == found
    with pytest.raises(ArgumentError, match=r"game: .*; leave out --audit game"):
        list_chosen(recipe, "game")


def test_public_columns_are_not_replayed() -> None:
    columns = {**TABLE.to_dict()["columns"], "age": {"type": "integer", "min": 0, "max": 99, "public": True}}
    table = make_table(np.random.default_rng(0), 100)
    release = Synthesizer("independent", delta=1e-6).fit(table, Schema.from_dict({"columns": columns})).release_
    assert "some columns are public" in list_chosen(FitRecipe(release))[1]["replay"]


# --- what is found ---


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("replay", "people"),
        ("replay", "sets"),
        ("replay", "images, independent"),
        ("replay", "clusters of rbm"),
        ("replay", "learned"),
        ("canaries", "people"),
        ("canaries", "vae"),
        ("canaries", "images, independent"),
        ("game", "images, independent"),
    ],
)
def test_a_correct_fit_is_not_accused(name: str, case: str) -> None:
    release, settings = fit_case(case)
    found = repeat(name, release, CASES[case].data, settings=settings)
    assert found.verdict is Verdict.HOLDS, found
    if name == "replay":
        assert found.details["learned_schema_again"] is (True if case == "learned" else None)


def test_members_of_any_source_are_replayed_as_values() -> None:
    labels = np.array(IMAGES["label"])
    release = Synthesizer("independent", delta=1e-6).fit(IMAGES["image"], LABELLED, labels=labels).release_
    found = repeat("replay", release, IMAGES["image"], labels=labels)
    assert found.verdict is Verdict.HOLDS
    assert found.details["not_tried"] == [
        "how members are read from their source: replay was of their values, as their labels are not part of them"
    ]
    sets = make_material("sets", rows=60)
    release = Synthesizer("independent", delta=1e-6).fit(sets.members, sets.schema).release_
    assert repeat("replay", release, sets.members).verdict is Verdict.HOLDS  # a sparse matrix


def test_that_values_are_replayed_instead_of_the_source_is_said() -> None:
    """If a fit of the source fails, its values are replayed; the page and the list of what was not tried say so."""
    release, members = make_release(), make_table(np.random.default_rng(100), 300)
    records = encode(read(members, release.schema), release.schema)
    recipe = FitRecipe(release, {})
    found, as_values = (
        AUDITS["replay"].run(RepeatedFit(recipe, source, None, records, True, 0, silent), failure=0.01)
        for source in (members, members.assign(age=1000))
    )
    assert found.details["replayed_as_given"]
    assert not found.details["not_tried"]
    assert as_values.verdict is Verdict.HOLDS
    assert as_values.summary.endswith("Their values were replayed, not the source that holds them.")
    (line,) = as_values.details["not_tried"]
    assert "replay was of their values, as the run to replay fails: DataError: " in line
    assert "how their source is read was not looked at" in str(render_fit_audit(as_values))


def test_canaries_that_have_no_place_are_said_to_have_none() -> None:
    sets = make_material("sets", rows=100)
    release = Synthesizer("independent", delta=1e-6).fit(sets.members, sets.schema).release_
    given: dict[str, Any] = {"members": sets.members, "nonmembers": sets.nonmembers, "quick": True}
    found = audit(release, **given, audits=["all"], n=100)
    assert any(line.startswith("canaries: canaries need a private column") for line in found.not_tried)
    assert [each.name for each in found.findings] == ["membership", "replay", "game"]
    with pytest.raises(SundogError, match=r"^canaries: canaries need a private column"):
        audit(release, **given, audits=["canaries"])


def test_a_message_with_a_count_is_found_by_replay_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    release, members = make_release(), make_table(np.random.default_rng(100), 800)
    tell_count(monkeypatch)
    found = repeat("replay", release, members)
    assert found.is_violation
    assert "counting 300 records became counting 301 records" in found.details["first_differences"][0]
    assert not repeat("game", release, members).is_violation


def spend_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fits of `independent` pay for their marginals once more than planned."""

    def measure(purpose: str, charges: Any, work: Any, ledger: Ledger, checkpoint: Any) -> Any:
        for charge in charges:
            ledger.spend(charge)
        return measure_once(purpose, charges, work, ledger, checkpoint)

    monkeypatch.setattr(independent, "measure_once", measure)


def test_a_twin_that_overspends_breaks_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    members, nonmembers = (make_table(np.random.default_rng(seed), 300) for seed in (100, 200))
    given: dict[str, Any] = {"members": members, "nonmembers": nonmembers, "quick": True, "audits": ["canaries"]}
    assert audit(make_release(), **given).verdict is Verdict.HOLDS
    spend_twice(monkeypatch)
    found = audit(make_release(), **given)
    assert found.is_violated
    assert "does not keep to its budget: refused: " in found.findings[0].summary
    assert found.findings[0].summary in found.to_text()
    assert found.to_html().count("does not keep to its budget") == 2  # in the list and in its own section


def test_an_error_is_not_taken_for_an_audit_that_does_not_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise DataError("a fault")

    monkeypatch.setattr(game_audit, "play_game", fail)
    members, nonmembers = (make_table(np.random.default_rng(seed), 100) for seed in (100, 200))
    with pytest.raises(DataError, match=r"^a fault$"):
        audit(make_release(), members=members, nonmembers=nonmembers, quick=True, audits=["membership", "game"])


def test_a_charge_that_depends_on_the_record_breaks_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(*_: Any, **__: Any) -> None:
        raise ChargeDependenceError("game 'x': what is charged depends on the data or on the noise")

    monkeypatch.setattr(game_audit, "play_game", play)
    found = repeat("game", make_release(), make_table(np.random.default_rng(100), 100))
    assert found.is_violation
    assert "what is charged depends on the data" in found.summary


# --- together ---


def test_audits_that_may_accuse_a_correct_release_share_the_failures() -> None:
    members, nonmembers = (make_table(np.random.default_rng(seed), 300) for seed in (100, 200))
    given: dict[str, Any] = {"members": members, "nonmembers": nonmembers, "quick": True}
    for audits, sharing in ((["all"], 3), (["game", "replay"], 1)):
        found = audit(make_release(), audits=audits, **given)
        confidences = [each.details["confidence"] for each in found.findings if each.name != "replay"]
        assert confidences == [pytest.approx(1 - FAILURE / sharing)] * sharing


def test_settings_that_are_not_those_of_the_release_are_noticed() -> None:
    members, nonmembers = (make_images(np.random.default_rng(seed), 60) for seed in (0, 1))
    schema = Schema.from_dict({"columns": {"image": {"type": "image", "shape": [8, 8]}}})
    settings = {"epochs": 2, "batch": 20, "hidden": 8}
    release = Synthesizer("vae", epsilon=4.0, settings=settings).fit(members, schema).release_
    given: dict[str, Any] = {"members": members, "nonmembers": nonmembers, "audits": ["replay"], "quick": True, "n": 60}
    notes = [audit(release, settings=each, **given).notes for each in (settings, {})]
    assert [any("Repeat the settings of the fit with --set" in note for note in each) for each in notes] == [
        False,
        True,
    ]


def test_a_release_of_another_version_is_attacked_only() -> None:
    members, nonmembers = (make_table(np.random.default_rng(seed), 100) for seed in (100, 200))
    old = replace(make_release(), libraries={"sundog": "0.0.7"})
    found = audit(old, members=members, nonmembers=nonmembers, n=100)
    assert [each.name for each in found.findings] == ["membership"]
    assert sum("was made by sundog 0.0.7" in line for line in found.not_tried) == 3


def test_membership_need_not_be_audited() -> None:
    members, nonmembers = (make_table(np.random.default_rng(seed), 100) for seed in (100, 200))
    found = audit(make_release(), members=members, nonmembers=nonmembers, audits=["game"], quick=True)
    assert found.attacked is None
    assert found.worst == ()
    assert "attacks" not in found.to_dict()
    said = found.to_text().splitlines()
    assert said[0].startswith("measured on private records without a budget: as private as the records")
    assert said[1] == "Nothing was found that breaks the promise of ε = 1."
    assert said[2].startswith("Game: In 200 fits of independent")
    assert "attacks on membership: ask for --audit membership" in found.not_tried
    with pytest.raises(SundogError, match="membership was not audited"):
        found.similarity  # noqa: B018
    assert "Why similarity is not evidence" not in found.to_html()


@pytest.mark.slow
def test_few_of_100_correct_releases_are_accused() -> None:
    accused = 0
    for seed in range(100):
        members, nonmembers = (make_table(np.random.default_rng([seed, kind]), 200) for kind in (0, 1))
        release = Synthesizer("independent", epsilon=1.0, delta=1e-6, seed=seed).fit(members, TABLE).release_
        found = audit(release, members=members, nonmembers=nonmembers, seed=seed, quick=True)
        accused += found.is_violated
    assert accused <= 13  # 5 are allowed on average; more than 13 have a probability below 0.001
