"""Copies of rare records in synthetic data: what attacks prove, beside a similarity score and an average attack.

The 100 rarest members are copied into 1% of the synthetic records, which an `independent` model at ε = 1 made: a table
(Adult), sets (MSWeb), series (days of smart meters) and images (MNIST). The audit sees samples only. The value is the
lower bound on ε; peers are the share of synthetic records nearer to a member than to a non-member, and the area under
the curve of the density-ratio attack: both are about ½ where nothing leaks. The same without copies is the control.

    SUNDOG_DATA=../shared/data python benchmarks/audit_copies.py [--quick] [--json FILE] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from report import DATA, Row, parse_arguments, publish
from scipy import sparse

import sundog
from sundog.auditing.rarity import compute_rarity
from sundog.data.columns import Form
from sundog.data.reading.read import encode, read
from sundog.data.records import Records, concatenate
from sundog.release.release import Release

EXAMPLES = Path(__file__).parent.parent / "examples"
COPIED, SHARE = 100, 0.01


class Split(NamedTuple):
    """Members and non-members, as `sundog.audit` reads them."""

    schema: sundog.Schema
    members: Any
    nonmembers: Any


def load_table(rows: int) -> Split:
    """Return Adult, with its test records as non-members."""
    schema = sundog.Schema.load(EXAMPLES / "adult.schema.yaml")
    train, test = (pd.read_csv(DATA / f"adult_{part}.csv.gz") for part in ("train", "test"))
    return Split(schema, train[:rows], test[:rows])


def load_sets(rows: int) -> Split:
    """Return the areas of microsoft.com that users visited."""
    kept = np.load(DATA / "sets_msweb.npz")
    whole = (np.ones(len(kept["indices"]), np.uint8), kept["indices"], kept["indptr"])
    return halve(
        sundog.Schema.load(EXAMPLES / "msweb.schema.yaml"), sparse.csr_array(whole, tuple(kept["shape"])), rows
    )


def load_series(rows: int) -> Split:
    """Return days of households."""
    column = {"type": "series", "length": 96, "min": 0, "max": 10, "resolution": 0.001}
    days = np.clip(np.load(DATA / "swiss_smartmeter_daily96.npz")["x"], 0, 10)
    return halve(sundog.Schema.from_dict({"columns": {"load": column}}), days, rows)


def load_images(rows: int) -> Split:
    """Return 10,000 digits, and 10,000 others."""
    with gzip.open(DATA / "mnist-train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    schema = sundog.Schema.from_dict({"columns": {"image": {"type": "image", "shape": [28, 28]}}})
    return halve(schema, pixels[:20_000], rows)


def halve(schema: sundog.Schema, values: Any, rows: int) -> Split:
    """Return two random halves, of at most so many records."""
    order = np.random.default_rng(0).permutation(values.shape[0])
    half = min(rows, len(order) // 2)
    return Split(schema, values[order[:half]], values[order[half : 2 * half]])


LOADERS: dict[str, Callable[[int], Split]] = {
    "table": load_table,
    "sets": load_sets,
    "series": load_series,
    "images": load_images,
}


def make_synthetic(split: Split, *, copied: bool) -> Any:
    """Return synthetic records, 1% of which are copies of the rarest members if asked for."""
    release = sundog.Synthesizer(model="independent", epsilon=1.0, delta=1e-6).fit(split.members, split.schema).release_
    drawn = draw(release, split.schema)
    if not copied:
        return decode(drawn)
    real = encode(read(split.members, split.schema), split.schema)
    rarest = np.argsort(-compute_rarity(real))[:COPIED]
    count = round(SHARE * len(drawn))
    rows = np.random.default_rng(1).permutation(len(drawn))
    copies = real.take(np.resize(rarest, count))
    return decode(concatenate([drawn.take(rows[count:]), copies]))


def draw(release: Release, schema: sundog.Schema) -> Records:
    records = concatenate(list(release.batches(release.records or 0, seed=0)))
    return Records(schema, records.codes, len(records))


def decode(records: Records) -> Any:
    """Return the values as `sundog.audit` reads them."""
    if all(column.form is Form.SCALAR for column in records.schema.columns.values()):
        return pd.DataFrame(
            {name: column.to_series(records.codes[name]) for name, column in records.schema.scalars.items()}
        )
    ((name, column),) = records.schema.columns.items()
    return records.codes[name] if column.form is Form.SET else column.decode(records.codes[name])


def measure(name: str, split: Split, *, copied: bool) -> list[Row]:
    """Return the bound beside each peer."""
    synthetic = make_synthetic(split, copied=copied)
    start = time.perf_counter()
    found = sundog.audit(synthetic, members=split.members, nonmembers=split.nonmembers, schema=split.schema)
    taken = time.perf_counter() - start
    (attack,) = (attack for attack in found.membership.attacks if attack.name == "density-ratio")
    case = f"{name}, {'copies' if copied else 'no copies'}"
    print(f"{case} ({taken:.0f} s)\n{found.to_text()}\n")
    bound = found.findings[0].bound
    return [
        Row(case, bound, "ε ≥", "nearer to a member", found.similarity.value),
        Row(case, bound, "ε ≥", "AUC of the density ratio", attack.measures["auc"].value),
    ]


def main() -> None:
    def extend(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--only", nargs="+", choices=LOADERS, default=list(LOADERS))

    options = parse_arguments(__doc__ or "", extend)
    if not (DATA / "adult_train.csv.gz").exists():
        print("set SUNDOG_DATA to the folder of the data; there is nothing to measure without it")
        publish([], options)
        return
    rows = []
    for name in options.only:
        split = LOADERS[name](3000 if options.quick else 10**6)
        rows += [row for copied in (True, False) for row in measure(name, split, copied=copied)]
    publish(rows, options)


if __name__ == "__main__":
    main()
