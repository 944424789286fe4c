"""Small tables, their schemas and the settings of fits that are replayed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sundog.data.schema import Schema

COUNT = 60
QUICK: dict[str, Any] = {"batch": 10, "epochs": 2, "hidden": 8}

_RNG = np.random.default_rng(0)
AGE: dict[str, Any] = {"type": "integer", "min": 0, "max": 99, "nullable": True}
JOB: dict[str, Any] = {"type": "categorical", "values": ["a", "b", "c"], "undeclared": "other", "other": "c"}
LABEL: dict[str, Any] = {"type": "categorical", "values": ["a", "b", "c"]}
DECIMALS: dict[str, Any] = {**JOB, "values": ["0.5", "0.25", "c"], "nullable": True}
COLUMNS: dict[str, Any] = {"age": AGE, "job": JOB, "on": {"type": "boolean"}}


def draw_jobs(count: int = COUNT) -> list[str]:
    return [str(job) for job in _RNG.choice(["a", "b", "c"], count)]


TABLE: dict[str, Any] = {
    "age": _RNG.integers(0, 90, COUNT).tolist(),
    "job": draw_jobs(),
    "on": (_RNG.random(COUNT) < 0.4).tolist(),
}
PEOPLE: dict[str, Any] = {**TABLE, "who": [f"p{number % 23}" for number in range(COUNT)]}
WIDE: dict[str, Any] = {
    "money": (_RNG.integers(0, 1000, COUNT) * 100).tolist(),
    "day": ["2020-03-04", "2020-05-06", None] * (COUNT // 3),
    "job": draw_jobs(),
}
UNKNOWN: dict[str, Any] = {
    "age": _RNG.integers(0, 50, 600).tolist(),
    "size": _RNG.normal(0, 3, 600).tolist(),
    "job": draw_jobs(600),
    "rank": _RNG.integers(0, 99, 600).tolist(),
}
IMAGES: dict[str, Any] = {
    "image": _RNG.integers(0, 256, (COUNT, 6, 5)).astype(np.uint8),
    "label": draw_jobs(),
}
SERIES: dict[str, Any] = {"meter": _RNG.integers(0, 100, (COUNT, 7)).astype(float), "label": draw_jobs()}
SETS: dict[str, Any] = {"basket": [sorted({*_RNG.integers(0, 6, 3).tolist()}) for _ in range(COUNT)]}
BINARY: dict[str, Any] = {f"b{number}": (_RNG.random(COUNT) < 0.3).tolist() for number in range(24)}


def declare(columns: dict[str, Any], **rest: Any) -> Schema:
    return Schema.from_dict({**rest, "columns": columns})


TABLE_SCHEMA = declare(COLUMNS)
DATES: dict[str, Any] = {
    "money": {"type": "integer", "min": 0, "max": 100_000, "bins": "refined", "out_of_bounds": "clamp"},
    "day": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "nullable": True, "out_of_bounds": "clamp"},
    "job": JOB,
}
LEARNED: dict[str, Any] = {
    "age": {"type": "integer", "learn": True, "nullable": True},
    "size": {"type": "continuous", "learn": True, "nullable": True},
    "job": {"type": "categorical", "learn": True, "nullable": True},
    "rank": {"type": "integer", "min": 0, "max": 99, "bins": "quantiles", "nullable": True},
}
IMAGE_SCHEMA = declare({"image": {"type": "image", "shape": [6, 5]}, "label": LABEL})
SERIES_SCHEMA = declare(
    {"meter": {"type": "series", "length": 7, "min": 0, "max": 100, "resolution": 1, "nullable": True}, "label": LABEL}
)
SET_SCHEMA = declare({"basket": {"type": "set", "universe": 6, "max_size": 3, "undeclared": "drop"}})
_PRESSURE = [(int(low), int(low) + 1 + int(more)) for low, more in _RNG.integers(0, 40, (COUNT, 2))]
RULED: dict[str, Any] = {
    "low": [low for low, _ in _PRESSURE],
    "high": [high for _, high in _PRESSURE],
    "sum": [low + high for low, high in _PRESSURE],
}
RULED_SCHEMA = declare(
    {
        "low": {"type": "integer", "min": 0, "max": 90},
        "high": {"type": "integer", "min": 0, "max": 90},
        "sum": {"type": "integer", "min": 0, "max": 180},
    },
    rules=["low < high", "sum = low + high"],
)


@dataclass(frozen=True)
class Case:
    """A fit to replay."""

    data: Any
    schema: Schema
    model: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `replay_fit` after the data and the schema."""
        return {"model": self.model, **self.settings}


