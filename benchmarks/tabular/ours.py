"""Our own models, each fitted in a process of its own, and the ceiling: real records through the bins of the model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sundog
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.writing.frames import to_frame
from tabular.adapter import measure_cost
from tabular.datasets import Table

ROOT = Path(__file__).parents[1]


def fit_and_draw(
    table: Table,
    model: str,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    settings: Mapping[str, Any],
    binned: bool = False,
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return as many synthetic records as real ones, and what the fit cost, from the file of records to the release.

    With `binned` it learns numbers in the bins that distances are taken with, as peers do.
    """
    request = {"model": model, "epsilon": epsilon, "delta": delta, "seed": seed, "settings": dict(settings)}
    release, cost = _fit(table.binned if binned else table.schema, table, request)
    return release.sample(len(table.train), seed=seed), cost


def draw_through_bins(
    table: Table, *, epsilon: float, delta: float, seed: int
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the real records, each value drawn again from its group of values in a release of the model.

    With these groups, nothing that the model learns can be better than this.
    """
    request = {"model": "marginals", "epsilon": epsilon, "delta": delta, "seed": seed, "settings": {}}
    release, _ = _fit(table.schema, table, request)
    codes = encode(read(table.train, release.schema), release.schema).codes
    rng = np.random.default_rng(seed)
    model: Any = release.model
    fine = model.axes.fine
    drawn = {name: each.decode(each.encode(codes[name]).astype(np.int64), rng) for name, each in fine.items()}
    return to_frame(Records(release.schema, codes | drawn, len(table.train))), {}


def _fit(schema: sundog.Schema, table: Table, request: Mapping[str, Any]) -> tuple[sundog.Release, dict[str, float]]:
    """Return a release of a fit in a process of its own, and what it cost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table.train.to_parquet(folder / "records.parquet")
        schema.aim_at(table.target).save(folder / "schema.yaml")
        command = [sys.executable, "-m", "tabular.ours", str(folder), json.dumps(request)]
        paths = [str(Path(sundog.__file__).parents[1]), str(ROOT), os.environ.get("PYTHONPATH", "")]
        subprocess.run(command, check=True, cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
        release = sundog.Release.load(folder / "out.sundog")
        return release, json.loads((folder / "cost.json").read_text())


def main() -> None:
    """Fit a model to the records in a folder."""
    folder, request = Path(sys.argv[1]), json.loads(sys.argv[2])
    synthesizer = sundog.Synthesizer(**request)
    source, schema, out = folder / "records.parquet", folder / "schema.yaml", folder / "out.sundog"
    _, cost = measure_cost(lambda: synthesizer.fit(source, schema, out=out))
    (folder / "cost.json").write_text(json.dumps(cost))


if __name__ == "__main__":
    main()
