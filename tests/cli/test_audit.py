"""The command `audit`: exit codes, output, and bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.auditing.canaries.test_canary_audit import scale_count_noise
from tests.auditing.copied_records import TABLE, copy_rarest, make_material, make_table
from tests.auditing.released_table import make_broken_release, make_codes, make_release
from tests.auditing.replay.planted_breaches import tell_count
from tests.cli.calling import Sundog

from sundog.privacy.ledger import Ledger
from sundog.release.release import Release

pytestmark = pytest.mark.usefixtures("seeded_twins")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, a broken one, the table of another tool that holds copies, and real data."""
    folder = tmp_path_factory.mktemp("made")
    make_release().save(folder / "table.sundog")
    for name, seed in (("members", 100), ("nonmembers", 200)):
        make_table(np.random.default_rng(seed), 800).to_csv(folder / f"{name}.csv", index=False)
    members = make_codes(600, 0)
    members.to_csv(folder / "code_members.csv", index=False)
    make_codes(600, 1).to_csv(folder / "code_nonmembers.csv", index=False)
    make_broken_release(members).save(folder / "broken.sundog")
    TABLE.save(folder / "s.yaml")
    leaking = copy_rarest(make_material("table"))
    leaking.synthetic.to_csv(folder / "other.csv", index=False)
    leaking.members.to_csv(folder / "other_members.csv", index=False)
    leaking.nonmembers.to_csv(folder / "other_nonmembers.csv", index=False)
    return folder


@pytest.fixture(autouse=True)
def _inside(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)


def test_a_release_that_holds_ends_with_zero(sundog: Sundog) -> None:
    called = sundog("audit", "table.sundog", "--members", "members.csv", "--nonmembers", "nonmembers.csv", "--quick")
    assert called.code == 0, called.err
    private, *found = called.out.splitlines()
    assert "as private as the records" in private
    assert found[0] == "Nothing was found that breaks the promise of ε = 1."
    assert found[1].startswith("Membership: ")
    assert "exact-match" in called.out
    assert "not tried:" in called.out
    assert all(
        f"\n{stage}: " in called.err for stage in ("attack likelihood", "replay", "canaries", "game")
    )  # progress
    assert all(f"{name}: " in called.out for name in ("Membership", "Replay", "Canaries", "Game"))
    assert "\n  replay     30 neighbours compared, " in called.out
    assert "Compared were: extreme values 2, copies 2, other spellings of valid values " in called.out
    assert "is promised at δ = 10⁻⁹" in called.out
    assert called.out.count("charged ε = 1 at δ = 10⁻⁶") == 2  # canaries and game


def test_one_attack_that_cannot_be_run_is_an_error(sundog: Sundog) -> None:
    real = ("--members", "members.csv", "--nonmembers", "nonmembers.csv")
    called = sundog("audit", "table.sundog", *real, "--attack", "critic")
    assert called.code == 2
    assert "attack 'critic' cannot be run: needs" in called.err


def test_members_as_nonmembers_are_refused_however_many_there_are(sundog: Sundog, made: Path) -> None:
    rng = np.random.default_rng(0)
    pd.DataFrame({"id": rng.permutation(300_000)}).to_csv(made / "many.csv", index=False)
    (made / "many.yaml").write_text("columns: {id: {type: integer, min: 0, max: 299999}}")
    (made / "link.csv").symlink_to(made / "many.csv")
    for nonmembers in ("./many.csv", str(made / "many.csv"), "link.csv"):
        options = ("--schema", "many.yaml", "--members", "many.csv", "--nonmembers", nonmembers, "--quick")
        called = sundog("audit", "many.csv", *options)
        assert called.code == 2
        shown = Path(nonmembers).name
        assert f"{shown}: these are the members; give records that the release was not fitted on" in called.err


def test_a_broken_promise_ends_with_one(sundog: Sundog) -> None:
    real = ("--members", "code_members.csv", "--nonmembers", "code_nonmembers.csv")
    called = sundog("audit", "broken.sundog", *real, "--attack", "likelihood", "--json")
    assert called.code == 1
    assert called.json["violated"] is True
    (finding,) = called.json["findings"]
    assert finding["bound"] > finding["promise"] > 1.0
    assert finding["delta"] == 1e-9
    assert len(called.json["worst_records"]) == 100
    assert called.json["private"].startswith("measured on private records")


