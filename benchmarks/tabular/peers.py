"""Peers: what others learn from the same records, in environments of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sundog.data.bins import make_bins
from sundog.data.records import Records
from sundog.data.writing.frames import to_frame
from tabular.datasets import PACKAGES, Table

ROOT = Path(__file__).parents[1]
FOLDER = ROOT.parent / ".peers"
REQUIREMENTS = {"dpmm": "dpmm==0.1.9", "mbi": "mbi==2.0.0"}  # by environment; mbi brings JAX, about 600 MB
PACKAGES_FOLDER = "data"  # the folder of packages that are there for the tables that they bundle


@dataclass(frozen=True)
class Peer:
    """A mechanism of others: in which environment it runs, by which adapter, and with what settings."""

    name: str
    environment: str
    adapter: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def is_installed(self, folder: Path) -> bool:
        """Say whether its environment is there."""
        return find_python(folder / self.environment).exists()

    def fit_and_draw(
        self, table: Table, folder: Path, *, epsilon: float, delta: float, seed: int
    ) -> tuple[pd.DataFrame, dict[str, float]]:
        """Return as many synthetic records as real ones, and what the fit cost."""
        request = {"epsilon": epsilon, "delta": delta, "seed": seed, "settings": dict(self.settings)}
        with tempfile.TemporaryDirectory() as name:
            source, drawn = Path(name) / "table.npz", Path(name) / "drawn.npz"
            write_bins(table, source)
            command = [str(find_python(folder / self.environment)), "-m", f"tabular.{self.adapter}"]
            command += [str(source), str(drawn), json.dumps(request)]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            subprocess.run(command, check=True, cwd=name, env=environment, stdout=subprocess.DEVNULL)
            cost = json.loads(drawn.with_suffix(".json").read_text())
            return read_bins(table, drawn, seed=seed), cost


# AIM (McKenna et al. 2022) as dpmm has it, with the estimation of private-pgm, in about 40 rounds. Estimates of 100
# iterations are far from converged. That shows in what is drawn, and in what is chosen: a round that seems to change
# nothing makes AIM spend more on each of the next ones, so that there are fewer.
PEERS = (
    Peer("AIM, converged", "dpmm", "dpmm_aim", {"rounds": 40, "n_iters": 1000, "final_iters": 1000}),
    Peer("AIM, 100 iterations", "dpmm", "dpmm_aim", {"rounds": 40, "n_iters": 100}),
)


def find_python(environment: Path) -> Path:
    """Return where the interpreter of an environment is, if it is installed."""
    return environment / "bin" / "python"


def make_peers(folder: Path) -> None:
    """Install the peers, each in its own environment, and the packages that bundle tables."""
    for name, requirement in REQUIREMENTS.items():
        print(f"installing {requirement} into {folder / name}")
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
        _install(find_python(folder / name), requirement)
    print(f"installing {', '.join(PACKAGES)} into {folder / PACKAGES_FOLDER}, for their tables")
    _install(Path(sys.executable), "--no-deps", "--upgrade", "--target", str(folder / PACKAGES_FOLDER), *PACKAGES)


def draw_through_bins(
    table: Table,
    *,
    epsilon: float,  # noqa: ARG001  as for models
    seed: int,
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the real records, each value drawn again from its bin: the ceiling of every peer."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "table.npz"
        write_bins(table, path)
        return read_bins(table, path, seed=seed), {}


def write_bins(table: Table, path: Path) -> None:
    """Write the bins of the real records, and how many bins each column has; without columns that rules derive."""
    bins = {name: make_bins(column) for name, column in table.binned.modelled.columns.items()}
    records = table.encode(table.train)
    codes = np.column_stack([each.to_bins(records.codes[name]) for name, each in bins.items()])
    np.savez_compressed(path, codes=codes, sizes=np.array([each.count for each in bins.values()]))


def read_bins(table: Table, path: Path, *, seed: int) -> pd.DataFrame:
    """Return records whose bins were written; values are uniform within them, and derived columns follow the rules."""
    rng = np.random.default_rng(seed)
    with np.load(path) as file:
        drawn = file["codes"]
    columns = zip(table.binned.modelled.columns.items(), drawn.T, strict=True)
    codes = {name: make_bins(column).to_codes(own.astype(np.int64), rng) for (name, column), own in columns}
    codes, _ = table.binned.bind_rules().derive(codes)
    return to_frame(Records(table.binned, {name: codes[name] for name in table.binned.columns}, len(drawn)))


def _install(python: Path, *what: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
    subprocess.run(command, check=True)
