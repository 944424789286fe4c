"""The commands `evaluate` and `compare`, with valid and with invalid input."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.calling import Called, Sundog

from sundog.data.schema import Schema
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.ledger import Ledger

pytestmark = pytest.mark.usefixtures("fast_reports")

AGE = {"type": "integer", "min": 0, "max": 99}
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": AGE,
            "sex": {"type": "categorical", "values": ["f", "m"]},
            "old": {"type": "categorical", "values": ["no", "yes"]},
            "same": {"type": "categorical", "values": ["a", "b"]},
        }
    }
)


def make_people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    sex = rng.choice(["f", "m"], rows)
    return pd.DataFrame({"age": age, "sex": sex, "old": np.where(age > 60, "yes", "no"), "same": "a"})


def call(sundog: Sundog, line: str) -> Called:
    return sundog(*line.split())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real data, a holdout, two releases, and a table of another tool."""
    folder = tmp_path_factory.mktemp("made")
    make_people(400, 0).to_csv(folder / "real.csv", index=False)
    make_people(200, 1).to_csv(folder / "holdout.csv", index=False)
    make_people(300, 2).to_csv(folder / "other.csv", index=False)
    for epsilon in (1, 4):
        synthesizer = Synthesizer("independent", epsilon=epsilon, delta=1e-6, seed=0).fit(folder / "real.csv", SCHEMA)
        synthesizer.release_.save(folder / f"e{epsilon}.sundog")
    SCHEMA.save(folder / "s.yaml")
    return folder


