"""The losses of the critic and of the generator.

Wasserstein with a gradient penalty (Gulrajani et al. 2017), as in both dp-GAN texts; and the non-saturating game
(Goodfellow et al. 2014), which with noise and many critic steps does better (Bie et al. 2023).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

Critic = Callable[[Tensor], Tensor]  # (…, features) to (…)
_TINY = 1e-12  # the square root has no slope at zero


class Objective(Protocol):
    """Per-example losses of critic and generator."""

    def critic_loss_real(self, scores: Tensor) -> Tensor:
        """Return the loss of the critic on real records."""

    def critic_loss_fake(self, scores: Tensor) -> Tensor:
        """Return the loss of the critic on generated records."""

    def generator_loss(self, scores: Tensor) -> Tensor:
        """Return the loss of the generator."""

    def penalty(self, critic: Critic, real: Tensor, fake: Tensor) -> Tensor | None:
        """Return the gradient penalty between a real and a generated record; None if there is none."""


class NonSaturating:
    """Scores are log-odds of being real."""

    def critic_loss_real(self, scores: Tensor) -> Tensor:
        """Return −log σ(s)."""
        return functional.softplus(-scores)

    def critic_loss_fake(self, scores: Tensor) -> Tensor:
        """Return −log σ(−s)."""
        return functional.softplus(scores)

    def generator_loss(self, scores: Tensor) -> Tensor:
        """Return −log σ(s)."""
        return functional.softplus(-scores)

    def penalty(self, critic: Critic, real: Tensor, fake: Tensor) -> None:
        """Return None: there is no penalty."""


@dataclass(frozen=True)
class Wasserstein:
    """Differences of scores are distances, as long as the critic's slope is one."""

    weight: float = 10.0

    def critic_loss_real(self, scores: Tensor) -> Tensor:
        """Return −s."""
        return -scores

    def critic_loss_fake(self, scores: Tensor) -> Tensor:
        """Return s."""
        return scores

    def generator_loss(self, scores: Tensor) -> Tensor:
        """Return −s."""
        return -scores

    def penalty(self, critic: Critic, real: Tensor, fake: Tensor) -> Tensor:
        """Return λ (‖∇ critic‖ − 1)² at a random point between the two records of each pair."""
        place = torch.rand(*real.shape[:-1], 1, device=real.device)
        between = torch.lerp(fake, real, place).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        steepness = (slope.square().sum(dim=-1) + _TINY).sqrt()
        return self.weight * (steepness - 1).square()
