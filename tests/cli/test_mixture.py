"""Mixtures from the command line: fitted, sampled, verified, refused in one line, and killed at any moment."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.cli.calling import Sundog
from tests.cli.test_killed import kill_before_operations

from sundog.cli.main import _run
from sundog.data.schema import Schema
from sundog.mixture.mixture import Mixture
from sundog.privacy.ledger import Ledger
from sundog.release.release import Release

COLUMNS: dict[str, Any] = {
    **{f"b{i}": {"type": "boolean"} for i in range(3)},
    "kind": {"type": "categorical", "values": ["dark", "light", "other"]},
}
SMALL = ("hidden=6", "latent=2", "batch=50", "epochs=2", "dimension=16", "iterations=1")
SETTINGS = [word for setting in SMALL for word in ("--set", setting)]
FIT = ("fit", "data.csv", "--schema", "s.yaml", "--epsilon", "3", "--delta", "1e-6", "-o", "o.sundog")
CLUSTERED = (*FIT, "--model", "vae", "--clusters", "3", *SETTINGS)


def frame(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    columns: dict[str, Any] = {f"b{i}": (kind == i) ^ (rng.random(n) < 0.03) for i in range(3)}
    return pd.DataFrame({**columns, "kind": np.array(["dark", "light", "other"])[kind]})


def prepare(folder: Path, **rest: Any) -> Path:
    frame(300).to_csv(folder / "data.csv", index=False)
    frame(60, seed=1).to_csv(folder / "public.csv", index=False)
    Schema.from_dict({"columns": COLUMNS, **rest}).save(folder / "s.yaml")
    return folder


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and a release of three clusters."""
    folder = prepare(tmp_path_factory.mktemp("made"), records=300)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert _run([*CLUSTERED, "--json"]) == 0
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as the current folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- valid input ---


def test_a_fit_with_clusters_is_a_mixture(here: Path) -> None:
    model = Release.load("o.sundog").model
    assert isinstance(model, Mixture)
    assert [component.name for component in model.components] == ["vae"] * 3


def test_it_is_valid_and_its_certificate_lists_the_clustering(here: Path, sundog: Sundog) -> None:
    assert sundog("verify", "o.sundog").code == 3  # not signed
    told = sundog("certificate", "o.sundog")
    assert told.code == 0
    assert "clustering: centres" in told.out
    charges = sundog("certificate", "o.sundog", "--json").json["charges"]
    purposes = [charge["purpose"] for charge in charges]
    assert len(purposes) == len(set(purposes))  # one charge for all components
    assert {"clustering: counts", "means of features", "training"} <= set(purposes)


@pytest.mark.parametrize("where", [["cluster=1"], ["cluster=2", "kind=light"], []])
def test_records_are_drawn_from_one_cluster(here: Path, sundog: Sundog, where: list[str]) -> None:
    conditions = [word for each in where for word in ("--where", each)]
    called = sundog("sample", "o.sundog", "-n", 40, "--seed", 1, *conditions, "-o", "fake.csv")
    assert called.code == 0, called
    fake = pd.read_csv("fake.csv")
    assert list(fake.columns) == list(COLUMNS)
    assert len(fake) == 40
    if "kind=light" in where:
        assert set(fake["kind"]) == {"light"}


@pytest.mark.parametrize("model", ["independent", "vae"])
def test_public_records_replace_two_measurements(model: str, here: Path, sundog: Sundog) -> None:
    options = SETTINGS if model == "vae" else SETTINGS[-4:]
    fit = (*FIT[:-1], "p.sundog", "--model", model, "--clusters", 3, "--public", "public.csv", *options)
    assert sundog(*fit).code == 0
    release = Release.load("p.sundog")
    assert release.verify() == []
    purposes = {charge.purpose for charge in release.certificate.charges}
    assert "clustering: centres" in purposes
    assert not {"clustering: space", "clustering: kernel width"} & purposes


# --- invalid input ---


@pytest.mark.parametrize("cluster", ["3", "-1", "one", "", "1.0"])
def test_an_unknown_cluster_gives_one_line(cluster: str, here: Path, sundog: Sundog) -> None:
    called = sundog("sample", "o.sundog", "-n", 4, "--where", f"cluster={cluster}", "-o", "fake.csv")
    assert "'cluster' is a number from 0 to 2" in called.complaint
    assert not Path("fake.csv").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--public", "public.csv"), "model 'vae' does not use public"),
        (("--clusters", "3", "--public", "nowhere.csv"), "nowhere.csv"),
        (("--clusters", "3", "--public", "lacking.csv"), "lacking.csv"),
        (("--clusters", "3", "--public", "odd.csv"), "odd.csv"),
        (("--clusters", "3", "--public", "empty.csv"), "empty.csv"),
        (("--clusters", "3", "--public", "few.csv"), "at least 3 are needed"),
        (("--clusters", "100000"), "clusters must be a whole number from 2 to 500"),
        (("--clusters", "3", "--set", "clusters=7"), "use --clusters"),
        (("--set", "clusters=7"), "use --clusters"),
        (("--clusters", "3", "--set", "public=true"), "use --public"),
        (("--clusters", "3", "--set", "clustering=2"), "setting 'clustering' must be"),
        (("--clusters", "3", "--set", "kernel=linear"), "setting 'kernel' must be"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_options_give_one_line_and_nothing_is_spent(
    options: tuple[str, ...], complaint: str, here: Path, sundog: Sundog
) -> None:
    public = frame(5)
    public.drop(columns="kind").to_csv("lacking.csv", index=False)
    public.assign(kind="mauve").to_csv("odd.csv", index=False)
    public[:0].to_csv("empty.csv", index=False)
    public[:2].to_csv("few.csv", index=False)
    Path("o.sundog").unlink()
    Ledger.create("all.ledger", epsilon=3.0, delta=1e-6)
    called = sundog(*FIT, "--model", "vae", *options, "--ledger", "all.ledger")
    lines = [line for line in called.err.splitlines() if line.startswith("sundog: ")]
    assert called.code == 2, called
    assert len(lines) == 1, called
    assert complaint in lines[0]
    assert "Traceback" not in called.err
    assert Ledger.open("all.ledger").charges == ()
    assert not Path("o.sundog").exists()
    assert not Path("o.sundog.partial").exists()


# --- killed ---


def test_a_killed_fit_is_resumed_and_charged_once(tmp_path: Path) -> None:
    """Before, between and after the clustering, the means and the blocks of the training."""
    root = prepare(tmp_path, records=300)
    outcomes = kill_before_operations(root, 19, *CLUSTERED, "--seed", "1")
    assert {outcome["killed"] for outcome in outcomes} == {-signal.SIGKILL}
    whole = Release.load(root / "warm" / "o.sundog").certificate.charges
    left = []
    for outcome in outcomes:
        ledger = Path(outcome["left"]) / "o.sundog.partial" / "ledger.jsonl"
        left.append(len(Ledger.open(ledger).entries) if ledger.exists() else 0)
        assert outcome["again"] == 0, outcome
        release = Release.load(Path(outcome["folder"]) / "o.sundog")
        assert release.certificate.charges == whole
        assert release.verify() == []
    assert len(set(left)) >= 3  # they were killed at different stages
