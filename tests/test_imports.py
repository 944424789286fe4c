"""Importing is fast: the package and the commands import only what they use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sundog
from sundog.release.signing import generate_key

HEAVY = ("torch", "pandas", "pyarrow", "scipy", "sklearn", "matplotlib", "dp_accounting", "numpy", "pydantic")
SUNDOG = Path(sys.executable).with_name("sundog")


@pytest.fixture(scope="module")
def typer_seconds() -> float:
    """The CPU seconds of importing typer, to which others are compared: they depend on the machine."""
    return _least_seconds([sys.executable, "-c", "import typer"])


def _least_seconds(command: list[str], times: int = 3) -> float:
    """Return the CPU seconds of a command, the least of several runs."""
    taken = []
    for _ in range(times):
        before = os.times()
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
        taken.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(taken)


def _find_imported(statement: str) -> set[str]:
    """Return the packages that a statement imports in a new process."""
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_importing_sundog_is_faster_than_importing_typer(typer_seconds: float) -> None:
    assert _least_seconds([sys.executable, "-c", "import sundog"]) < typer_seconds


def test_help_takes_a_few_times_as_long_as_importing_typer(typer_seconds: float) -> None:
    assert _least_seconds([str(SUNDOG), "--help"]) < 4 * typer_seconds


def test_importing_sundog_imports_no_heavy_package() -> None:
    assert not _find_imported("import sundog") & set(HEAVY)


def test_the_command_line_imports_no_heavy_package_until_a_command_runs() -> None:
    assert not _find_imported("import sundog.cli.main") & set(HEAVY)


def test_the_public_classes_do_not_import_torch() -> None:
    assert "torch" not in _find_imported("import sundog; sundog.Synthesizer; sundog.Release; sundog.Ledger")


@pytest.mark.parametrize("model", ["independent", "rbm", "vae", "gan", "mixture"])
def test_verifying_and_signing_import_neither_torch_nor_pandas(model: str, tmp_path: Path) -> None:
    """A release is checked without running its model."""
    rng = np.random.default_rng(0)
    data = {"a": rng.integers(0, 2, 300), "b": rng.integers(0, 2, 300)}
    schema = sundog.Schema.from_dict({"columns": {name: {"type": "integer", "min": 0, "max": 1} for name in data}})
    settings: dict[str, Any] = {"independent": {}, "mixture": {"clusters": 2}}.get(model, {"settings": {"epochs": 1}})
    name = "independent" if model == "mixture" else model
    path = tmp_path / "a.sundog"
    sundog.Synthesizer(name, epsilon=5.0, delta=1e-6, **settings).fit(data, schema).release_.save(path)
    generate_key(tmp_path / "k.key", tmp_path / "k.pub")
    sign = f"_run(['sign', {str(path)!r}, '--key', {str(tmp_path / 'k.key')!r}])"
    verify = f"_run(['verify', {str(path)!r}, '--key', {str(tmp_path / 'k.pub')!r}])"
    certificate = f"_run(['certificate', {str(path)!r}])"
    loaded = _find_imported(f"from sundog.cli.main import _run; assert [{sign}, {verify}, {certificate}] == [0, 0, 0]")
    assert not loaded & {"torch", "pandas", "sklearn", "matplotlib"}


def test_settings_are_checked_and_listed_without_importing_torch() -> None:
    listed = "import sundog.models.registry as r\nfor name in r.MODELS: r.get_configuration(name).list_settings()"
    assert "torch" not in _find_imported(
        f"{listed}\nimport sundog\nsundog.Synthesizer('gan', settings={{'hidden': 9}})"
    )


def test_every_public_name_exists() -> None:
    for name in sundog.__all__:
        assert getattr(sundog, name) is not None, name
    assert set(dir(sundog)) == set(sundog.__all__)


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        sundog.Nonsense  # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert sundog.__version__ == version("sundog")
    shown = subprocess.run([str(SUNDOG), "--version"], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == f"sundog {sundog.__version__}"
