"""Base classes of generators and critics."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SLOPE = 0.2  # of critics' rectifiers, below zero


class GeneratorNetwork(nn.Module):
    """The network of a generator; `latent` is its number of latent variables."""

    latent: int


class CriticUnits(nn.LeakyReLU):
    """Leaky rectified units, of which a share is dropped in each pass of a training (Srivastava et al. 2014).

    >>> CriticUnits(dropout=0.5).eval()(torch.tensor([-1.0, 1.0]))
    tensor([-0.2000,  1.0000])

    Args:
        dropout: the share. Each record has a mask of its own, so that gradients are still those of single records.
    """

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__(SLOPE)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        """Return the units; those that remain are scaled, so that expectations stay."""
        y = super().forward(x)
        if not self.dropout or not self.training:
            return y
        # Not torch's dropout: replays give each record the same mask in both of two fits through this call.
        return y * (torch.rand_like(y) >= self.dropout) / (1 - self.dropout)


class CriticNetwork(nn.Module):
    """Scores a record by itself and together with its label (projection discriminator, Miyato and Koyama 2018)."""

    def __init__(self, body: nn.Module, condition: slice) -> None:
        super().__init__()
        self.body, self.condition = body, condition

    def forward(self, x: Tensor) -> Tensor:
        """Return the score of each record: (…, features) to (…)."""
        found = self.body(remove_condition(x, self.condition))
        score: Tensor = found[..., 0] + (x[..., self.condition] * found[..., 1:]).sum(dim=-1)
        return score


def remove_condition(x: Tensor, condition: slice) -> Tensor:
    """Return all features except those of the condition."""
    return torch.cat([x[..., : condition.start], x[..., condition.stop :]], dim=-1)


def compute_others(layer: nn.Linear | None, inputs: Tensor) -> Tensor:
    """Return the logits of the other features, if there are any."""
    return inputs[:, :0] if layer is None else layer(inputs)
