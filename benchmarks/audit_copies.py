"""Copies of rare records in synthetic data: what attacks prove, beside a similarity score and an average attack.

The 100 rarest members are copied into 1% of the synthetic records, which an `independent` model at ε = 1 made: a table
(Adult), sets (MSWeb), series (days of smart meters) and images (MNIST). They are exact copies, or each is changed a
little: one value of a table, an item less, a step in time or a pixel, with a little noise. The audit sees samples only.
The value is the lower bound on ε; peers are the share of synthetic records nearer to a member than to a non-member, and
the area under the curve of the density-ratio attack: both are about ½ where nothing leaks. The same without copies is
the control.

    SUNDOG_DATA=../shared/data python benchmarks/audit_copies.py [--quick] [--json FILE] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Callable
from dataclasses import replace
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
NOISE = 0.05  # of changed arrays, beside their own deviation
CASES = {"exact": "copies", "changed": "changed copies", "none": "no copies"}


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


def make_synthetic(split: Split, *, copied: str) -> Any:
    """Return synthetic records, 1% of which are copies of the rarest members, exact or changed, if asked for."""
    release = sundog.Synthesizer(model="independent", epsilon=1.0, delta=1e-6).fit(split.members, split.schema).release_
    drawn = draw(release, split.schema)
    if copied == "none":
        return decode(drawn)
    real = encode(read(split.members, split.schema), split.schema)
    rarest = np.argsort(-compute_rarity(real))[:COPIED]
    count = round(SHARE * len(drawn))
    rows = np.random.default_rng(1).permutation(len(drawn))
    copies = real.take(np.resize(rarest, count))
    if copied == "changed":
        copies = change(copies, drawn, np.random.default_rng(2))
    return decode(concatenate([drawn.take(rows[count:]), copies]))


def change(copies: Records, drawn: Records, rng: np.random.Generator) -> Records:
    """Return copies with one change each: a value as in a synthetic record, an item less, a shift with noise."""
    if len(copies.schema.columns) > 1:
        return change_values(copies, drawn, rng)
    ((name, column),) = copies.schema.columns.items()
    if column.form is Form.SET:
        return replace(copies, codes={name: drop_items(copies.codes[name], rng)})
    codes = np.stack([shift(one, rng) for one in copies.codes[name]])
    noise = NOISE * codes.std(axis=tuple(range(1, codes.ndim)), keepdims=True) * rng.standard_normal(codes.shape)
    changed = np.clip(np.rint(codes + noise), 0, column.lattice_size - 1)
    return replace(copies, codes={name: changed.astype(copies.codes[name].dtype)})


def change_values(copies: Records, drawn: Records, rng: np.random.Generator) -> Records:
    """Return copies in which one column of each has the value of a synthetic record."""
    codes = {name: values.copy() for name, values in copies.codes.items()}
    names, others = list(codes), drawn.take(rng.choice(len(drawn), len(copies)))
    for row, place in enumerate(rng.integers(0, len(names), len(copies)).tolist()):
        codes[names[place]][row] = others.codes[names[place]][row]
    return replace(copies, codes=codes)


def drop_items(sets: Any, rng: np.random.Generator) -> Any:
    """Return the sets without one item each, but for sets of a single item."""
    changed = sparse.lil_array(sets)
    for row, items in enumerate(changed.rows):
        if len(items) > 1:
            changed[row, rng.choice(items)] = 0
    return sparse.csr_array(changed)


def shift(one: Any, rng: np.random.Generator) -> Any:
    """Return an array a place further along each axis, in either direction; its border is repeated."""
    found = one
    for axis, step in enumerate(rng.choice([-1, 1], one.ndim)):
        found = found.take(np.clip(np.arange(one.shape[axis]) - step, 0, one.shape[axis] - 1), axis=axis)
    return found


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


def measure(name: str, split: Split, *, copied: str) -> list[Row]:
    """Return the bound beside each peer."""
    synthetic = make_synthetic(split, copied=copied)
    start = time.perf_counter()
    found = sundog.audit(synthetic, members=split.members, nonmembers=split.nonmembers, schema=split.schema)
    taken = time.perf_counter() - start
    (attack,) = (attack for attack in found.membership.attacks if attack.name == "density-ratio")
    case = f"{name}, {CASES[copied]}"
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
        rows += [row for copied in CASES for row in measure(name, split, copied=copied)]
    publish(rows, options)


if __name__ == "__main__":
    main()
