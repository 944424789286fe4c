from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.cli.calling import Called, Sundog

from sundog.cli.main import _run
from sundog.data.schema import Schema
from sundog.fit.synthesizer import Synthesizer

COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "integer", "min": 0, "max": 99},
    "sex": {"type": "categorical", "values": ["f", "m"]},
    "height": {"type": "continuous", "min": 0.5, "max": 2.5, "resolution": 0.01, "nullable": True},
    "seen": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "resolution": "day"},
}


@pytest.fixture
def sundog(capsys: pytest.CaptureFixture[str]) -> Sundog:
    """Return a function that calls the program and captures its output."""

    def call(*arguments: object) -> Called:
        capsys.readouterr()
        code = _run([str(argument) for argument in arguments])
        caught = capsys.readouterr()
        return Called(code, caught.out, caught.err)

    return call


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, its schema and a release."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 100, 300),
            "sex": rng.choice(["f", "m"], 300),
            "height": np.where(rng.random(300) < 0.1, np.nan, rng.normal(1.7, 0.1, 300).round(2)),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, 300), unit="D"),
        }
    )
    frame.to_csv(folder / "people.csv", index=False)
    schema = Schema.from_dict({"columns": COLUMNS})
    schema.save(folder / "people.yaml")
    Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(frame, schema, out=folder / "people.sundog")
    for name in ("adult.csv.gz", "adult.schema.yaml"):
        with resources.as_file(resources.files("sundog.demo") / name) as file:
            shutil.copy(file, folder / name)
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of these files, as the current folder."""
    for name in ("people.csv", "people.yaml", "people.sundog"):
        shutil.copy(made / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
