"""What `auto` takes: each choice can be made by the model it names."""

from __future__ import annotations

from typing import Any

import pytest

from sundog.data.schema import Schema
from sundog.models.auto import choose_model
from sundog.models.registry import configure

AGE = {"type": "integer", "min": 0, "max": 99}
IMAGE = {"type": "image", "shape": [8, 8]}
SERIES = {"type": "series", "length": 5, "min": 0, "max": 1}
SET = {"type": "set", "universe": 9, "max_size": 3}
GPU, PUBLIC, CLUSTERS = {"device": "cuda"}, {"public": True}, {"clusters": 5}
PEOPLE, FEW, MANY = {"unit": "who", "cap": 3}, {"records": 3000}, {"records": 5000}

CHOICES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    ({"age": AGE}, {}, {}, "marginals"),
    ({"age": AGE}, MANY, {}, "marginals"),
    ({"age": AGE}, FEW, {}, "marginals"),
    ({"age": AGE}, PEOPLE, {}, "marginals"),
    ({"age": AGE}, {}, GPU, "marginals"),
    ({"age": AGE}, {}, PUBLIC, "marginals"),
    ({"age": AGE}, {}, CLUSTERS, "marginals"),
    ({"age": AGE}, {}, {**CLUSTERS, **PUBLIC}, "marginals"),
    ({"age": AGE, "basket": SET}, FEW, {}, "independent"),
    ({"age": AGE, "basket": SET}, MANY, {}, "rbm"),
    ({"basket": SET}, {}, {}, "rbm"),
    ({"basket": SET}, FEW, {}, "independent"),
    ({"basket": SET}, FEW, GPU, "rbm"),
    ({"basket": SET}, PEOPLE, {}, "independent"),
    ({"basket": SET}, PEOPLE, GPU, "gan"),
    ({"basket": SET}, {}, PUBLIC, "gan"),
    ({"basket": SET}, {}, {**CLUSTERS, **PUBLIC}, "rbm"),
    ({"image": IMAGE}, PEOPLE, {}, "independent"),
    ({"image": IMAGE}, PEOPLE, GPU, "gan"),
    ({"image": IMAGE, "age": AGE}, {}, {}, "rbm"),
    ({"image": IMAGE, "age": AGE}, {}, GPU, "gan"),
    ({"image": IMAGE}, {}, {**GPU, **CLUSTERS}, "rbm"),
    ({"load": SERIES, "age": AGE}, {}, {}, "gan"),
    ({"load": SERIES}, PEOPLE, {}, "gan"),
    ({"load": SERIES}, {}, GPU, "gan"),
]


@pytest.mark.parametrize(("columns", "declared", "asked", "expected"), CHOICES)
def test_the_choice(columns: dict[str, Any], declared: dict[str, Any], asked: dict[str, Any], expected: str) -> None:
    schema = Schema.from_dict({"columns": columns, **declared})
    name = choose_model(schema, epsilon=1.0, records=schema.records, **asked)
    assert name == expected
    configuration = configure(name, {}, clusters=asked.get("clusters", 1), public=asked.get("public", False))
    configuration.check(schema)
    # A device is where networks train; a model without them does not need it.
    assert all(configuration.accepts(option) for option in asked if (name, option) != ("marginals", "device"))
