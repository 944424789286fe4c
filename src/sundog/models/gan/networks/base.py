"""What all shapes have in common."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SLOPE = 0.2  # of critics' rectifiers, below zero


class Body(nn.Module):
    """A generator's network; `latent` is how many normal numbers it wants."""

    latent: int


class Judge(nn.Module):
    """Looks at a record without its label: how real it is, and how real with that label (Miyato and Koyama 2018)."""

    def __init__(self, body: nn.Module, told: slice) -> None:
        super().__init__()
        self.body, self.told = body, told

    def forward(self, x: Tensor) -> Tensor:
        """(…, features) to scores (…)."""
        found = self.body(without(x, self.told))
        score: Tensor = found[..., 0] + (x[..., self.told] * found[..., 1:]).sum(dim=-1)
        return score


def without(x: Tensor, told: slice) -> Tensor:
    """The features but for these."""
    return torch.cat([x[..., : told.start], x[..., told.stop :]], dim=-1)


def others_of(layer: nn.Linear | None, inputs: Tensor) -> Tensor:
    """The other features, if there are any."""
    return inputs[:, :0] if layer is None else layer(inputs)
