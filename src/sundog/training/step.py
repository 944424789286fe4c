"""One step of DP-SGD: clip, sum, noise once, divide by the expected batch size, and hand the gradient to any optimiser.

A trainee's loss has a private part, whose per-example gradients are clipped and noised, and may have a public part,
in which no record
is: that one is neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sundog.privacy.noise import NoiseSource
from sundog.training.clipping import ClipPolicy
from sundog.training.gradients import Groups, Loss, clipped_sum
from sundog.training.groups import noise_scales


def gradient_noise(noise_multiplier: float, side_noise: float | None) -> float:
    """The multiplier left for the gradient when a policy's measurement takes its part of one joint Gaussian.

    Gradient (σ_G) and measurement (σ_C) are coordinates of one vector: together they cost (σ_G⁻² + σ_C⁻²)^(−1/2).

    >>> round(gradient_noise(1.0, 4.0), 4)
    1.0328
    """
    if side_noise is None:
        return noise_multiplier
    if side_noise <= noise_multiplier:
        raise ValueError(f"a side measurement with multiplier {side_noise} costs more than the whole step")
    return 1 / math.sqrt(noise_multiplier**-2 - side_noise**-2)


@dataclass
class PrivateStep:
    """Everything a step needs; call it with the micro-batches of one Poisson batch.

    The caller has paid for it: a Gaussian of `noise_multiplier`, sampled at its rate.
    """

    module: nn.Module
    private_loss: Loss
    groups: Groups
    policy: ClipPolicy
    optimizer: torch.optim.Optimizer
    noise: NoiseSource
    noise_multiplier: float
    expected_batch: float
    public_loss: Callable[[], Tensor] | None = None

    def __call__(self, pieces: Iterable[Any]) -> None:
        """Takes the step."""
        sums, measured = self._clipped(pieces)
        self._add_noise(sums)
        self.policy.follow(self._noisy(measured), self.expected_batch)
        self.optimizer.zero_grad(set_to_none=True)
        if self.public_loss is not None:
            self.public_loss().backward()  # type: ignore[no-untyped-call]
        for parameter, total in zip(self.groups.parameters, sums, strict=True):
            gradient = total.div_(self.expected_batch)
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        self.optimizer.step()

    def _clipped(self, pieces: Iterable[Any]) -> tuple[list[Tensor], Tensor | None]:
        sums = [torch.zeros_like(parameter) for parameter in self.groups.parameters]
        measured: Tensor | None = None
        for piece in pieces:
            part, norms = clipped_sum(self.module, self.private_loss, piece, self.groups, self.policy.weigh)
            torch._foreach_add_(sums, part)
            more = self.policy.measure(norms)
            measured = more if measured is None or more is None else measured + more
        return sums, measured

    def _add_noise(self, sums: list[Tensor]) -> None:
        multiplier = gradient_noise(self.noise_multiplier, self.policy.side_noise)
        scales = noise_scales(self.groups, self.policy.bounds, multiplier)
        for total, group in zip(sums, self.groups.of, strict=True):
            total.add_(self._normals(total), alpha=float(scales[group]))

    def _noisy(self, measured: Tensor | None) -> Tensor | None:
        if measured is None or self.policy.side_noise is None:
            return measured
        return measured + self.policy.side_noise * self._normals(measured)

    def _normals(self, like: Tensor) -> Tensor:
        return torch.as_tensor(self.noise.gaussian(tuple(like.shape))).to(like)
