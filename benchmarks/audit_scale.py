"""The cost of an audit: CPU seconds and peak memory for records of each kind and a growing number of them.

Members, non-members and synthetic records are as many samples of one generated population: a table of 15 columns, sets
over 16,470 items, series of 96 values, and images of 32 × 32 pixels. `adult` is a release of Adult by `marginals` at
ε = 1, with its test records as non-members; `quick` is the same with `--quick`. Every audit is `sundog audit` in a
process of its own, which may use one thread. The peers are limits: ten CPU minutes for Adult, one with `--quick`,
twenty for each kind of 100,000 records and in proportion for fewer, and 1.5 GiB.

    SUNDOG_DATA=../shared/data python benchmarks/audit_scale.py [--quick] [--json FILE] [--sizes N ...] [--only ...]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from report import DATA, Row, parse_arguments, print_each, publish
from scipy import sparse
from tables_scale import declare_columns, generate_rows

import sundog

EXAMPLES = Path(__file__).parent.parent / "examples"
COLUMNS = 15
ITEMS, PER_SET = 16_470, 10
LENGTH, SIDE = 96, 32
LIMITS = {"adult": 600.0, "quick": 60.0}  # CPU seconds
EACH = 1200.0 / 100_000  # CPU seconds for a record of each kind
MIBIBYTES = 1536.0
PARTS = ("members", "nonmembers", "synthetic")

# The command, then what it has cost. Not `ru_maxrss`: a process inherits that of the one which has started it.
AUDIT = """
import json, resource, sys
from sundog.cli.main import _run
code = _run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(json.dumps({"cpu_s": used.ru_utime + used.ru_stime, "mib": peak / 2**10}))
sys.exit(code)
"""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def write_tables(folder: Path, rows: int) -> tuple[dict[str, Any], list[Path]]:
    """Write tables of dependent columns; return the declarations of their columns, and the files."""
    columns, rng = declare_columns(COLUMNS), np.random.default_rng(0)
    paths = [folder / f"{part}.parquet" for part in PARTS]
    for path in paths:
        pq.write_table(generate_rows(columns, rows, rng), path)
    return columns, paths


def write_arrays(
    name: str, column: dict[str, Any], generate: Callable[[int, np.random.Generator], Any]
) -> Callable[[Path, int], tuple[dict[str, Any], list[Path]]]:
    """Return a function that writes arrays of one column."""

    def write(folder: Path, rows: int) -> tuple[dict[str, Any], list[Path]]:
        rng, paths = np.random.default_rng(0), [folder / f"{part}.npz" for part in PARTS]
        for path in paths:
            values = generate(rows, rng)
            if sparse.issparse(values):
                sparse.save_npz(path, values)
            else:
                np.savez(path, **{name: values})
        return {name: column}, paths

    return write


def generate_sets(rows: int, rng: np.random.Generator) -> Any:
    """Return sets of items, of which few are common, as in a supermarket."""
    chances = 1 / (np.arange(ITEMS) + 5)
    items = rng.choice(ITEMS, (rows, PER_SET), p=chances / chances.sum())
    places = np.repeat(np.arange(rows), PER_SET)
    found = sparse.csr_array((np.ones(items.size, np.uint8), (places, items.ravel())), shape=(rows, ITEMS))
    found.sum_duplicates()
    found.data[:] = 1
    return found


def generate_series(rows: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return days with two peaks each."""
    total = rng.gamma(1.0, 0.2, (rows, LENGTH))
    for usual in (30, 75):
        at = rng.normal(usual, 6, rows)
        total += rng.gamma(3.0, 0.5, (rows, 1)) * make_bumps(LENGTH, at, rng.uniform(2, 9, rows))
    return np.round(total.clip(0, 10), 3)


def generate_images(rows: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Return images of one blurred spot each."""
    across, down = (make_bumps(SIDE, rng.uniform(4, 28, rows), rng.uniform(2, 8, rows)) for _ in range(2))
    found = np.empty((rows, SIDE, SIDE), np.uint8)
    for row in range(rows):
        found[row] = 210 * np.outer(across[row], down[row]) + rng.integers(0, 40, (SIDE, SIDE))
    return found


def make_bumps(length: int, at: npt.NDArray[np.float64], width: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return one bump of height 1 in each row."""
    return np.exp(-(((np.arange(length) - at[:, None]) / width[:, None]) ** 2))


WRITERS = {
    "tables": write_tables,
    "sets": write_arrays("items", {"type": "set", "universe": ITEMS, "max_size": PER_SET}, generate_sets),
    "series": write_arrays(
        "load", {"type": "series", "length": LENGTH, "min": 0, "max": 10, "resolution": 0.001}, generate_series
    ),
    "images": write_arrays("image", {"type": "image", "shape": [SIDE, SIDE]}, generate_images),
}


def run_audit(arguments: list[str]) -> dict[str, float]:
    """Run `sundog audit` in a process of its own; return what it has cost."""
    command = [sys.executable, "-c", AUDIT, "audit", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measure_kind(kind: str, rows: int, folder: Path) -> dict[str, float]:
    """Return the cost for so many members, non-members and synthetic records of a kind."""
    columns, paths = WRITERS[kind](folder, rows)
    members, nonmembers, synthetic = map(str, paths)
    schema = folder / "schema.yaml"
    sundog.Schema.from_dict({"columns": columns}).save(schema)
    given = ["--members", members, "--nonmembers", nonmembers, "--schema", str(schema)]
    figures = run_audit([synthetic, *given])
    for path in paths:
        path.unlink()
    return figures


def measure_adult(options: list[str], folder: Path) -> dict[str, float]:
    """Return the cost for a release of Adult."""
    schema = sundog.Schema.load(EXAMPLES / "adult.schema.yaml")
    release = folder / "adult.sundog"
    members, nonmembers = (DATA / f"adult_{part}.csv.gz" for part in ("train", "test"))
    sundog.Synthesizer(model="marginals", epsilon=1.0, delta=1e-5).fit(members, schema).release_.save(release)
    return run_audit([str(release), "--members", str(members), "--nonmembers", str(nonmembers), *options])


def measure_all(options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Yield the figures of all parts that were asked for."""
    for name, limit in LIMITS.items():
        if name in options.only and (DATA / "adult_train.csv.gz").exists():
            given = ["--rows", "500"] if options.quick else ["--quick"] if name == "quick" else []
            yield from _to_rows(name, measure_adult(given, folder), limit)
    for kind in (kind for kind in WRITERS if kind in options.only):
        for rows in [300] if options.quick else options.sizes:
            yield from _to_rows(f"{kind}, {rows:,}", measure_kind(kind, rows, folder), max(60.0, EACH * rows))


def _to_rows(name: str, figures: dict[str, float], limit: float) -> Iterator[Row]:
    yield Row(f"processor, {name}", figures["cpu_s"], "CPU s", "at most", limit)
    yield Row(f"memory, {name}", figures["mib"], "MiB", "at most", MIBIBYTES)


def extend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000, 30_000, 100_000])
    parser.add_argument("--only", nargs="+", choices=[*LIMITS, *WRITERS], default=[*LIMITS, *WRITERS])


def main() -> None:
    options = parse_arguments(__doc__ or "", extend)
    with tempfile.TemporaryDirectory() as name:
        rows = print_each(measure_all(options, Path(name)))
    publish(rows, options)


if __name__ == "__main__":
    main()
