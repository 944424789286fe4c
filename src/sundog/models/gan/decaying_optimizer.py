"""An optimiser without a long memory: the weights are an average of recent gradients.

A critic that is linear in its weights and remembers all gradients makes the generator move in circles. With decaying
weights it shows what distinguishes generated records from real ones now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn


class DecayingOptimizer(torch.optim.Optimizer):
    """w ← (1 − lr) · w − lr · gain · gradient.

    >>> weight = nn.Parameter(torch.tensor([1.0]))
    >>> weight.grad = torch.tensor([-1.0])
    >>> DecayingOptimizer([weight], 0.25, gain=10.0).step()
    >>> weight.data
    tensor([3.2500])

    Args:
        weights: the parameters.
        lr: the share of the newest gradient; schedules scale it.
        gain: the scale of the weights.
    """

    def __init__(self, weights: Iterable[nn.Parameter], lr: float, *, gain: float) -> None:
        super().__init__(weights, {"lr": lr, "gain": gain, "capturable": True})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """Move the weights towards the gradients."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    weight.lerp_(-group["gain"] * weight.grad, group["lr"])