def test_the_table_of_another_tool_is_flagged_and_ends_with_zero(sundog: Sundog) -> None:
    real = ("--members", "other_members.csv", "--nonmembers", "other_nonmembers.csv")
    called = sundog("audit", "other.csv", "--schema", "s.yaml", *real, "--attack", "exact-match")
    assert called.code == 0, called.err
    assert called.out.splitlines()[1].startswith("Records leak; nothing was promised.")
    assert " at δ = 10⁻⁹; nothing is promised." in called.out


def test_a_split_by_age_ends_with_two(sundog: Sundog, made: Path) -> None:
    people = make_table(np.random.default_rng(3), 4000)
    people[people.age < 40][:400].to_csv(made / "young.csv", index=False)
    people[people.age >= 60][:400].to_csv(made / "old.csv", index=False)
    real = ("--members", "young.csv", "--nonmembers", "old.csv")
    called = sundog("audit", "young.csv", "--schema", "s.yaml", *real, "--attack", "euclidean-distance")
    assert called.code == 2
    assert "\nCannot be judged: members and non-members differ even without the release.\n" in called.out


REAL = ("--members", "members.csv", "--nonmembers", "nonmembers.csv")


@pytest.mark.parametrize(
    ("name", "plant"),
    [("replay", tell_count), ("canaries", scale_count_noise(0.1)), ("game", scale_count_noise(0.1))],
)
def test_a_broken_program_ends_with_one(
    name: str, plant: Callable[[pytest.MonkeyPatch], None], sundog: Sundog, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("audit", "table.sundog", *REAL, "--audit", name, "--quick", "--json")
    called = sundog(*asked)
    assert (called.code, called.json["violated"]) == (0, False)
    plant(monkeypatch)
    called = sundog(*asked)
    assert (called.code, called.json["violated"]) == (1, True)
    (finding,) = called.json["findings"]
    assert (finding["name"], finding["verdict"]) == (name, "the promise is broken")
    assert name == "replay" or finding["bound"] > finding["promise"]
    assert called.json["headline"].startswith("The promise of ε = 1 is broken. ")


def test_audits_can_be_chosen_and_the_rest_is_listed(sundog: Sundog) -> None:
    called = sundog("audit", "table.sundog", *REAL, "--audit", "replay", "--audit", "game", "--quick", "--json")
    assert [finding["name"] for finding in called.json["findings"]] == ["replay", "game"]
    assert called.json["findings"][1]["details"]["runs"] == 200
    assert "attacks on membership: ask for --audit membership" in called.json["not_tried"]
    assert "canaries: not asked for; ask for --audit canaries" in called.json["not_tried"]


def test_fits_are_not_repeated_where_there_is_none_or_that_of_another_version(sundog: Sundog, made: Path) -> None:
    real = ("--members", "other_members.csv", "--nonmembers", "other_nonmembers.csv")
    called = sundog("audit", "other.csv", "--schema", "s.yaml", *real, "--quick")
    assert "  replay: it repeats the fit of a release, and this is not one\n" in called.out
    release = Release.load(made / "table.sundog")
    manifest = {**release.manifest, "libraries": {**release.manifest["libraries"], "sundog": "0.0.7"}}
    replace(release, libraries=manifest["libraries"], manifest=manifest).save(made / "old.sundog")
    called = sundog("audit", "old.sundog", *REAL, "--audit", "game")
    assert "game: the release was made by sundog 0.0.7, and a fit by " in called.complaint


def test_figures_are_published_for_a_price(sundog: Sundog, made: Path) -> None:
    Ledger.create(made / "a.ledger", epsilon=1.0, delta=1e-6)
    asked = ("audit", "table.sundog", *REAL, "--attack", "likelihood", "--publish", "0.9", "--ledger", "a.ledger")
    called = sundog(*asked, "-o", "paid.html")
    assert called.code == 0, called.err
    assert "may be published (ε = 0.9 of a.ledger):\n  membership.members_guessed " in called.err
    assert 0.89 < Ledger.open(made / "a.ledger").compute_spent() <= 0.9
    assert "May be published" in (made / "paid.html").read_text("utf-8")
    assert "would bring ε to 1.3" in sundog(*asked).complaint


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (["--audit", "gmae"], "there is no audit 'gmae'; did you mean 'game'?"),
        (["--audit", "game"], "attack 'exact-match' is on membership; add --audit membership, or leave one of them"),
        (["--set", "epochs=3"], "model 'independent' has no setting 'epochs'; "),
        (["--publish", "0.5"], "publish needs both an ε and a ledger of the real data"),
        (["--members", "nowhere.csv"], "nowhere.csv: there is no such file"),
        (["--nonmembers", "./members.csv"], "members.csv: these are the members; give records that the release was"),
        (["--reference", "nonmembers.csv"], "nonmembers.csv: these are the non-members; give further records of the"),
        (["--device", "tpu"], "there is no device 'tpu'; choose cpu or cuda"),
        (["--device", "cuda"], "attack 'exact-match' does not use device; leave it out, or name one of gan, "),
        (["--attack", "psychic"], "there is no attack 'psychic'; "),
        (["--private", "members.csv"], "members.csv: is not the curator's part of a release"),
        (["--rows", "3"], "3 records of each kind are too few for an audit"),
        (["-o", "audit.pdf"], "audit.pdf: a report is one .html file; choose such a name"),
        (["--schema", "s.yaml"], "a release has its own schema"),
    ],
)
def test_bad_input_is_one_line(changed: list[str], complaint: str, sundog: Sundog) -> None:
    given = {"--members": "members.csv", "--nonmembers": "nonmembers.csv", "--attack": "exact-match"}
    given |= {changed[0]: changed[1]}
    called = sundog("audit", "table.sundog", *(part for pair in given.items() for part in pair))
    assert complaint in called.complaint


