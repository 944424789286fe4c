"""What importing costs: a command line that answers at once needs a package that loads nothing it does not use."""

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
# The limits hold on an idle machine; where cores share their caches with others, everything takes longer.
SLACK = 3


def _least_seconds(command: list[str], times: int = 5) -> float:
    """Of a processor, whatever else the machine does."""
    taken = []
    for _ in range(times):
        before = os.times()
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
        taken.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(taken)


def _loaded_by(statement: str) -> set[str]:
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_importing_takes_less_than_half_a_second() -> None:
    assert _least_seconds([sys.executable, "-c", "import sundog"]) < 0.5 * SLACK


def test_help_takes_less_than_a_third_of_a_second() -> None:
    assert _least_seconds([str(SUNDOG), "--help"]) < 0.3 * SLACK


def test_importing_loads_nothing_heavy() -> None:
    assert not _loaded_by("import sundog") & set(HEAVY)


def test_the_command_line_loads_nothing_heavy_until_a_command_runs() -> None:
    assert not _loaded_by("import sundog.cli.main") & set(HEAVY)


def test_fitting_tables_does_not_load_torch() -> None:
    assert "torch" not in _loaded_by("import sundog; sundog.Synthesizer; sundog.Release; sundog.Ledger")


@pytest.mark.parametrize("model", ["independent", "rbm", "vae", "gan", "mixture"])
def test_verifying_and_signing_load_neither_torch_nor_pandas(model: str, tmp_path: Path) -> None:
    """Whatever model a release holds: to check it is not to run it."""
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
    loaded = _loaded_by(f"from sundog.cli.main import _run; assert [{sign}, {verify}, {certificate}] == [0, 0, 0]")
    assert not loaded & {"torch", "pandas", "sklearn", "matplotlib"}


def test_settings_are_checked_and_listed_without_torch() -> None:
    listed = "import sundog.models.registry as r\nfor name in r.MODELS: r.get_configuration(name).list_settings()"
    assert "torch" not in _loaded_by(f"{listed}\nimport sundog\nsundog.Synthesizer('gan', settings={{'hidden': 9}})")


def test_every_public_name_is_there() -> None:
    for name in sundog.__all__:
        assert getattr(sundog, name) is not None, name
    assert set(dir(sundog)) == set(sundog.__all__)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        sundog.Nonsense  # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert sundog.__version__ == version("sundog")
    shown = subprocess.run([str(SUNDOG), "--version"], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == f"sundog {sundog.__version__}"
