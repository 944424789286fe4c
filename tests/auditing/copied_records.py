"""Generated data of every kind, and synthetic records that hold copies of rare members or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from sundog.auditing.rarity import compute_rarity
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema

ROWS, COPIED = 1000, 60


class Material(NamedTuple):
    """What an audit reads, before anything is copied: all four parts are samples of one population."""

    schema: Schema
    members: Any
    nonmembers: Any
    synthetic: Any


def make_table(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    age = rng.integers(0, 100, rows)
    income = (rng.gamma(2.0, 300.0 + 5 * age)).astype(int).clip(0, 20_000)
    job = rng.choice(
        [f"job {number}" for number in range(12)], rows, p=np.geomspace(1, 0.01, 12) / np.geomspace(1, 0.01, 12).sum()
    )
    return pd.DataFrame(
        {"age": age, "income": income, "job": job, "old": np.where(age + rng.normal(0, 9, rows) > 60, "yes", "no")}
    )


TABLE = Schema.from_dict(
    {
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 99},
            "income": {"type": "integer", "min": 0, "max": 20_000},
            "job": {"type": "categorical", "values": [f"job {number}" for number in range(12)]},
            "old": {"type": "categorical", "values": ["no", "yes"]},
        }
    }
)
SETS = Schema.from_dict({"columns": {"basket": {"type": "set", "universe": 80, "max_size": 30}}})
SERIES = Schema.from_dict(
    {"columns": {"load": {"type": "series", "length": 24, "min": 0, "max": 10, "resolution": 0.01}}}
)
IMAGES = Schema.from_dict({"columns": {"image": {"type": "image", "shape": [8, 8], "levels": 256}}})


def make_sets(rng: np.random.Generator, rows: int) -> Any:
    chances = np.geomspace(0.4, 0.01, 80)
    return sparse.csr_array((rng.random((rows, 80)) < chances).astype(np.uint8))


def make_series(rng: np.random.Generator, rows: int) -> np.ndarray[Any, Any]:
    hours = np.arange(24)
    peak, width = rng.uniform(6, 20, (rows, 1)), rng.uniform(1, 4, (rows, 1))
    height = rng.gamma(3.0, 0.6, (rows, 1))
    return (height * np.exp(-(((hours - peak) / width) ** 2)) + rng.gamma(1.0, 0.1, (rows, 24))).clip(0, 10).round(2)


def make_images(rng: np.random.Generator, rows: int) -> np.ndarray[Any, Any]:
    across, down = np.meshgrid(np.arange(8), np.arange(8))
    x, y, size = (rng.uniform(low, high, (rows, 1, 1)) for low, high in ((1, 7), (1, 7), (0.8, 2.5)))
    spots = 200 * np.exp(-((across - x) ** 2 + (down - y) ** 2) / size**2) + rng.gamma(1.0, 8.0, (rows, 8, 8))
    return spots.clip(0, 255).astype(np.uint8)


MAKERS: dict[str, tuple[Schema, Callable[[np.random.Generator, int], Any]]] = {
    "table": (TABLE, make_table),
    "sets": (SETS, make_sets),
    "series": (SERIES, make_series),
    "images": (IMAGES, make_images),
}


def make_material(kind: str, *, rows: int = ROWS, seed: int = 0) -> Material:
    """Return three independent samples of one population."""
    schema, make = MAKERS[kind]
    rng = np.random.default_rng(seed)
    return Material(schema, *(make(rng, rows) for _ in range(3)))


def copy_rarest(material: Material) -> Material:
    """Return the same with the rarest members in place of some synthetic records."""
    real = encode(read(material.members, material.schema), material.schema)
    rarest = np.argsort(-compute_rarity(real))[:COPIED]
    members, synthetic = material.members, material.synthetic
    if isinstance(members, pd.DataFrame):
        leaking: Any = pd.concat([members.iloc[rarest], synthetic[COPIED:]], ignore_index=True)
    elif sparse.issparse(members):
        leaking = sparse.vstack([members[rarest], synthetic[COPIED:]], format="csr")
    else:
        leaking = np.concatenate([members[rarest], synthetic[COPIED:]])
    return material._replace(synthetic=leaking)
