"""Time series to compare."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.section import Section
from sundog.evaluation.series.series_evaluation import evaluate_series

Floats = NDArray[np.float64]


def encode_series(values: Floats, *, low: float = -10.0, high: float = 10.0, nullable: bool = False) -> Records:
    declared = {"type": "series", "length": values.shape[1], "min": low, "max": high, "nullable": nullable}
    schema = Schema.from_dict({"columns": {"load": declared, "house": {"type": "integer", "min": 0, "max": 9}}})
    codes = {"load": schema.columns["load"].encode(values, where="t"), "house": np.zeros(len(values), np.uint8)}
    return Records(schema, codes, len(values))


def evaluate_days(real: Floats, synthetic: Floats, test: Floats | None = None, **declared: Any) -> Section:
    ours, theirs, unseen = (
        encode_series(each, **declared) for each in (real, synthetic, real if test is None else test)
    )
    return evaluate_series(Comparison(ours, theirs, ours, unseen), "load")


def get_values(section: Section) -> dict[str, float]:
    return {name: measure.value for name, measure in section.measures.items()}


def draw_days(n: int, seed: int, length: int = 24) -> Floats:
    """Draw days with a daily rhythm of random height and delay, and some noise."""
    rng = np.random.default_rng(seed)
    phase = 2 * np.pi * np.arange(length) / length + rng.normal(0, 0.3, (n, 1))
    return np.clip(rng.uniform(1, 3, (n, 1)) * np.sin(phase) + rng.normal(0, 0.3, (n, length)), -10, 10)
