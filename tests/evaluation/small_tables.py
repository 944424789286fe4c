"""Small tables for whole evaluations."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sundog.data.schema import Schema

COLUMNS = {"age": {"type": "integer", "min": 0, "max": 99}, "sex": {"type": "categorical", "values": ["f", "m"]}}


SCHEMA = Schema.from_dict({"columns": COLUMNS})


def make_frame(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.integers(0, 100, rows), "sex": rng.choice(["f", "m"], rows)})


def make_wide_frame(rows: int, seed: int) -> pd.DataFrame:
    return make_frame(rows, seed).assign(size=np.random.default_rng(seed).integers(0, 10**6, rows))


TABLE = Schema.from_dict(
    {
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 99},
            "income": {"type": "continuous", "min": 0, "max": 200},
            "sex": {"type": "categorical", "values": ["f", "m"]},
            "job": {"type": "categorical", "values": ["a", "b", "c"]},
        }
    }
)


def make_table(rows: int, seed: int) -> pd.DataFrame:
    """Make a table in which all columns depend on each other."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    sex = np.where(rng.random(rows) < 0.2 + 0.6 * (age > 50), "f", "m")
    income = np.clip(age + np.where(sex == "f", 40, 0) + rng.normal(0, 10, rows), 0, 200)
    job = np.select([income < 50, income < 90], ["a", "b"], "c")
    return pd.DataFrame({"age": age, "income": income.round(3), "sex": sex, "job": job})


def make_noise(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, rows),
            "income": rng.uniform(0, 200, rows).round(3),
            "sex": rng.choice(["f", "m"], rows),
            "job": rng.choice(["a", "b", "c"], rows),
        }
    )