def test_a_draft_that_does_not_fit_names_the_file_to_edit(sundog: Sundog, made: Path) -> None:
    """Without a schema one is drafted: the fix must be a command, since there is no file to edit."""
    pd.DataFrame({"age": range(100), "town": list("ab") * 50}).to_csv(made / "my members.csv", index=False)
    pd.DataFrame({"age": range(100), "town": list("ac") * 50}).to_csv(made / "towns.csv", index=False)
    pd.DataFrame({"age": range(99, 199)}).to_csv(made / "ages.csv", index=False)
    audit = ("audit", "towns.csv", "--members", "my members.csv", "--nonmembers")
    for called, complaint in (
        (sundog(*audit, "ages.csv"), "ages.csv: column 'town' is missing"),
        (sundog("evaluate", "ages.csv", "--real", "my members.csv"), "ages.csv: column 'town' is missing"),
    ):
        assert called.code == 2
        assert f"\nsundog: {complaint}" in called.err
        assert called.err.endswith(
            "; the schema was drafted from my members.csv: `sundog schema 'my members.csv' -o schema.yaml`, edit it, "
            "and give `--schema schema.yaml`\n"
        )
    assert sundog(*audit, "nowhere.csv").err.endswith("nowhere.csv: there is no such file; check the path\n")


def test_a_draft_covers_members_and_nonmembers(sundog: Sundog, made: Path) -> None:
    pd.DataFrame({"age": range(100), "town": list("ab") * 50}).to_csv(made / "narrow.csv", index=False)
    pd.DataFrame({"age": range(50, 150), "town": list("cd") * 50}).to_csv(made / "wide.csv", index=False)
    for members, others in (("narrow.csv", "wide.csv"), ("wide.csv", "narrow.csv")):
        called = sundog("audit", "narrow.csv", "--members", members, "--nonmembers", others, "--attack", "exact-match")
        assert "\nMembership: " in called.out, called.err  # both are read


def test_a_draft_that_fails_names_the_file_and_the_fix(sundog: Sundog, made: Path) -> None:
    pd.DataFrame({"id": [f"p{number}" for number in range(100)]}).to_csv(made / "ids.csv", index=False)
    called = sundog("audit", "towns.csv", "--members", "ids.csv", "--nonmembers", "members.csv")
    assert "ids.csv: no column is left to draft from; write the schema by hand, and give it with `--sch" in called.err


def test_the_output_is_json_alone(sundog: Sundog) -> None:
    real = ("--members", "members.csv", "--nonmembers", "nonmembers.csv")
    called = sundog("audit", "table.sundog", *real, "--attack", "likelihood-ratio", "--json", "--seed", "4")
    found = json.loads(called.out)
    assert list(found["attacks"]) == ["likelihood-ratio"]
    assert found["about"]["seed"] == 4


def test_the_page_is_written_and_replaces_no_input(sundog: Sundog, made: Path) -> None:
    real = ("--members", "members.csv", "--nonmembers", "nonmembers.csv", "--attack", "likelihood")
    called = sundog("audit", "table.sundog", *real, "-o", "audit.html")
    assert called.code == 0, called.err
    assert "audit.html: the whole report" in called.err
    assert "Audit of synthetic data" in (made / "audit.html").read_text("utf-8")
    again = sundog("audit", "table.sundog", *real, "-o", "audit.html")
    assert again.code == 0  # a report of sundog may be replaced
    assert "members.csv" in sundog("audit", "table.sundog", *real, "-o", "members.csv").complaint
