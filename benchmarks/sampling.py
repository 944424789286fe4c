"""Sampling: rows per second into memory, and peak memory while writing a large csv.

The peer draws the same columns with numpy's `Generator.choice` and writes with pandas. Networks are measured in CPU
time, `rbm` beside `vae`.

    python benchmarks/sampling.py [--quick] [--json FILE]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from report import Row, parse_arguments, publish, time_interleaved

import sundog
from sundog.data.bins import make_bins
from sundog.data.rules.functional_dependency import FunctionalDependency

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"

# The peak memory of this program by the kernel; getrusage starts at that of the parent process.
PEAK = """
import sys, sundog
sundog.Release.load(sys.argv[1]).write(sys.argv[2], int(sys.argv[3]), seed=1)
print(next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def sample_with_numpy(release: sundog.Release, n: int) -> pd.DataFrame:
    """Draw the same marginals with numpy."""
    rng = np.random.default_rng(1)
    columns = {}
    marginals = release.model.state().tensors.values()
    for (name, column), marginal in zip(release.schema.modelled.columns.items(), marginals, strict=True):
        bins = make_bins(column)
        drawn = rng.choice(bins.count, n, p=marginal)
        values: Any = column.decode(bins.to_codes(drawn, rng))
        columns[name] = values.to_pandas()
    for rule in release.schema.rules:
        assert isinstance(rule, FunctionalDependency)
        columns[rule.column] = columns[rule.source].map(dict(rule.table))
    return pd.DataFrame(columns)


def measure_memory(release: Path, out: Path, rows: int) -> float:
    """Return the peak memory of a process that writes this many rows."""
    command = [sys.executable, "-c", PEAK, str(release), str(out), str(rows)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_rate(model: str, data: Path, n: int) -> float:
    """Return the rows per CPU second of a briefly trained network; the weights do not affect the speed."""
    schema = sundog.Schema.load(SCHEMA)
    release = sundog.Synthesizer(model=model, epsilon=1.0, settings={"epochs": 1}).fit(data, schema).release_
    started = time.process_time()
    release.sample(n, seed=1)
    return n / (time.process_time() - started)


def main() -> None:
    options = parse_arguments(__doc__ or "")
    n = 100_000 if options.quick else 1_000_000
    source = resources.files("sundog.demo") / "adult.csv.gz"
    release = sundog.Synthesizer(model="independent").fit(Path(str(source)), sundog.Schema.load(SCHEMA)).release_
    repeats = 1 if options.quick else 5
    into_memory = time_interleaved(
        {"ours": lambda: release.sample(n, seed=1), "peer": lambda: sample_with_numpy(release, n)}, repeats=repeats
    )
    with tempfile.TemporaryDirectory() as folder:
        file, path = Path(folder) / "big.csv", Path(folder) / "adult.sundog"
        release.save(path)
        frame = release.sample(n, seed=1)
        assert isinstance(frame, pd.DataFrame)
        into_csv = time_interleaved(
            {"ours": lambda: release.write(file, n, seed=1), "peer": lambda: frame.to_csv(file, index=False)},
            repeats=1 if options.quick else 3,
        )
        small, large = measure_memory(path, file, n // 10), measure_memory(path, file, 10 * n)
    networks = {name: measure_rate(name, Path(str(source)), n // 5) for name in ("rbm", "vae")}
    peer = "numpy choice, pandas"
    publish(
        [
            Row("rows a second into memory", n / into_memory["ours"], "rows/s", peer, n / into_memory["peer"]),
            Row("rows a second into csv", n / into_csv["ours"], "rows/s", "DataFrame.to_csv", n / into_csv["peer"]),
            Row("rows a second of one core, rbm", networks["rbm"], "rows/s", "the same, vae", networks["vae"]),
            Row(f"peak MB, csv of {10 * n:,} rows", large, "MB", f"the same of {n // 10:,} rows", small),
        ],
        options,
    )


if __name__ == "__main__":
    main()
