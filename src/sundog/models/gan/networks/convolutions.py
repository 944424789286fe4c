"""Convolutions, for images and series."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from sundog.models.gan.geometry import KERNEL
from sundog.models.gan.networks.base import CriticUnits, GeneratorNetwork, compute_others
from sundog.models.gan.networks.grid import Grid

_GROUPS = 8  # of channels that are normalised together
_KERNEL = 5
_FIRST_CHANNELS = 16  # of the label classifier


class Deconvolution(GeneratorNetwork):
    """From a small grid to the whole, twice as large in each step; other features by a linear layer."""

    def __init__(self, grid: Grid, latent: int, condition: int, *, channels: int, others: int) -> None:
        super().__init__()
        self.latent, self.grid = latent, grid
        self.smallest = grid.halve(grid.halvings)
        widths = grid.choose_widths(channels, grid.halvings)[::-1]
        self.widest = widths[0]
        self.first = nn.Linear(latent + condition, self.widest * math.prod(self.smallest))
        self.others = nn.Linear(latent + condition, others) if others else None
        larger: Any = nn.ConvTranspose2d if len(grid.size) == 2 else nn.ConvTranspose1d
        layers: list[nn.Module] = []
        for width, after in pairwise([*widths, grid.channels]):
            groups = math.gcd(_GROUPS, max(1, width // 4))  # one channel by itself would lose its level
            layers += [nn.GroupNorm(groups, width), nn.ReLU(), larger(width, after, KERNEL, 2, 1)]
        self.layers = nn.Sequential(*layers)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits: (B, latent + condition) to (B, features)."""
        values = self.layers(self.first(inputs).view(len(inputs), self.widest, *self.smallest))
        return self.grid.put_in(values, compute_others(self.others, inputs))


class ConvolutionalClassifier(nn.Module):
    """A small network that private training does well with: bounded units, and few of them (Papernot et al. 2021)."""

    def __init__(self, grid: Grid, *, others: int, outputs: int) -> None:
        super().__init__()
        self.grid = grid
        flat = len(grid.size) == 2
        smaller: Any = nn.Conv2d if flat else nn.Conv1d
        pooled: Any = nn.MaxPool2d if flat else nn.MaxPool1d
        widths = [grid.channels, *(_FIRST_CHANNELS * 2**layer for layer in range(grid.halvings))]
        layers: list[nn.Module] = []
        for width, after in pairwise(widths):
            layers += [smaller(width, after, _KERNEL, 2, _KERNEL // 2), nn.Tanh(), pooled(3, 1, 1)]
        self.layers = nn.Sequential(*layers, nn.Flatten())
        found = widths[-1] * math.prod(grid.halve(grid.halvings))
        self.out = nn.Linear(found + others, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of each record: (B, features) to (B, outputs)."""
        found = torch.cat([self.layers(self.grid.cut_out(x)), self.grid.select_others(x)], dim=1)
        answers: Tensor = self.out(found)
        return answers


class ConvolutionalCritic(nn.Module):
    """Strided convolutions, whose outputs are scaled by the other features."""

    def __init__(self, grid: Grid, channels: int, *, others: int, outputs: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.grid = grid
        smaller: Any = nn.Conv2d if len(grid.size) == 2 else nn.Conv1d
        widths = [grid.channels, *grid.choose_widths(channels, grid.halvings + 1)]
        layers: list[nn.Module] = []
        for width, after in pairwise(widths):
            layers += [smaller(width, after, _KERNEL, 2, _KERNEL // 2), CriticUnits(dropout)]
        self.layers = nn.Sequential(*layers, nn.Flatten())
        found = widths[-1] * math.prod(grid.halve(grid.halvings + 1))
        self.out = nn.Linear(found, outputs)
        self.others = nn.Linear(others, found, bias=False) if others else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of each record: (B, features) to (B, outputs)."""
        found = self.layers(self.grid.cut_out(x))
        if self.others is not None:
            found = found * (1 + self.others(self.grid.select_others(x)))
        answers: Tensor = self.out(found)
        return answers
