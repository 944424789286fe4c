"""The documentation is correct: Python blocks, command lines and examples run, and links have targets."""

from __future__ import annotations

import doctest
import gzip
import importlib
import importlib.util
import itertools
import re
import runpy
import shlex
import shutil
import warnings
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sundog.cli.main import _run
from sundog.data.schema import Schema
from sundog.data.schema_yaml import load as load_yaml

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_LINES = 1500  # of the table: enough to fit and evaluate, and fast
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


def commands(page: Path) -> list[list[str]]:
    """Return the command lines of a page: of blocks with output (`console`, after `$ `) and of blocks without."""
    lines = [line for kind in ("bash", "") for text in blocks(page, kind) for line in text.splitlines()]
    lines += [line.removeprefix("$ ") for line, _ in sessions(page)]
    return [_arguments(line) for line in lines if line.startswith("sundog ")]


def sessions(page: Path) -> list[tuple[str, list[str]]]:
    """Return each command line of the `console` blocks of a page, with the output shown below it."""
    found: list[tuple[str, list[str]]] = []
    for line in (line for text in blocks(page, "console") for line in text.splitlines()):
        if line.startswith("$ "):
            found.append((line, []))
        else:
            found[-1][1].append(line)
    return found


def _arguments(line: str) -> list[str]:
    return shlex.split(line.removeprefix("$ "), comments=True)[1:]


def _without_figures(line: str) -> str:
    """Return a line of output without what differs between runs: numbers and fingerprints."""
    return re.sub(r"\b[0-9a-f]{4}\b( [0-9a-f]{4}\b)*|[\d.,]+(e-\d+)?", "#", line)


def shorten(table: Path) -> None:
    """Keep only the first records of a table."""
    with gzip.open(table) as whole:
        lines = list(itertools.islice(whole, _LINES))
    with gzip.open(table, "w") as some:
        some.writelines(lines)