@pytest.fixture(autouse=True)
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def test_evaluate_prints_figures_and_writes_a_page(sundog: Sundog) -> None:
    done = call(sundog, "evaluate e4.sundog --real real.csv --holdout holdout.csv --target old -o r.html")
    assert done.code == 0, done.err
    assert "fidelity.tvd_1way" in done.out
    assert "not for publication" in done.err
    page = Path("r.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "ε = 4" in page
    assert Path("r.html").stat().st_mode & 0o777 == 0o600
    assert "a classifier" in done.out.splitlines()[0].lower()  # or "Whether a classifier": that depends on the noise
    assert "warning" not in done.err


@pytest.mark.parametrize("command", ["evaluate e4.sundog", "compare e1.sundog e4.sundog"])
def test_a_holdout_that_equals_the_real_data_gives_a_warning(sundog: Sundog, command: str) -> None:
    shutil.copy("real.csv", "again.csv")
    done = call(sundog, f"{command} --real real.csv --holdout again.csv -o r.html")
    assert done.code == 0, done.err
    (warned,) = (line for line in done.err.splitlines() if line.startswith("warning: "))
    assert "100% of the held-out records are also among the real ones" in warned
    assert "100% of the held-out records are also among the real ones" in Path("r.html").read_text()


@pytest.mark.parametrize("command", ["evaluate e4.sundog", "compare e1.sundog e4.sundog"])
def test_a_full_disk_gives_one_line_that_names_the_report(
    sundog: Sundog, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = set(Path().iterdir())
    monkeypatch.setattr(os, "fsync", full)
    done = call(sundog, f"{command} --real real.csv -o r.html")
    assert done.code == 2
    (said,) = (line for line in done.err.splitlines() if line.startswith("sundog: "))
    assert said == (
        "sundog: r.html: cannot be written (the disk is full); nothing was kept, free space or choose another folder"
    )
    assert set(Path().iterdir()) == before


def test_stdout_has_only_json_with_the_stable_names(sundog: Sundog) -> None:
    done = call(sundog, "evaluate e4.sundog --real real.csv --holdout holdout.csv --target old --json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    for name in ("tvd_1way", "tvd_2way", "tvd_3way"):
        assert set(found["fidelity"][name]) == {"value", "low", "high"}
    for model in ("logistic", "forest", "boosting"):
        assert set(found["utility"]["tstr"][model]) >= {"accuracy", "balanced_accuracy", "auc"}
    assert found["utility"]["balanced_forest"]["value"] <= 1
    assert 0 < found["ceiling"]["fidelity"]["tvd_1way"]["value"] < found["floor"]["fidelity"]["tvd_2way"]["value"]
    assert set(found["floor"]["fidelity"]) == set(found["fidelity"])
    assert found["certificate"]["epsilon"] == 4


def test_the_same_seed_gives_the_same_figures(sundog: Sundog) -> None:
    first, second = (call(sundog, "evaluate e4.sundog --real real.csv --target old --json").out for _ in range(2))
    assert first == second


def test_a_table_of_another_tool_needs_no_release(sundog: Sundog) -> None:
    for schema in ("", "--schema s.yaml"):
        done = call(sundog, f"evaluate other.csv --real real.csv {schema} --json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["fidelity"]["tvd_1way"]["value"] < 0.2


def test_publish_charges_the_ledger_and_says_so(sundog: Sundog) -> None:
    Ledger.create("l", epsilon=1.0, delta=1e-6)
    done = call(sundog, "evaluate e4.sundog --real real.csv --publish 0.5 --ledger l --json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["published"]["fidelity"]["tvd_1way"]["value"] >= 0
    assert "may be published" in done.err
    assert 0.49 < Ledger.open("l").compute_spent() <= 0.5
    again = call(sundog, "evaluate e4.sundog --real real.csv --publish 0.95 --ledger l -o r.html")
    assert "refused" in again.complaint
    assert not Path("r.html").exists()
    assert Ledger.open("l").compute_spent() <= 0.5


def test_compare_prints_the_figures_of_each_release(sundog: Sundog) -> None:
    done = call(sundog, "compare e1.sundog e4.sundog --real real.csv --holdout holdout.csv --target old -o c.html")
    assert done.code == 0, done.err
    assert "e1.sundog" in done.out
    assert "e4.sundog" in done.out
    assert "fidelity.tvd_1way" in done.out
    alone = call(sundog, "evaluate e4.sundog --real real.csv --holdout holdout.csv --target old")
    said, head, *figures = alone.out.splitlines()
    assert f"e4.sundog: {said}" in done.out.splitlines()
    assert head.split("this")[1].split() == ["other", "real", "records", "independent", "columns"]
    for figure in figures:
        (row,) = (line for line in done.out.splitlines() if line.split()[0] == figure.split()[0])
        assert row.endswith(figure[-55:])  # other real records, and independent columns
        assert figure[37:64] in row
    page = Path("c.html").read_text()
    assert "e1.sundog" in page
    assert "e4.sundog" in page
    found = json.loads(call(sundog, "compare e1.sundog e4.sundog --real real.csv --json").out)
    assert set(found) == {"e1.sundog", "e4.sundog"}


def test_compare_warns_of_different_schemas(sundog: Sundog) -> None:
    coarse = SCHEMA.to_dict() | {"columns": SCHEMA.to_dict()["columns"] | {"age": {**AGE, "bins": 4}}}
    Synthesizer("independent", delta=1e-6).fit("real.csv", coarse).release_.save("coarse.sundog")
    done = call(sundog, "compare e1.sundog coarse.sundog --real real.csv")
    assert "different schemas" in done.err
    (titles,) = (line for line in done.out.splitlines() if line.startswith("   "))
    assert titles.split() == [
        "e1.sundog",
        "coarse.sundog",
        "real,",
        "e1.sundog",
        "independent,",
        "e1.sundog",
        "real,",
        "coarse.sundog",
        "independent,",
        "coarse.sundog",
    ]


BAD = {
    "no such release": ("evaluate no.sundog --real real.csv", "no.sundog"),
    "no such data": ("evaluate e1.sundog --real no.csv", "no.csv"),
    "no such target": ("evaluate e1.sundog --real real.csv --target income", "'income'"),
    "a target of one class": ("evaluate e1.sundog --real real.csv --target same", "'same'"),
    "a missing column": ("evaluate narrow.csv --real real.csv --schema s.yaml", "'old'"),
    "real data without a column": ("evaluate e1.sundog --real narrow.csv", "narrow.csv"),
    "an empty file": ("evaluate empty.csv --real real.csv --schema s.yaml", "empty.csv"),
    "one row": ("evaluate one.csv --real real.csv --schema s.yaml", "1 synthetic records are too few"),
    "a cut release": ("evaluate cut.sundog --real real.csv", "cut.sundog"),
    "a schema for a release": ("evaluate e1.sundog --real real.csv --schema s.yaml", "own schema"),
    "publishing without a ledger": ("evaluate e1.sundog --real real.csv --publish 1", "ledger"),
    "a ledger that is not there": ("evaluate e1.sundog --real real.csv --publish 1 --ledger no.ledger", "no.ledger"),
    "nothing to compare": ("compare e1.sundog --real real.csv", "at least two"),
    "nowhere to write": ("evaluate e1.sundog --real real.csv -o no/such/folder/r.html", "r.html"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_input_gives_one_line_and_leaves_no_files(bad: str, sundog: Sundog) -> None:
    make_people(100, 3)[["age", "sex"]].to_csv("narrow.csv", index=False)
    make_people(1, 3).to_csv("one.csv", index=False)
    Path("empty.csv").write_text("")
    Path("cut.sundog").write_bytes(Path("e1.sundog").read_bytes()[:300])
    before = sorted(path.name for path in Path().iterdir())
    command, named = BAD[bad]
    assert named in call(sundog, command).complaint
    assert sorted(path.name for path in Path().iterdir()) == before
