"""Every benchmark can be started, a few are run, and their rows have the documented keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.name != "report.py")
QUICKEST = {"dpgm_epsilon", "independent_adult"}

# One process for all, because importing torch takes most of the time.
_HELP = """
import contextlib, importlib, io, json, pkgutil, runpy, sys
for module in pkgutil.walk_packages([sys.argv[1]]):
    if "." in module.name:  # modules that scripts import; the scripts are run below
        importlib.import_module(module.name)
said = {}
for script in sys.argv[2:]:
    sys.argv = [script, "--quick", "--json", "rows.json", "--help"]
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_path(script, run_name="__main__")
        said[script] = "it ran, and gave no help"
    except SystemExit as ended:
        said[script] = out.getvalue() if ended.code == 0 else f"it ended with {ended.code}"
    except Exception as error:
        said[script] = repr(error)
print(json.dumps(said))
"""


def test_every_benchmark_can_be_imported_and_gives_help(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HELP, str(FOLDER), *map(str, SCRIPTS)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert {script: what for script, what in said.items() if "small enough for a smoke test" not in what} == {}
    assert list(map(Path, said)) == SCRIPTS
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "script",
    [pytest.param(path, id=path.stem, marks=[] if path.stem in QUICKEST else pytest.mark.slow) for path in SCRIPTS],
)
def test_a_benchmark_runs(script: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    command = [sys.executable, str(script), "--quick", "--json", str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for row in json.loads(rows.read_text()):
        assert set(row) == {"name", "value", "unit", "peer", "peer_value", "ratio"}
        assert row["ratio"] == pytest.approx(row["value"] / row["peer_value"])
