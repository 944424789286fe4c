"""Small tables: `marginals` beside `independent`, on parts of Adult of several sizes, at δ = 1e-5.

The mean total variation of all pairs of columns between samples and the test file, averaged over parts; with the
standard error of the ratio of both. Where pairs are lost in the noise, `marginals` should not be worse than
`independent` by more than that.

    SUNDOG_DATA=../shared/data python benchmarks/small_tables.py [--quick] [--json FILE] [--records N ...]
        [--epsilons E ...] [--seeds N]
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from report import DATA, Row, parse_arguments, publish
from tabular.datasets import Table, load_adult
from tabular.measures import pair_distance

import sundog

DELTA = 1e-5
OURS, BASELINE = "marginals", "independent"
DRAWN = 10_000

Floats = npt.NDArray[np.float64]


def extend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", nargs="+", type=int, default=[300, 1000, 3000])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.3, 1.0])
    parser.add_argument("--seeds", type=int, default=10)


def main() -> None:
    options = parse_arguments(__doc__ or "", extend)
    if options.quick:
        options.records, options.epsilons, options.seeds = [300], [1.0], 2
    table = load_adult(DATA, packages=Path(), quick=options.quick)
    publish(list(compare(table, options)), options)


def compare(table: Table, options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each size and ε, and print the error of its ratio."""
    for count, epsilon in itertools.product(options.records, options.epsilons):
        ours, theirs = (
            np.array([measure(table, model, count, epsilon, seed) for seed in range(options.seeds)])
            for model in (OURS, BASELINE)
        )
        name = f"{count:,} records ε={epsilon:g}"
        print(f"{name}: ratio {ours.mean() / theirs.mean():.3f} ± {find_error(ours, theirs):.3f}", flush=True)
        yield Row(f"two-way distance, {name}", float(ours.mean()), "", BASELINE, float(theirs.mean()))


def measure(table: Table, model: str, count: int, epsilon: float, seed: int) -> float:
    """Return the distance between samples and the test file, of a model that learned some of the records."""
    part = table.train.sample(count, random_state=seed)
    release = sundog.Synthesizer(model, epsilon, DELTA, seed=seed).fit(part, table.schema).release_
    return pair_distance(table.encode(table.test), table.encode(release.sample(DRAWN, seed=seed)))


def find_error(ours: Floats, theirs: Floats) -> float:
    """Return the standard error of the ratio of two means of pairs (the delta method).

    >>> find_error(np.array([2.0, 4.0]), np.array([1.0, 2.0])), find_error(np.array([2.0, 4.0]), np.array([1.0, 1.0]))
    (0.0, 1.0)
    """
    left = ours - theirs * (ours.mean() / theirs.mean())
    return float(np.std(left, ddof=1) / theirs.mean() / math.sqrt(len(left)))


if __name__ == "__main__":
    main()
