"""Generators and critics by shape: pairs for tables, convolutions for images, perceptrons for series, or an LSTM.

A generator turns latent variables, and the value of the column on which it is conditioned, into the logits of all
features; a critic turns the features of a record into a score. A critic has no statistics across records: the score of
a record depends on that record alone.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from sundog.models.gan.networks.base import CriticNetwork, CriticUnits, GeneratorNetwork, remove_condition
from sundog.models.gan.networks.convolutions import ConvolutionalClassifier, ConvolutionalCritic, Deconvolution
from sundog.models.gan.networks.grid import Grid
from sundog.models.gan.networks.series_networks import Recurrent, Spectrum
from sundog.models.gan.networks.table_networks import Pairs, Perceptron
from sundog.models.neural.features import Features

__all__ = [
    "CriticNetwork",
    "GeneratorNetwork",
    "Grid",
    "Pairs",
    "new_critic",
    "new_generator",
    "new_label_classifier",
    "remove_condition",
]


def new_generator(features: Features, shape: str, condition: int, *, hidden: int, latent: int) -> GeneratorNetwork:
    """Return a network from latent variables and the condition, concatenated, to logits."""
    if shape in ("mlp", "pairs"):
        return Perceptron([latent + condition, 2 * hidden, 2 * hidden, features.width], latent)
    grid = Grid.of(features)
    if shape == "conv":
        return Deconvolution(grid, latent, condition, channels=max(1, hidden // 2), others=features.width - grid.numel)
    return Recurrent(grid, latent, condition, hidden=hidden, others=features.width - grid.numel)


def new_critic(
    features: Features,
    shape: str,
    condition: slice,
    *,
    hidden: int,
    means: Tensor | None = None,
    dropout: float = 0.0,
) -> CriticNetwork:
    """Return a network from features to a score.

    Args:
        features: of the records.
        shape: of the networks.
        condition: the features of the column on which the generator is conditioned.
        hidden: units of a layer.
        means: of all records, for pairs.
        dropout: the share of units that are dropped in each pass; not for pairs, which have none.
    """
    if shape == "pairs":
        return Pairs(condition, torch.zeros(features.width) if means is None else means)
    outputs = 1 + condition.stop - condition.start
    if shape != "conv":
        layers = _new_layers(features, condition, hidden=hidden, outputs=outputs, dropout=dropout)
        return CriticNetwork(layers, condition)
    grid = Grid.of(features, without=condition)
    others = features.width - (condition.stop - condition.start) - grid.numel
    body = ConvolutionalCritic(grid, max(1, hidden // 4), others=others, outputs=outputs, dropout=dropout)
    return CriticNetwork(body, condition)


def new_label_classifier(features: Features, shape: str, condition: slice, *, hidden: int) -> nn.Module:
    """Return a network from all other features to the logits of the condition."""
    outputs = condition.stop - condition.start
    if shape != "conv":
        return _new_layers(features, condition, hidden=hidden, outputs=outputs)
    grid = Grid.of(features, without=condition)
    return ConvolutionalClassifier(grid, others=features.width - outputs - grid.numel, outputs=outputs)


def _new_layers(
    features: Features, condition: slice, *, hidden: int, outputs: int, dropout: float = 0.0
) -> nn.Sequential:
    seen = Spectrum.of(features, without=condition)
    sizes = [features.width - (condition.stop - condition.start) + seen.count, hidden, hidden]
    layers: list[nn.Module] = [seen] if seen.series else []
    for size, after in pairwise(sizes):
        layers += [nn.Linear(size, after), CriticUnits(dropout)]
    return nn.Sequential(*layers, nn.Linear(hidden, outputs))
