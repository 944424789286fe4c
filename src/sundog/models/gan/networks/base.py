"""What all shapes have in common."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SLOPE = 0.2  # of critics' rectifiers, below zero


class Body(nn.Module):
    """A generator's network; `latent` is how many normal numbers it wants."""

    latent: int


class Judge(nn.Module):
    """Looks at a record without its label: how real it is, how real with that label, and which label it should have.

    The first two make the score (Miyato and Koyama 2018); the third is learned from real records alone (Odena et al.
    2017), and is what a generator hears most clearly through the noise.
    """

    def __init__(self, body: nn.Module, told: slice) -> None:
        super().__init__()
        self.body, self.told = body, told

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(…, features) to scores (…) and the logits of labels (…, values)."""
        given, values = x[..., self.told], self.told.stop - self.told.start
        found = self.body(torch.cat([x[..., : self.told.start], x[..., self.told.stop :]], dim=-1))
        score = found[..., 0] + (given * found[..., 1 : 1 + values]).sum(dim=-1)
        return score, found[..., 1 + values :]


def others_of(layer: nn.Linear | None, inputs: Tensor) -> Tensor:
    """The other features, if there are any."""
    return inputs[:, :0] if layer is None else layer(inputs)
