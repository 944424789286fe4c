"""Two small tables about people, and ways to compare them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.section import Section
from sundog.evaluation.tables.fidelity import evaluate_fidelity

SCHEMA: dict[str, Any] = {
    "age": {"type": "integer", "min": 0, "max": 99, "edges": [18, 40, 65]},
    "income": {"type": "continuous", "min": 0, "max": 100, "resolution": 0.5, "nullable": True, "bins": 5},
    "job": {"type": "categorical", "values": ["none", "some", "much", "other"], "nullable": True},
    "pain": {"type": "ordinal", "values": ["low", "middle", "high"]},
    "smoker": {"type": "boolean"},
    "seen": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "resolution": "day", "bins": 6},
}
NUMERIC, CATEGORICAL = ["age", "income", "seen"], ["job", "pain", "smoker"]
DISTANCES = ["tvd_1way", "tvd_2way", "tvd_3way", "association_error", "null_difference"]
DISTANCES += ["wasserstein_1d", "wasserstein_sliced", "tvd_furthest_column"]
RELATIONS = ["relations_kept", "relations_error", "pairs_error"]  # unbiased, and so beyond 0 and 1 by chance
SCORES = ["column_shapes", "column_pair_trends", "quality"]
SCORES += ["range_coverage", "category_coverage", "category_adherence"]


def draw_people(rows: int, seed: int, *, slope: float = 1.0) -> pd.DataFrame:
    """Draw people whose columns depend on each other, the more the steeper the slope."""
    rng = np.random.default_rng(seed)
    age = rng.integers(5, 90, rows)
    job = rng.choice(["none", "some", "much"], rows, p=[0.2, 0.5, 0.3])
    income = np.clip(30 + slope * 0.4 * age + 20 * (job == "much") + rng.normal(0, 8, rows), 0, 100).round(0)
    pain = np.where(rng.random(rows) < age / 120, "high", rng.choice(["low", "middle"], rows))
    return pd.DataFrame(
        {
            "age": age,
            "income": np.where(rng.random(rows) < 0.1 * slope, np.nan, income),
            "job": pd.Series(job, dtype=object).where(rng.random(rows) > 0.05, None),
            "pain": pain,
            "smoker": rng.random(rows) < np.where(job == "none", 0.6, 0.2) * slope,
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, int(300 * slope), rows), unit="D"),
        }
    )


def encode_frame(frame: pd.DataFrame, columns: dict[str, Any] | None = None) -> Records:
    schema = Schema.from_dict({"columns": SCHEMA if columns is None else columns})
    codes = {name: column.encode(frame[name], where=name) for name, column in schema.columns.items()}
    return Records(schema, codes, len(frame))


def compare(real: Records, synthetic: Records, seed: int = 0) -> Comparison:
    return Comparison(real=real, synthetic=synthetic, train=real, test=real, seed=seed)


def evaluate_codes(columns: dict[str, Any], real: dict[str, list[int]], synthetic: dict[str, list[int]]) -> Section:
    """Evaluate the fidelity of two tables that are given as codes."""
    schema = Schema.from_dict({"columns": columns})
    one, other = (
        Records(schema, {name: np.array(codes, schema.columns[name].dtype) for name, codes in table.items()}, rows)
        for table in (real, synthetic)
        for rows in [len(next(iter(table.values())))]
    )
    return evaluate_fidelity(compare(one, other))


def get_value(section: Section, name: str) -> float:
    return section.measures[f"fidelity.{name}"].value


def compute_distance(real: pd.DataFrame, synthetic: pd.DataFrame, names: list[str]) -> float:
    shares = [frame.groupby(names).size() / len(frame) for frame in (real, synthetic)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def bin_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Cut all columns into their declared bins, with pandas."""
    day = (frame["seen"] - pd.Timestamp("2020-01-01")).dt.days
    income = pd.cut(frame["income"], [-1, 20, 40, 60, 80, 100], right=False, labels=False)
    return pd.DataFrame(
        {
            "age": pd.cut(frame["age"], [0, 18, 40, 65, 100], right=False, labels=False),
            "income": income.where(frame["income"] != 100, 4).fillna(-1),
            "job": frame["job"].fillna("missing"),
            "pain": frame["pain"],
            "smoker": frame["smoker"],
            "seen": day * 6 // 366,
        }
    )


def compute_correlation(frame: pd.DataFrame, first: str, second: str) -> float:
    known = frame[[first, second]].dropna().to_numpy(float)
    return float(np.corrcoef(known.T)[0, 1])
