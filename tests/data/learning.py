"""Schemas to learn."""

from __future__ import annotations

from typing import Any

from sundog.data.reading.read import read
from sundog.data.schema import Schema
from sundog.data.schema_learning import prepare
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource

N = 4000
LEARNED: dict[str, dict[str, Any]] = {
    "city": {"type": "categorical", "learn": True},
    "grade": {"type": "ordinal", "learn": True},
    "visits": {"type": "integer", "learn": True},
    "weight": {"type": "continuous", "learn": True, "nullable": True},
    "seen": {"type": "datetime", "learn": True, "resolution": "day"},
    "income": {"type": "integer", "min": 0, "max": 1_000_000, "bins": "quantiles"},
    "score": {"type": "continuous", "learn": True, "bins": "quantiles"},
}


def make_schema(*names: str, **rest: Any) -> Schema:
    return Schema.from_dict({**rest, "columns": {name: LEARNED[name] for name in names or LEARNED}})


def learn_schema(
    frame: Any, schema: Schema, *, epsilon: float = 2.0, delta: float = 1e-6, seed: int = 0
) -> tuple[Schema, Ledger]:
    """Learn with fixed noise: one range in a thousand is wrong, which is not a failure."""
    ledger = Ledger(epsilon=100.0, delta=10 * delta, noise=NoiseSource.seeded(seed))
    return prepare(read(frame, schema), schema).learn(epsilon=epsilon, delta=delta, ledger=ledger), ledger
