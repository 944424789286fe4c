"""`independent` on Adult at ε = 1: the time of a fit, and the distance of the marginals from the real ones.

The peer of the distance is a bootstrap of the real data: the error of sampling alone, without privacy.

    SUNDOG_DATA=../shared/data python benchmarks/independent_adult.py [--quick] [--json FILE]
"""

from __future__ import annotations

import statistics
import time
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
from report import DATA, Row, parse_arguments, publish

import sundog
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.evaluation.total_variation import compute_marginal_distance

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"


def measure_distance(real: Records, fake: Records) -> float:
    """Return the mean total-variation distance of one-way marginals, over the schema's bins."""
    return float(np.mean([compute_marginal_distance(real, fake, name) for name in real.schema.columns]))


def main() -> None:
    options = parse_arguments(__doc__ or "")
    source = DATA / "adult_train.csv.gz"
    if options.quick or not source.exists():
        source = Path(str(resources.files("sundog.demo") / "adult.csv.gz"))
        print(f"on the bundled slice ({source.name}); set SUNDOG_DATA for all of Adult")
    schema = sundog.Schema.load(SCHEMA)
    real = encode(read(source, schema), schema)
    rng = np.random.default_rng(0)
    fits, reads, distances, floor = [], [], [], []
    for seed in range(1 if options.quick else 5):
        start = time.perf_counter()
        pd.read_csv(source)
        reads.append(time.perf_counter() - start)
        start = time.perf_counter()
        release = sundog.Synthesizer(model="independent", epsilon=1.0).fit(source, schema).release_
        fits.append(time.perf_counter() - start)
        fake = encode(read(release.sample(len(real), seed=seed), schema), schema)
        distances.append(measure_distance(real, fake))
        floor.append(measure_distance(real, real.take(rng.integers(0, len(real), len(real)))))
    peer = "bootstrap of the real data"
    rows = [
        Row("fit", statistics.median(fits), "s", "pandas.read_csv alone", statistics.median(reads)),
        Row("mean 1-way TVD", statistics.median(distances), "", peer, statistics.median(floor)),
    ]
    publish(rows, options)


if __name__ == "__main__":
    main()
