"""Pipes (`-`), sources other than csv, suggestions in messages, and progress in a log."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from tests.cli.calling import Sundog

from sundog.cli import console
from sundog.data.schema import Schema
from sundog.release.release import Release

SUNDOG = [sys.executable, "-m", "sundog"]
FIT = ("--schema", "people.yaml", "--epsilon", "1", "--delta", "1e-6", "--model", "independent")


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Return a function that sets the content of stdin."""

    def set_stdin(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    return set_stdin


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*SUNDOG, *arguments], input=given, capture_output=True)


@pytest.mark.usefixtures("fast_reports")
def test_data_is_read_from_a_pipe_and_samples_are_written_to_one(
    here: Path, sundog: Sundog, pipe: Callable[[bytes], None]
) -> None:
    done = run("fit", "-", *FIT, "-o", "piped.sundog", given=Path("people.csv").read_bytes())
    assert done.returncode == 0, done.stderr
    assert Release.load("piped.sundog").records is not None
    sample = ("sample", "piped.sundog", "-n", "50", "--seed", "1", "-o", "-")
    drawn = run(*sample, "--format", "parquet")
    frame = pd.read_parquet(io.BytesIO(drawn.stdout))
    assert len(frame) == 50
    assert list(frame) == ["age", "sex", "height", "seen"]
    assert b"50 synthetic records" in drawn.stderr  # and not on stdout
    assert pd.read_csv(io.StringIO(sundog(*sample).out))["age"].tolist() == frame["age"].tolist()
    lines = io.StringIO(sundog(*sample, "--format", "jsonl").out)
    assert pd.read_json(lines, lines=True)["age"].tolist() == frame["age"].tolist()
    pipe(frame.to_csv(index=False).encode())
    assert sundog("evaluate", "-", "--real", "people.csv", "--schema", "people.yaml").code == 0


def test_only_a_draft_or_a_sample_is_written_to_stdout(here: Path, sundog: Sundog) -> None:
    assert sundog("schema", "people.csv", "-o", "-").out == sundog("schema", "people.csv").out != ""
    fit = ("fit", "people.csv", *FIT, "-o", "-")
    for command in (fit, ("evaluate", "people.sundog", "--real", "people.csv", "-o", "-")):
        assert sundog(*command).complaint == "-: this is not written to stdout; name a file"
    assert not Path("-").exists()


def test_a_draft_is_made_from_a_pipe(here: Path, sundog: Sundog, pipe: Callable[[bytes], None]) -> None:
    pipe(b'{"age": 1, "sex": "f"}\n{"age": 2, "sex": "m"}\n')
    called = sundog("schema", "-", "--format", "jsonl")
    assert called.code == 0
    assert "age: {type: integer, min: 1, max: 2}" in called.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("fit", "-", *FIT, "--format", "cvs", "-o", "x.sundog"),
            "--format 'cvs': cannot be used here; did you mean 'csv'?",
        ),
        (("fit", "people.csv", *FIT, "--format", "csv", "-o", "x.sundog"), "--format is for a pipe (-)"),
        (("fit", "-", *FIT, "--labels", "-", "-o", "x.sundog"), "data and labels cannot both come from stdin (-)"),
        (("fit", "-", *FIT, "-o", "x.sundog"), "stdin.csv: is empty; give it a header line and records"),
        (("sample", "people.sundog", "-o", "-", "--json"), "--json prints to stdout, where the records go"),
        (("sample", "people.sundog", "-o", "-", "--format", "xlsx"), "--format 'xlsx': cannot be used here"),
        (("sample", "people.sundog", "-o", "x.csv", "--format", "csv"), "--format is for a pipe (-)"),
        (
            ("evaluate", "people.sundog", "--real", "-", "--holdout", "-"),
            "real and holdout cannot both come from stdin (-)",
        ),
    ],
    ids=str,
)
def test_a_pipe_that_cannot_be_used_is_refused(
    arguments: tuple[str, ...], said: str, here: Path, sundog: Sundog, pipe: Callable[[bytes], None]
) -> None:
    pipe(b"")
    called = sundog(*arguments)
    assert called.code == 2
    assert called.complaint.startswith(said)
    assert not Path("x.sundog").exists()
    assert not Path("x.csv").exists()


@pytest.mark.usefixtures("fast_reports")
def test_workbooks_and_databases_are_fitted_and_evaluated(here: Path, sundog: Sundog) -> None:
    frame = pd.read_csv("people.csv")
    frame.to_excel("people.xlsx", index=False, sheet_name="Adults")
    connection = sqlite3.connect("people.db")
    frame.to_sql("people", connection, index=False)
    connection.close()
    for number, data in enumerate(("people.xlsx", "people.xlsx?sheet=Adults", "sqlite:///people.db?table=people")):
        assert sundog("fit", data, *FIT, "-o", f"{number}.sundog").code == 0
    assert sundog("evaluate", "0.sundog", "--real", "sqlite:///people.db?table=people").code == 0
    drafted = sundog("schema", "sqlite:///people.db?table=people", "-o", "drafted.yaml")
    assert drafted.code == 0
    assert list(Schema.load("drafted.yaml").columns) == list(frame)
    proposed = shlex.split(drafted.err.partition("next: sundog ")[2].splitlines()[0])
    assert proposed[:2] == ["fit", "sqlite:///people.db?table=people"]
    assert sundog(*proposed[:-1], "3.sundog", "--model", "independent").code == 0