def train(**settings: Any) -> dict[str, Any]:
    """Return settings of a short training."""
    return {"settings": {**QUICK, **settings}}


CASES = {
    "independent": Case(TABLE, TABLE_SCHEMA, "independent"),
    "marginals": Case(TABLE, TABLE_SCHEMA, "marginals"),
    "rbm": Case(TABLE, TABLE_SCHEMA, "rbm", train()),
    "vae": Case(TABLE, TABLE_SCHEMA, "vae", train()),
    "gan": Case(TABLE, TABLE_SCHEMA, "gan", train()),
    "auto": Case(TABLE, TABLE_SCHEMA, "auto"),
    "public": Case(TABLE, TABLE_SCHEMA, "marginals", {"public": TABLE}),
    "exponential": Case(BINARY, declare({name: {"type": "boolean"} for name in BINARY}), "marginals"),
    "rules": Case(RULED, RULED_SCHEMA, "marginals"),
    "refined": Case(WIDE, declare(DATES, records=COUNT), "marginals", {"delta": 1e-6}),
    "learned": Case(UNKNOWN, declare(LEARNED), "independent", {"epsilon": 20.0}),
    "learned marginals": Case(UNKNOWN, declare(LEARNED), "marginals", {"epsilon": 20.0}),
    "people": Case(PEOPLE, declare(COLUMNS, unit="who", cap=2), "marginals"),
    "people, learned": Case(
        {**UNKNOWN, "who": [f"p{number % 230}" for number in range(600)]},
        declare(LEARNED, unit="who", cap=3),
        "independent",
        {"epsilon": 50.0},
    ),
    "one record each": Case(PEOPLE, declare(COLUMNS, unit="who", cap=1), "vae", train()),
    "people, gan": Case(PEOPLE, declare(COLUMNS, unit="who", cap=2), "gan", train()),
    "clusters": Case(TABLE, TABLE_SCHEMA, "independent", {"clusters": 2}),
    "clusters of marginals": Case(TABLE, TABLE_SCHEMA, "marginals", {"clusters": 2}),
    "clusters of rbm": Case(TABLE, TABLE_SCHEMA, "rbm", {**train(), "clusters": 2}),
    "clusters of vae": Case(TABLE, TABLE_SCHEMA, "vae", {**train(), "clusters": 3}),
    "clusters, dpnorm": Case(TABLE, TABLE_SCHEMA, "rbm", {**train(clip="dpnorm"), "clusters": 2}),
    "clusters, public": Case(TABLE, TABLE_SCHEMA, "rbm", {**train(), "clusters": 2, "public": TABLE}),
    "dpnorm": Case(TABLE, TABLE_SCHEMA, "vae", train(clip="dpnorm")),
    "dropout": Case(TABLE, TABLE_SCHEMA, "gan", train(shape="mlp", dropout=0.5, weight_norm=True)),
    "groups": Case(TABLE, TABLE_SCHEMA, "gan", {**train(groups=2, warm=0), "public": TABLE}),
    "images": Case(IMAGES, IMAGE_SCHEMA, "gan", train()),
    "images, independent": Case(IMAGES, IMAGE_SCHEMA, "independent"),
    "images, rbm": Case(IMAGES, IMAGE_SCHEMA, "rbm", train(visible="gaussian")),
    "images, vae": Case(IMAGES, IMAGE_SCHEMA, "vae", train(condition="label")),
    "series": Case(SERIES, SERIES_SCHEMA, "gan", train()),
    "series, vae": Case(SERIES, SERIES_SCHEMA, "vae", train()),
    "sets": Case(SETS, SET_SCHEMA, "vae", train()),
    "sets, independent": Case(SETS, SET_SCHEMA, "independent"),
    "sets, gan": Case(SETS, SET_SCHEMA, "gan", train()),
    "sets, clusters": Case(SETS, SET_SCHEMA, "independent", {"clusters": 2}),
}
FAST = ("independent", "marginals", "vae", "gan", "dropout", "people", "clusters of rbm", "learned", "sets, clusters")
