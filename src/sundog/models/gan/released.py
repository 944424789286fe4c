"""The generator of a generative adversarial network as it is in a release."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from sundog.data.schema import Schema
from sundog.errors import ReleaseError, SundogError
from sundog.models.gan.architectures import SHAPES, has_people, list_arrays, refuse_shape
from sundog.models.gan.geometry import FRESH, KERNEL, TOGETHER, Geometry
from sundog.models.neural.layout import Layout
from sundog.models.protocol import State
from sundog.models.released import (
    CLASSIFIER,
    MOST_RECORDS,
    PEOPLE,
    ReleasedModel,
    check_finite,
    check_shapes,
    find_missing_charges,
    find_unpaid_means,
    find_unpaid_training,
    is_size,
    is_whole,
)
from sundog.privacy.events import Charge

PUBLIC_RECORDS = "the records that were given as public, from which the training began or took its clipping bounds"
HAS_CLASSIFIER = "named"  # the key in the configuration of a release: whether there was a label classifier

Shapes = dict[str, tuple[int, ...]]


class ReleasedGan(ReleasedModel):
    """The generator, and the logits of the condition."""

    records: int

    def __init__(self, schema: Schema, state: State) -> None:
        if not _is_config(state.config, schema):
            raise ReleaseError("the configuration is not that of a `gan` model")
        self.schema, self.config = schema, state.config
        check_shapes("a `gan`", state, list_generator_shapes(schema, state.config))
        check_finite("`gan`", state.tensors)
        self.records = state.config["records"]
        self.assumptions = [PUBLIC_RECORDS] if state.config["public"] else []

    def find_unpaid(self, charges: Sequence[Charge]) -> list[str]:
        """Name the number of people, the means, the classifier and the weights, unless charges paid for them."""
        people = find_missing_charges(charges, {PEOPLE: "discrete_laplace"}) if has_people(self.schema) else []
        classifier = find_unpaid_classifier(charges) if self.config[HAS_CLASSIFIER] else []
        return people + find_unpaid_means(charges) + classifier + find_unpaid_training(charges)


def find_unpaid_classifier(charges: Sequence[Charge]) -> list[str]:
    """Name the label classifier if no charge paid for it."""
    return ["training of the classifier"] if find_missing_charges(charges, {CLASSIFIER: "sampled_gaussian"}) else []


def list_generator_shapes(schema: Schema, config: Mapping[str, Any]) -> Shapes:
    """Return the shape of each array of a generator (gan/networks)."""
    layout, shape, hidden = Layout(schema), config["shape"], config["hidden"]
    condition = layout.count(config["condition"])
    inputs = config["latent"] + condition
    found: Shapes = {"start": (max(1, condition), layout.width), **({"prior": (condition,)} if condition else {})}
    if shape in ("mlp", "pairs"):
        return found | _list_perceptron([inputs, 2 * hidden, 2 * hidden, layout.width])
    (name,) = list_arrays(schema)
    grid = Geometry.of_shape(schema.columns[name].shape, layout.at(name))
    if others := layout.width - grid.numel:
        found |= _list_linear("body.others", inputs, others)
    return found | (_list_deconvolution(grid, inputs, hidden) if shape == "conv" else _list_recurrent(inputs, hidden))


def _list_perceptron(sizes: list[int]) -> Shapes:
    found: Shapes = {}
    for place, (size, after) in enumerate(pairwise(sizes[:-1])):
        found |= _list_linear(f"body.layers.{3 * place}", size, after)
        found |= {f"body.layers.{3 * place + 1}.weight": (after,), f"body.layers.{3 * place + 1}.bias": (after,)}
    return found | _list_linear(f"body.layers.{3 * (len(sizes) - 2)}", sizes[-2], sizes[-1])


def _list_deconvolution(grid: Geometry, inputs: int, hidden: int) -> Shapes:
    widths = grid.choose_widths(max(1, hidden // 2), grid.halvings)[::-1]
    found = _list_linear("body.first", inputs, widths[0] * math.prod(grid.halve(grid.halvings)))
    for place, (width, after) in enumerate(pairwise([*widths, grid.channels])):
        norm, larger = f"body.layers.{3 * place}", f"body.layers.{3 * place + 2}"
        found |= {f"{norm}.weight": (width,), f"{norm}.bias": (width,)}
        found |= {f"{larger}.weight": (width, after, *[KERNEL] * len(grid.size)), f"{larger}.bias": (after,)}
    return found


def _list_recurrent(inputs: int, hidden: int) -> Shapes:
    gates = 4 * hidden
    cell = {"weight_ih_l0": (gates, FRESH + inputs), "weight_hh_l0": (gates, hidden)}
    biases: Shapes = {"bias_ih_l0": (gates,), "bias_hh_l0": (gates,)}
    recurrent = {f"body.cell.{name}": shape for name, shape in {**cell, **biases}.items()}
    return recurrent | _list_linear("body.out", hidden, TOGETHER)


def _list_linear(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _is_config(config: Mapping[str, Any], schema: Schema) -> bool:
    if set(config) != {"shape", "hidden", "latent", "condition", "records", "public", HAS_CLASSIFIER}:
        return False
    condition = config["condition"]
    try:
        refuse_shape(schema, config["shape"])
    except SundogError:
        return False
    return (
        config["shape"] in SHAPES
        and is_size(config["hidden"])
        and is_size(config["latent"])
        and is_whole(config["records"], MOST_RECORDS)
        and type(config["public"]) is bool
        and type(config[HAS_CLASSIFIER]) is bool
        and (condition is None or (type(condition) is str and condition in schema.scalars))
    )
