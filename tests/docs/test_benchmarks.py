"""Every benchmark runs, and its rows have the form that others rely on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.name != "report.py")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_runs(script: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    command = [sys.executable, str(script), "--quick", "--json", str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for row in json.loads(rows.read_text()):
        assert set(row) == {"name", "value", "unit", "peer", "peer_value", "ratio"}
        assert row["ratio"] == pytest.approx(row["value"] / row["peer_value"])
