"""`sundog example` writes files that the other commands can read, and replaces nothing."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.cli.calling import Sundog

from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.evaluation.holdout_overlap import compute_copied_share


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_a_table_other_records_and_their_schema(sundog: Sundog, empty: Path) -> None:
    called = sundog("example")
    assert called.code == 0
    assert {path.name for path in empty.iterdir()} == {"adult.csv.gz", "adult_holdout.csv.gz", "adult.schema.yaml"}
    schema = Schema.load("adult.schema.yaml")
    assert schema.reviewed
    table, holdout = (encode(read(name, schema), schema) for name in ("adult.csv.gz", "adult_holdout.csv.gz"))
    assert (len(table), len(holdout)) == (10_000, 5_000)
    assert compute_copied_share(table, holdout) < 0.001


@pytest.mark.usefixtures("empty")
def test_the_commands_that_it_suggests_run(sundog: Sundog) -> None:
    called = sundog("example", "-o", "some folder")
    fit, audit = (shlex.split(line) for line in called.err.splitlines())
    assert (fit[:3], audit[:3]) == (["next:", "sundog", "fit"], ["then:", "sundog", "audit"])
    assert sundog(*fit[2:], "--model", "independent").code == 0
    called = sundog(*audit[2:], "--attack", "likelihood", "--rows", "1000")
    assert called.code == 0, called.err
    assert Path("some folder/audit.html").exists()


@pytest.mark.parametrize("name", ["adult.csv.gz", "adult_holdout.csv.gz", "adult.schema.yaml"])
def test_it_replaces_nothing(sundog: Sundog, empty: Path, name: str) -> None:
    (empty / name).write_text("mine")
    assert sundog("example").complaint == f"{name}: exists already; choose another folder with -o"
    assert [path.name for path in empty.iterdir()] == [name]
    assert (empty / name).read_text() == "mine"


@pytest.mark.parametrize("command", ["example", "demo"])
def test_no_folder_is_named_after_stdout(sundog: Sundog, empty: Path, command: str) -> None:
    assert sundog(command, "-o", "-").complaint == "-: this is not written to stdout; name a folder"
    assert not list(empty.iterdir())