@pytest.fixture
def folder_with_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = Path(str(resources.files("sundog.demo")))
    for name in ("adult.schema.yaml", "adult.csv.gz", "adult_holdout.csv.gz"):
        shutil.copy(package / name, tmp_path)
    for name in ("adult.csv.gz", "adult_holdout.csv.gz"):
        shorten(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("fast_reports")
def test_the_readme_runs_from_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "README.md"
    monkeypatch.chdir(tmp_path)
    for line, shown in sessions(page):
        assert _run(_arguments(line)) == 0, (line, capsys.readouterr().err)
        if line == "$ sundog example":
            shorten(tmp_path / "adult.csv.gz")
        printed = [_without_figures(each) for each in capsys.readouterr().out.splitlines()]
        if not line.startswith("$ sundog evaluate "):  # its sentences depend on the figures
            assert _without_figures(shown[0]) in printed, line
    done = len(sessions(page))
    for arguments in commands(page)[:-done]:
        assert _run(arguments) == 0, (arguments, capsys.readouterr().err)
    (python,) = blocks(page, "python")
    exec(compile(python, "README.md", "exec"), {})  # noqa: S102
    assert "(ε = 1, δ = " in capsys.readouterr().out


@pytest.mark.usefixtures("folder_with_data", "fast_reports")
@pytest.mark.parametrize(
    "name", ["audit.md", "evaluate.md", "ledger.md", "release.md", "sampling.md", "tally_noise.md"]
)
def test_the_commands_of_a_page_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name in ("release.md", "sampling.md"):
        fit = "fit adult.csv.gz --schema adult.schema.yaml --epsilon 1 --model independent -o adult.sundog"
        assert _run(shlex.split(fit)) == 0
    ran = commands(ROOT / "docs" / name)
    assert ran
    for arguments in ran:
        assert _run(arguments) == 0, (arguments, capsys.readouterr().err)
    for python in blocks(ROOT / "docs" / name, "python") if name == "sampling.md" else []:
        exec(compile(python, name, "exec"), {})  # noqa: S102


def test_the_example_on_the_page_on_marginals_prints_what_it_shows() -> None:
    failed, tried = doctest.testfile(str(ROOT / "docs" / "marginals.md"), module_relative=False)
    assert (failed, tried > 0) == (0, True)


def test_the_schema_page_shows_a_schema(tmp_path: Path) -> None:
    (text,) = blocks(ROOT / "docs" / "schema.md", "yaml")
    path = tmp_path / "page.schema.yaml"
    path.write_text(text)
    assert set(Schema.load(path).columns) == set(load_yaml(path)["columns"])


def test_the_page_on_rules_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its schema, its command and its Python, on records that satisfy the rules."""
    page = ROOT / "docs" / "rules.md"
    (schema,) = blocks(page, "yaml")
    monkeypatch.chdir(tmp_path)
    Path("visits.schema.yaml").write_text(schema)
    draw_visits(600).to_csv("visits.csv", index=False)
    (python,) = blocks(page, "python")
    exec(compile(python, "rules.md", "exec"), {})  # noqa: S102
    ((name, *arguments),) = (_arguments(line) for line in blocks(page, "bash")[0].splitlines())
    with warnings.catch_warnings(action="ignore"):  # of a draft
        assert _run([name, *arguments]) == 0
    assert len(Schema.load("draft.schema.yaml").rules) > 2


def test_the_message_on_the_page_on_rules_is_the_one_that_fit_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "docs" / "rules.md"
    monkeypatch.chdir(tmp_path)
    Path("visits.schema.yaml").write_text(blocks(page, "yaml")[0])
    visits = draw_visits(600)
    visits.loc[[3, 10, 20], ["systolic", "diastolic"]] = [80, 90]
    visits.to_csv("visits.csv", index=False)
    assert _run(["fit", "visits.csv", "--schema", "visits.schema.yaml", "--epsilon", "1", "-o", "v.sundog"]) == 2
    (shown,) = (line for text in blocks(page, "") for line in text.splitlines() if line.startswith("sundog: "))
    assert shown in capsys.readouterr().err.splitlines()


def draw_visits(count: int) -> pd.DataFrame:
    """Visits that satisfy the rules of the page."""
    rng = np.random.default_rng(0)
    age, stay = rng.integers(0, 100, count), rng.integers(0, 31, count)
    education = np.where(age < 16, "none", rng.choice(["none", "school", "university"], count))
    city, low = rng.choice(["Lyon", "Nice", "Rome"], count), rng.integers(40, 100, count)
    admitted = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, count), "D")
    measured = rng.random(count) < 0.9
    return pd.DataFrame(
        {
            "education": education,
            "years": pd.Series(education).map({"none": 0, "school": 12, "university": 16}),
            "admitted": admitted,
            "discharged": admitted + pd.to_timedelta(stay, "D"),
            "stay": stay,
            "city": city,
            "country": np.where(city == "Rome", "IT", "FR"),
            "systolic": pd.Series(low + rng.integers(20, 80, count)).astype("Int64").where(measured),
            "diastolic": pd.Series(low).astype("Int64").where(measured),
            "age": age,
            "married": (age > 20) & (rng.random(count) < 0.5),
        }
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_have_targets(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_modules_that_a_page_names_exist(page: Path) -> None:
    source = ROOT / "src" / "sundog"
    places = [ROOT, source, source / "training"] if page.name == "training.md" else [ROOT, source]
    text = page.read_text()
    for name in re.findall(r"`([\w/]+\.py)\b", text):
        assert "NAME" in name or any((place / name).exists() for place in places), name
    for name in re.findall(r"`sundog((?:\.\w+)+)`", text):
        home, _, last = f"sundog{name}".rpartition(".")
        assert hasattr(importlib.import_module(home), last) or importlib.util.find_spec(f"{home}.{last}"), name


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.schema.yaml")), ids=lambda path: path.name)
def test_example_schemas_are_reviewed_and_complete(path: Path) -> None:
    schema = Schema.load(path)
    assert schema.reviewed
    assert schema.complete


def test_the_version_is_the_same_everywhere() -> None:
    import tomllib

    import sundog

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == sundog.__version__
