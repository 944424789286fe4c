"""Time and memory of a mixture on a million sets of a thousand possible items: clusters and one epoch, on two cores.

Sets are generated: each is of one of twenty kinds, which differ in the frequencies of items, and has about ten items.
Each size runs in a separate process, whose peak memory is that of the whole fit. The peers are ten minutes per million,
4 GiB, and, for the time per record, that of the size before: time must be linear in records. `--sizes 4400000 --items
1303` is the size of the papers' largest data, which is not available.

    python benchmarks/dpgm_scale.py [--quick] [--json FILE] [--sizes N ...] [--items N] [--model NAME] [--clusters K]
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from typing import Any

import numpy as np
from report import Row, parse_arguments, publish
from scipy import sparse

KINDS, HELD = 20, 10
MINUTES, GIBIBYTES = 10.0, 4.0  # the first for a million records


def generate_sets(records: int, items: int) -> Any:
    """Generate sets of several kinds, in pieces, so that there is never a dense table."""
    rng = np.random.default_rng(0)
    common = rng.gamma(0.3, size=(KINDS, items))
    chance = np.minimum(0.5, HELD * common / common.sum(axis=1, keepdims=True))
    kind = rng.integers(0, KINDS, records)
    blocks = []
    for start in range(0, records, 10_000):
        some = chance[kind[start : start + 10_000]]
        blocks.append(sparse.csr_array((rng.random(some.shape, np.float32) < some).astype(np.uint8)))
    return sparse.csr_array(sparse.vstack(blocks, format="csr"))


def measure_fit(records: int, items: int, model: str, clusters: int) -> tuple[float, float]:
    """Return the minutes and GiB of one fit."""
    import torch

    import sundog

    torch.set_num_threads(2)
    sets = generate_sets(records, items)
    column = {"type": "set", "universe": items, "max_size": 32}
    schema = sundog.Schema.from_dict({"records": records, "columns": {"items": column}})
    start = time.perf_counter()
    maker = sundog.Synthesizer(model, 1.0, 1e-8, clusters=clusters, seed=0, settings={"epochs": 1})
    maker.fit(sets, schema)
    minutes = (time.perf_counter() - start) / 60
    return minutes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", nargs="+", type=int, default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--model", default="rbm")
    parser.add_argument("--clusters", type=int, default=10)


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    sizes, clusters = ([200, 400], 2) if options.quick else (options.sizes, options.clusters)
    rows, before = [], None
    for records in sizes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            minutes, gibibytes = pool.apply(measure_fit, (records, options.items, options.model, clusters))
        each = 60e6 * minutes / records
        rows.append(Row(f"time, {records:,} records", minutes, "min", "ten a million", MINUTES * records / 1e6))
        rows.append(Row(f"memory, {records:,} records", gibibytes, "GiB", "four", GIBIBYTES))
        rows.append(Row(f"a record, of {records:,}", each, "µs", "of the size before", before or each))
        before = each
        publish(rows[-3:], argparse.Namespace(json=None))
    publish(rows, options)


if __name__ == "__main__":
    main()
