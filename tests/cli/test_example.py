"""`sundog example` writes files that the other commands can read, and replaces nothing."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.cli.calling import Sundog

from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_a_table_and_its_schema(sundog: Sundog, empty: Path) -> None:
    called = sundog("example")
    assert called.code == 0
    assert {path.name for path in empty.iterdir()} == {"adult.csv.gz", "adult.schema.yaml"}
    schema = Schema.load("adult.schema.yaml")
    assert schema.reviewed
    assert len(encode(read("adult.csv.gz", schema), schema)) == 10_000


@pytest.mark.usefixtures("empty")
def test_the_command_that_it_suggests_runs(sundog: Sundog) -> None:
    called = sundog("example", "-o", "some/folder")
    (line,) = [line for line in called.err.splitlines() if line.startswith("next: sundog ")]
    assert sundog(*shlex.split(line)[2:], "--model", "independent").code == 0
    assert Path("some/folder/adult.sundog").exists()


@pytest.mark.parametrize("name", ["adult.csv.gz", "adult.schema.yaml"])
def test_it_replaces_nothing(sundog: Sundog, empty: Path, name: str) -> None:
    (empty / name).write_text("mine")
    assert sundog("example").complaint == f"{name}: exists already; choose another folder with -o"
    assert [path.name for path in empty.iterdir()] == [name]
    assert (empty / name).read_text() == "mine"


@pytest.mark.parametrize("command", ["example", "demo"])
def test_no_folder_is_named_after_stdout(sundog: Sundog, empty: Path, command: str) -> None:
    assert sundog(command, "-o", "-").complaint == "-: this is not written to stdout; name a folder"
    assert not list(empty.iterdir())
