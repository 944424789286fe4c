"""Records about people, with an illness to predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.section import Section

Columns = dict[str, dict[str, Any]]


MODELS = ("logistic", "forest", "boosting")


COLUMNS: Columns = {
    "age": {"type": "integer", "min": 0, "max": 99},
    "town": {"type": "categorical", "values": list("abcde")},
    "level": {"type": "ordinal", "values": ["low", "mid", "high"]},
    "ill": {"type": "boolean"},
}


def make_records(columns: Columns, **values: Any) -> Records:
    schema = Schema.from_dict({"columns": columns})
    return encode(read(pd.DataFrame(values), schema), schema)


def compare(train: Records, test: Records, target: str, *, real: Records | None = None, seed: int = 0) -> Comparison:
    """Train on the first, test on the second."""
    real = train if real is None else real
    return Comparison(real=real, synthetic=train, train=real, test=test, target=target, seed=seed)


def draw_people(count: int, seed: int, *, strength: float = 1.0) -> Records:
    """Draw people, some ill: more of the old and in towns a and b; with strength 0, independently of both."""
    rng = np.random.default_rng(seed)
    age, town, level = rng.integers(0, 100, count), rng.integers(0, 5, count), rng.integers(0, 3, count)
    odds = strength * ((age - 50) / 15 + 2.0 * (town < 2) - 1.0)
    ill = rng.random(count) < 1 / (1 + np.exp(-odds))
    levels = np.array(["low", "mid", "high"])[level]
    return make_records(COLUMNS, age=age, town=np.array(list("abcde"))[town], level=levels, ill=ill)


def get_values(section: Section) -> dict[str, float]:
    return {name.removeprefix("utility."): measure.value for name, measure in section.measures.items()}
