"""Readers of released models: the arithmetic of shapes is that of the networks, and torch stays out of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sundog.data.bins import make_bins
from sundog.data.schema import Schema
from sundog.models.gan.gan import _new_generator
from sundog.models.gan.released import list_generator_shapes
from sundog.models.neural.features import Features
from sundog.models.neural.layout import Layout

SCALARS: dict[str, Any] = {
    "sex": {"type": "categorical", "values": ["f", "m"], "nullable": True},
    "age": {"type": "integer", "min": 0, "max": 120, "bins": 10},
    "pay": {"type": "continuous", "min": 0, "max": 1, "edges": [0.2, 0.25, 0.7]},
    "born": {"type": "datetime", "min": "1920-01-01", "max": "2020-12-31", "edges": ["1950-01-01", "1950-01-01T01"]},
    "ill": {"type": "boolean", "nullable": True},
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "table": SCALARS,
    "image": {"label": {"type": "categorical", "values": ["a", "b", "c"]}, "x": {"type": "image", "shape": [28, 20]}},
    "colours": {"x": {"type": "image", "shape": [9, 40, 3]}, **SCALARS},
    "series": {"load": {"type": "series", "length": 97, "min": 0, "max": 1}, "sex": SCALARS["sex"]},
    "gaps": {"load": {"type": "series", "length": 9, "min": 0, "max": 1, "nullable": True}, "sex": SCALARS["sex"]},
    "sets": {"basket": {"type": "set", "universe": 12, "max_size": 3}, **SCALARS},
}


def schema_of(name: str) -> Schema:
    return Schema.from_dict({"columns": SCHEMAS[name]})


@pytest.mark.parametrize("name", SCHEMAS)
def test_features_are_where_the_layout_says(name: str) -> None:
    schema = schema_of(name)
    layout, features = Layout(schema), Features(schema)
    assert layout.width == features.width
    assert all(layout.at(column) == features.at(column) for column in schema.columns)
    for column in schema.columns.values():
        if column.type != "set":
            assert column.bin_count == make_bins(column).count


GENERATORS = [
    *((name, shape) for name in SCHEMAS for shape in ("mlp", "pairs")),
    *((name, "conv") for name in ("image", "colours", "series", "gaps")),
    *((name, "lstm") for name in ("series", "gaps")),
]


@pytest.mark.parametrize("hidden", [1, 2, 7, 64])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(("name", "shape"), GENERATORS)
def test_arrays_have_the_shapes_of_the_networks(name: str, shape: str, told: bool, hidden: int) -> None:
    schema = schema_of(name)
    condition = next(key for key in ("sex", "label") if key in schema.columns) if told else None
    config = {"shape": shape, "hidden": hidden, "latent": 5, "condition": condition}
    with torch.device("meta"):
        generator = _new_generator(Features(schema), config)
    expected = {key: tuple(tensor.shape) for key, tensor in generator.state_dict().items()}
    found = list_generator_shapes(schema, config)
    assert found.pop("prior", (0,)) == (Layout(schema).count(condition),)
    assert found == expected
