"""A moving average of weights, which is less noisy than the weights of a single step. Post-processing: it is free."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class MovingAverage:
    """An exponential moving average of parameters, without bias towards their initial values.

    >>> weight = nn.Parameter(torch.tensor([4.0]))
    >>> average = MovingAverage([weight], decay=0.5)
    >>> average.update(1)
    >>> _ = weight.data.fill_(1.0)
    >>> average.update(2)
    >>> average.values  # (0.5 · 4 + 1 · 1) / 1.5
    [tensor([2.])]

    Args:
        parameters: what to average.
        decay: the weight of the old average in each step.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], decay: float) -> None:
        if not 0 < decay < 1:
            raise ValueError(f"the decay of an average must be between 0 and 1, not {decay}")
        self.parameters = list(parameters)
        self.decay = decay
        self.values: list[Tensor] = [parameter.detach().clone() for parameter in self.parameters]

    def update(self, count: int) -> None:
        """Add the current parameters to the average, for the count-th time (from 1)."""
        # Σ decayᵏ · weights / Σ decayᵏ, as a running average
        newest = (1 - self.decay) / -math.expm1(count * math.log(self.decay))
        with torch.no_grad():
            torch._foreach_lerp_(self.values, [parameter.detach() for parameter in self.parameters], newest)

    def restore(self, values: Sequence[Tensor]) -> None:
        """Restore saved values."""
        for mine, kept in zip(self.values, values, strict=True):
            mine.copy_(kept)

    def state_dict(self) -> dict[str, Any]:
        """Return the state to save."""
        return {"values": self.values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.restore(state["values"])

    def apply(self) -> None:
        """Replace the parameters by their average."""
        with torch.no_grad():
            for parameter, value in zip(self.parameters, self.values, strict=True):
                parameter.copy_(value)
