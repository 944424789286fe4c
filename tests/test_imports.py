"""What importing costs: a command line that answers at once needs a package that loads nothing it does not use."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sundog

HEAVY = ("torch", "pandas", "pyarrow", "scipy", "sklearn", "matplotlib", "dp_accounting", "numpy", "pydantic")
SUNDOG = Path(sys.executable).with_name("sundog")
# The limits hold on an idle machine; a shared one may be busy with something else just then.
SLACK = 2


def _median_seconds(command: list[str], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def _loaded_by(statement: str) -> set[str]:
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_importing_takes_less_than_half_a_second() -> None:
    assert _median_seconds([sys.executable, "-c", "import sundog"]) < 0.5 * SLACK


def test_help_takes_less_than_a_third_of_a_second() -> None:
    assert _median_seconds([str(SUNDOG), "--help"]) < 0.3 * SLACK


def test_importing_loads_nothing_heavy() -> None:
    assert not _loaded_by("import sundog") & set(HEAVY)


def test_the_command_line_loads_nothing_heavy_until_a_command_runs() -> None:
    assert not _loaded_by("import sundog.cli.main") & set(HEAVY)


def test_fitting_tables_does_not_load_torch() -> None:
    assert "torch" not in _loaded_by("import sundog; sundog.Synthesizer; sundog.Release; sundog.Ledger")


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