def test_a_password_is_never_printed(here: Path, sundog: Sundog) -> None:
    url = "nosuchdb://ann:s3cr3t@host/db?table=people"
    for arguments in (
        ("fit", url, *FIT, "-o", "x.sundog"),
        ("fit", "people.csv", *FIT, "--public", url, "-o", "x.sundog"),
        ("schema", url),
        ("evaluate", "people.sundog", "--real", url),
        ("evaluate", url, "--real", "people.csv", "--schema", "people.yaml"),
    ):
        called = sundog(*arguments)
        assert called.code == 2
        assert "s3cr3t" not in called.out + called.err


# --- suggestions in messages ---


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("colums: {age: {type: boolean}}", "bad.yaml: unknown key 'colums'; did you mean 'columns'?"),
        ("columns: {age: {typ: boolean}}", "bad.yaml: column 'age': unknown key 'typ'; did you mean 'type'?"),
        ("columns: {age: {type: catgorical, values: [a]}}", "unknown type 'catgorical'; did you mean 'categorical'?"),
        ("columns: {age: {type: categorical, vales: [a]}}", "unknown key 'vales'; did you mean 'values'?"),
        ("columns: {age: {type: boolean}}\nrecrods: 7", "bad.yaml: unknown key 'recrods'; did you mean 'records'?"),
    ],
    ids=str,
)
def test_a_misspelled_key_of_a_schema_gets_a_suggestion(schema: str, said: str, here: Path, sundog: Sundog) -> None:
    Path("bad.yaml").write_text(schema)
    called = sundog("fit", "people.csv", "--schema", "bad.yaml", "--epsilon", "1", "-o", "x.sundog")
    assert called.code == 2
    assert said in called.complaint


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fit", "people.csv", *FIT[:-1], "rbmm", "-o", "x.sundog"), "there is no model 'rbmm'; did you mean 'rbm'?"),
        (
            ("fit", "people.csv", *FIT[:-1], "rbm", "--set", "hiden=3", "-o", "x.sundog"),
            "has no setting 'hiden'; did you mean 'hidden'?",
        ),
        (("fit", "people.csv", *FIT, "--seed", "-1", "-o", "x.sundog"), "seed must be a whole number of 0 or more"),
        (
            ("sample", "people.sundog", "-n", "3", "--where", "agee>=4", "-o", "x.csv"),
            "there is no column 'agee'; did you mean 'age'?",
        ),
        (
            ("sample", "people.sundog", "-n", "3", "--where", "age>=40", "--where", "age<40", "-o", "x.csv"),
            "no value of 'age' satisfies age>=40 and age<40 together",
        ),
        (("fti",), "No such command 'fti'. Did you mean 'fit'? See: "),
        (("fit", ".", *FIT, "-o", "x.sundog"), ".: is a directory; name a file in it"),
        (("ledger", "no.ledger"), "no.ledger: no such file; check the path, or make one with `sundog ledger no.ledger"),
    ],
    ids=str,
)
def test_a_wrong_option_gets_one_line_with_the_fix(
    arguments: tuple[str, ...], said: str, here: Path, sundog: Sundog
) -> None:
    called = sundog(*arguments)
    assert called.code == 2
    assert said in called.complaint


# --- a log ---


def test_sampling_writes_progress_to_a_log(here: Path, sundog: Sundog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_EVERY", 0.0)
    monkeypatch.setattr("sundog.release.release._BATCH_VALUES", 4000)
    called = sundog("sample", "people.sundog", "-n", "3000", "-o", "x.csv")
    lines = [line for line in called.err.splitlines() if line.startswith("sampling: ")]
    assert "sampling: 1,000 of 3,000 records" in lines
    assert "sampling: 2,000 of 3,000 records" in lines


def test_json_lines_are_written_and_read_again(here: Path, sundog: Sundog) -> None:
    assert sundog("sample", "people.sundog", "-n", "100", "--where", "height=", "-o", "fake.jsonl").code == 0
    lines = [json.loads(line) for line in Path("fake.jsonl").read_text().splitlines()]
    assert len(lines) == 100
    assert all(line["height"] is None for line in lines)  # every line has every key
    shutil.copy("fake.jsonl", "again.ndjson")
    assert sundog("fit", "again.ndjson", *FIT, "-o", "x.sundog").code == 0
