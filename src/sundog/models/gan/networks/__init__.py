"""Generators and critics by shape: pairs for tables, convolutions for images, an LSTM for series, or perceptrons.

A generator turns latent variables, and the cells of a column that it is told, into the logits of all features; a critic
judges the features of a record. A critic has no statistics across records: what it says of one depends on that one
alone.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from sundog.models.gan.networks.base import SLOPE, Body, Judge, without
from sundog.models.gan.networks.convolutions import ConvolvedCritic, ConvolvedNamer, Deconvolution
from sundog.models.gan.networks.grid import Grid
from sundog.models.gan.networks.series_networks import Recurrent, Rhythms
from sundog.models.gan.networks.table_networks import Pairs, Perceptron
from sundog.models.neural.features import Features

__all__ = [
    "Body",
    "Grid",
    "Judge",
    "Pairs",
    "new_critic",
    "new_generator",
    "new_namer",
    "without",
]


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
