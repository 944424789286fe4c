"""Generators and critics by shape: pairs for tables, convolutions for images, an LSTM for series, or perceptrons.

A generator turns latent variables, and the cells of a column that it is told, into the logits of all features; a critic
judges the features of a record. A critic has no statistics across records: what it says of one depends on that one
alone.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from sundog.data.columns import ImageColumn, ScalarColumn
from sundog.data.learn import unknown_columns
from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.models.features import Features
from sundog.models.gan.networks.base import SLOPE, Body, Judge, without
from sundog.models.gan.networks.convolutions import ConvolvedCritic, ConvolvedNamer, Deconvolution
from sundog.models.gan.networks.grid import Grid, arrays
from sundog.models.gan.networks.series import Recurrent, Rhythms
from sundog.models.gan.networks.tables import Pairs, Perceptron

__all__ = [
    "SHAPES",
    "Body",
    "Grid",
    "Judge",
    "Pairs",
    "best_shape",
    "has_people",
    "new_critic",
    "new_generator",
    "new_namer",
    "refuse_shape",
    "without",
]

SHAPES = ("mlp", "pairs", "conv", "lstm")
_WIDEST = 2048  # features: a critic of pairs has a weight for each two of them


def best_shape(schema: Schema) -> str:
    """Pairs for tables, convolutions where there is one image, and perceptrons for everything else."""
    columns = schema.columns.values()
    if all(isinstance(column, ScalarColumn) for column in columns) and _width(schema) <= _WIDEST:
        return "pairs"
    images = [column for column in columns if isinstance(column, ImageColumn)]
    return "conv" if len(images) == len(arrays(schema)) == 1 and not has_people(schema) else "mlp"


def has_people(schema: Schema) -> bool:
    """Whether an example is a person with several records."""
    return schema.unit is not None and schema.cap > 1


def refuse_shape(schema: Schema, shape: str) -> None:
    """Raises if records are not of this shape."""
    found = arrays(schema)
    if shape not in ("mlp", "pairs") and len(found) != 1:
        raise SundogError(
            f"model 'gan': shape {shape!r} needs one image or series, and there are {len(found)}; use mlp"
        )
    if shape == "pairs" and (width := _width(schema)) > _WIDEST:
        raise SundogError(
            f"model 'gan': shape 'pairs' has a weight for each two of at most {_WIDEST} features, and there are "
            f"{width}; use mlp"
        )
    if shape == "conv" and has_people(schema):
        raise SundogError(
            f"model 'gan': shape 'conv' judges single records, and people have up to {schema.cap} here; use mlp or lstm"
        )
    if shape == "lstm" and isinstance(schema.columns[found[0]], ImageColumn):
        raise SundogError(f"model 'gan': shape 'lstm' is for series, and {found[0]!r} is an image; use conv")


def _width(schema: Schema) -> int:
    """How many features there are; those of columns that are still to be learned nobody knows."""
    unknown = set(unknown_columns(schema))
    columns = {name: column for name, column in schema.columns.items() if name not in unknown}
    return Features(schema.model_copy(update={"columns": columns})).width


def new_generator(features: Features, shape: str, told: int, *, hidden: int, latent: int) -> Body:
    """The network from latent variables and what it is told, side by side, to logits."""
    if shape in ("mlp", "pairs"):
        return Perceptron([latent + told, 2 * hidden, 2 * hidden, features.width], latent)
    grid = Grid.of(features)
    if shape == "conv":
        return Deconvolution(grid, latent, told, channels=max(1, hidden // 2), others=features.width - grid.numel)
    return Recurrent(grid, latent, told, hidden=hidden, others=features.width - grid.numel)


def new_critic(features: Features, shape: str, told: slice, *, hidden: int, means: Tensor | None = None) -> Judge:
    """The network from features to a score; `means` are of all records."""
    if shape == "pairs":
        return Pairs(told, torch.zeros(features.width) if means is None else means)
    outputs = 1 + told.stop - told.start
    if shape != "conv":
        return Judge(_layers(features, told, hidden=hidden, outputs=outputs), told)
    grid = Grid.of(features, without=told)
    others = features.width - (told.stop - told.start) - grid.numel
    return Judge(ConvolvedCritic(grid, max(1, hidden // 4), others=others, outputs=outputs), told)


def new_namer(features: Features, shape: str, told: slice, *, hidden: int) -> nn.Module:
    """The network from all other features to the logits of the told column."""
    outputs = told.stop - told.start
    if shape != "conv":
        return _layers(features, told, hidden=hidden, outputs=outputs)
    grid = Grid.of(features, without=told)
    return ConvolvedNamer(grid, others=features.width - outputs - grid.numel, outputs=outputs)


def _layers(features: Features, told: slice, *, hidden: int, outputs: int) -> nn.Sequential:
    seen = Rhythms.of(features, without=told)
    sizes = [features.width - (told.stop - told.start) + seen.count, hidden, hidden]
    layers: list[nn.Module] = [seen] if seen.series else []
    for size, after in pairwise(sizes):
        layers += [nn.Linear(size, after), nn.LeakyReLU(SLOPE)]
    return nn.Sequential(*layers, nn.Linear(hidden, outputs))
