"""A moving average of weights: steps are noisy, and their average is less so. It is free, being post-processing."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class MovingAverage:
    """An exponential moving average of parameters, without bias towards where they began.

    >>> weight = nn.Parameter(torch.tensor([4.0]))
    >>> average = MovingAverage([weight], decay=0.5)
    >>> average.update(1)
    >>> _ = weight.data.fill_(1.0)
    >>> average.update(2)
    >>> average.values  # (0.5 · 4 + 1 · 1) / 1.5
    [tensor([2.])]

    Args:
        parameters: what to average.
        decay: how much of the average stays in each step.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], decay: float) -> None:
        if not 0 < decay < 1:
            raise ValueError(f"the decay of an average lies between 0 and 1, not {decay}")
        self.parameters = list(parameters)
        self.decay = decay
        self.values: list[Tensor] = [parameter.detach().clone() for parameter in self.parameters]

    def update(self, count: int) -> None:
        """Takes the parameters in, for the count-th time (from 1)."""
        # Σ decayᵏ · weights / Σ decayᵏ, as a running average: the newest has its share of the sum of weights.
        newest = (1 - self.decay) / -math.expm1(count * math.log(self.decay))
        with torch.no_grad():
            torch._foreach_lerp_(self.values, [parameter.detach() for parameter in self.parameters], newest)

    def load(self, values: Sequence[Tensor]) -> None:
        """Goes on from values that were kept."""
        for mine, kept in zip(self.values, values, strict=True):
            mine.copy_(kept)

    def state_dict(self) -> dict[str, Any]:
        """What to keep."""
        return {"values": self.values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what was kept."""
        self.load(state["values"])

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Puts the average in the place of the parameters while the block runs."""
        trained = [parameter.detach().clone() for parameter in self.parameters]
        self._write(self.values)
        try:
            yield
        finally:
            self._write(trained)

    def apply(self) -> None:
        """Puts the average in the place of the parameters, for good."""
        self._write(self.values)

    def _write(self, values: Sequence[Tensor]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self.parameters, values, strict=True):
                parameter.copy_(value)
