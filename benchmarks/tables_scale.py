"""Marginals at scale: time, memory and counting of tall and wide tables, and how fast they are sampled.

Tables are generated in row groups, so that the largest never lies in memory: columns in blocks of five depend on a
hidden variable of the block, and each block on the one before it. Every fit is `sundog fit` in a process of its own.
The peers are limits: for 10 million records of 30 columns five minutes, 4 GiB, and, for the time per record, that of
the size before; for 200 columns and for a column of 50,000 values ten minutes and 4 GiB; all pairs of the tallest table
counted in a CPU minute; 300,000 records a CPU second sampled at 15 columns, and 50,000 at 200.

    python benchmarks/tables_scale.py [--quick] [--json FILE] [--sizes N ...] [--only tall wide values sampling]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from report import Row, parse_arguments, print_each, publish

import sundog
from sundog.models.marginals.counting import count_cliques

GROUP = 250_000  # rows of a row group
BLOCK = 5  # columns that share a hidden variable
HIDDEN = 8  # values of a hidden variable
GIBIBYTES = 4.0
PARTS = ("tall", "wide", "values", "sampling")

# The command, then what it has cost. Not `ru_maxrss`: a process inherits that of the one which has started it.
FIT = """
import json, resource, sys, time
start = time.perf_counter()
from sundog.cli.main import _run
code = _run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
figures = {"s": time.perf_counter() - start, "cpu_s": used.ru_utime + used.ru_stime, "gib": peak / 2**20}
print(json.dumps(figures))
sys.exit(code)
"""


def declare_columns(count: int) -> dict[str, dict[str, Any]]:
    """Return the declarations of so many columns: texts, whole numbers, numbers and truths."""
    kinds: tuple[dict[str, Any], ...] = (
        {"type": "categorical", "values": [f"value {number}" for number in range(12)]},
        {"type": "integer", "min": 0, "max": 99},
        {"type": "continuous", "min": 0, "max": 1000, "resolution": 0.01},
        {"type": "ordinal", "values": ["low", "medium", "high", "highest"]},
        {"type": "boolean"},
    )
    return {f"c{place}": kinds[place % len(kinds)] for place in range(count)}


def generate_rows(columns: Mapping[str, Any], rows: int, rng: np.random.Generator) -> pa.Table:
    """Generate records of dependent columns."""
    hidden, found = rng.integers(0, HIDDEN, rows), {}
    for place, (name, column) in enumerate(columns.items()):
        if place % BLOCK == 0:
            hidden = np.where(rng.random(rows) < 0.7, hidden, rng.integers(0, HIDDEN, rows))
        share = np.clip((hidden + rng.normal(0.5, 0.8, rows)) / HIDDEN, 0, 1 - 1e-9)
        found[name] = _to_values(column, share)
    return pa.table(found)


def _to_values(column: Mapping[str, Any], share: npt.NDArray[np.float64]) -> pa.Array:
    """Return the values of a column at these shares of its range."""
    if column["type"] == "boolean":
        return pa.array(share > 0.5)
    if "values" in column:
        codes = (share * len(column["values"])).astype(np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(column["values"])).dictionary_decode()
    numbers = column["min"] + share * (column["max"] - column["min"])
    return pa.array(np.rint(numbers).astype(np.int64) if column["type"] == "integer" else np.round(numbers, 2))


def write_table(folder: Path, columns: Mapping[str, Any], rows: int) -> tuple[Path, Path]:
    """Write a table and its schema; return their paths."""
    data, schema, rng = folder / "table.parquet", folder / "table.schema.yaml", np.random.default_rng(0)
    sundog.Schema.from_dict({"columns": columns}).save(schema)
    first = generate_rows(columns, min(rows, GROUP), rng)
    with pq.ParquetWriter(data, first.schema) as writer:
        writer.write_table(first)
        for start in range(GROUP, rows, GROUP):
            writer.write_table(generate_rows(columns, min(GROUP, rows - start), rng))
    return data, schema


def fit_table(folder: Path, columns: Mapping[str, Any], rows: int) -> tuple[dict[str, float], Path]:
    """Fit a generated table; return the cost, and the release."""
    data, schema = write_table(folder, columns, rows)
    out = folder / "table.sundog"
    command = ["fit", str(data), "--schema", str(schema), "--epsilon", "1", "--model", "marginals", "-o", str(out)]
    done = subprocess.run([sys.executable, "-c", FIT, *command, "--force"], check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    data.unlink()
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures, out


def measure_counting(columns: int, rows: int) -> float:
    """Return the CPU seconds of counting all pairs of columns of up to 16 values."""
    rng, sizes = np.random.default_rng(0), [(12, 16, 16, 4, 2)[place % 5] for place in range(columns)]
    values = [rng.integers(0, size, rows, np.uint8) for size in sizes]
    start = time.process_time()
    count_cliques(values, sizes, combinations(range(columns), 2))
    return time.process_time() - start


def measure_tall(folder: Path, sizes: list[int], columns: int) -> Iterator[Row]:
    """Yield the figures of tables of a growing number of records."""
    before = None
    for rows in sizes:
        figures, _ = fit_table(folder, declare_columns(columns), rows)
        name = f"{rows:,} × {columns}"
        yield Row(f"fit, {name}", figures["s"] / 60, "min", "five", 5.0)
        yield Row(f"processor, {name}", figures["cpu_s"], "CPU s", "of the clock", figures["s"])
        yield Row(f"memory, {name}", figures["gib"], "GiB", "four", GIBIBYTES)
        each = 1e6 * figures["s"] / rows
        yield Row(f"a record, {name}", each, "µs", "of the size before", before or each)
        before = each
    yield Row(f"all pairs, {sizes[-1]:,} × {columns}", measure_counting(columns, sizes[-1]), "CPU s", "a minute", 60.0)


def measure_other(name: str, folder: Path, columns: Mapping[str, Any], rows: int) -> Iterator[Row]:
    """Yield the figures of one table."""
    figures, _ = fit_table(folder, columns, rows)
    yield Row(f"fit, {name}", figures["s"] / 60, "min", "ten", 10.0)
    yield Row(f"memory, {name}", figures["gib"], "GiB", "four", GIBIBYTES)


def measure_sampling(folder: Path, columns: int, limit: float, rows: int) -> Iterator[Row]:
    """Yield how many records of so many columns are drawn, and written, in a CPU second."""
    _, path = fit_table(folder, declare_columns(columns), min(rows, 50_000))
    release = sundog.Release.load(path)
    release.sample(10, seed=1)  # the model is calibrated once
    ways: dict[str, Callable[[], object]] = {
        "codes": lambda: list(release.batches(rows, seed=1)),
        "a DataFrame": lambda: release.sample(rows, seed=1),
        "csv": lambda: release.write(folder / "drawn.csv", rows, seed=1),
        "parquet": lambda: release.write(folder / "drawn.parquet", rows, seed=1),
    }
    for way, draw in ways.items():
        start = time.process_time()
        draw()
        rate = rows / (time.process_time() - start)
        yield Row(f"{columns} columns, drawn as {way}", rate, "rows/s", "at least", limit)


def measure_all(options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Yield the figures of all parts that were asked for."""
    quick = options.quick
    if "tall" in options.only:
        yield from measure_tall(folder, [2000, 4000] if quick else options.sizes, 6 if quick else 30)
    if "wide" in options.only:
        rows, columns = (500, 12) if quick else (50_000, 200)
        yield from measure_other(f"{rows:,} × {columns}", folder, declare_columns(columns), rows)
    if "values" in options.only:
        rows, values = (500, 300) if quick else (1_000_000, 50_000)
        many = {"type": "categorical", "values": [f"item {number}" for number in range(values)]}
        yield from measure_other(f"a column of {values:,} values", folder, {"item": many, **declare_columns(9)}, rows)
    if "sampling" in options.only:
        for columns, limit, rows in ((15, 300_000.0, 1_000_000), (200, 50_000.0, 100_000)):
            yield from measure_sampling(folder, 7 if quick else columns, limit, 1000 if quick else rows)


def extend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", nargs="+", type=int, default=[2_500_000, 5_000_000, 10_000_000])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))


def main() -> None:
    options = parse_arguments(__doc__ or "", extend)
    with tempfile.TemporaryDirectory() as name:
        rows = print_each(measure_all(options, Path(name)))
    publish(rows, options)


if __name__ == "__main__":
    main()
