"""How long a gradient may be: policies that turn the norms of examples into weights, each a small class.

A policy has one bound for each group of parameters. Some follow the norms as training goes on; what they measure of
private examples is noised together with the gradient, as further coordinates of one Gaussian vector
(docs/training.md), and `side_noise` says with which multiplier, so that the plan can pay for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from sundog.errors import SundogError


class ClipPolicy(Protocol):
    """Bounds, weights, and what is learned from a step."""

    @property
    def side_noise(self) -> float | None:
        """The multiplier of what it measures besides the gradient; None if it measures nothing."""

    bounds: Tensor
    """The largest norm an example has in each group after weighing: (groups,). Changed in place."""

    @property
    def measures(self) -> int:
        """How many numbers `measure` gives."""

    def weigh(self, norms: Tensor) -> Tensor:
        """The weight of each example in each group: (groups, B) to (groups, B)."""

    def measure(self, norms: Tensor, present: Tensor) -> Tensor | None:
        """What it wants to know, summed over the examples present, one unit of sensitivity each; None for nothing."""

    def follow(self, noisy: Tensor | None, expected_batch: float) -> None:
        """Sets the bounds of the next step from the noisy measurement; all that it remembers are the bounds."""


def clip_weights(norms: Tensor, bounds: Tensor) -> Tensor:
    """min(1, C / norm)."""
    return (bounds[:, None] / norms.clamp_min(torch.finfo(norms.dtype).tiny)).clamp_max(1.0)


class Fixed:
    """The same bounds throughout."""

    side_noise: ClassVar[float | None] = None
    measures: ClassVar[int] = 0

    def __init__(self, bounds: Tensor) -> None:
        self.bounds = bounds.clone()

    def weigh(self, norms: Tensor) -> Tensor:
        """min(1, C / norm)."""
        return clip_weights(norms, self.bounds)

    def measure(self, norms: Tensor, present: Tensor) -> Tensor | None:  # noqa: ARG002
        """Nothing."""
        return None

    def follow(self, noisy: Tensor | None, expected_batch: float) -> None:
        """Stays."""


class Decay(Fixed):
    """Bounds that fall by a factor a step, as gradients do (Frigerio et al. 2019): public, and free."""

    def __init__(self, bounds: Tensor, factor: float) -> None:
        super().__init__(bounds)
        self.factor = factor

    def follow(self, noisy: Tensor | None, expected_batch: float) -> None:  # noqa: ARG002
        """Falls."""
        self.bounds.mul_(self.factor)


class Automatic(Fixed):
    """Every gradient is brought to nearly the same length: norm / (norm + γ) < 1 (Bu et al. 2023)."""

    def __init__(self, groups: int, gamma: float = 0.01, *, device: str = "cpu") -> None:
        super().__init__(torch.ones(groups, device=device))
        self.gamma = gamma

    def weigh(self, norms: Tensor) -> Tensor:
        """1 / (norm + γ)."""
        return 1 / (norms + self.gamma)


class PublicMean(Fixed):
    """Bounds at the mean norm of public examples under the model as it is now (Zhang et al. 2018): free.

    Args:
        norms: of a batch of public examples, (groups, B), whenever it is called.
        factor: the bounds are this many mean norms.
    """

    def __init__(self, norms: Callable[[], Tensor], factor: float = 1.0) -> None:
        self.norms, self.factor = norms, factor
        super().__init__(self._mean())
        if not bool((self.bounds > 0).all() and self.bounds.isfinite().all()):
            raise SundogError("the gradients of the public examples are zero or not finite: no clipping norm to take")

    def follow(self, noisy: Tensor | None, expected_batch: float) -> None:  # noqa: ARG002
        """Asks again: the step has changed the model."""
        self.bounds.copy_(self._mean())

    def _mean(self) -> Tensor:
        return self.norms().detach().mean(dim=1).mul_(self.factor)


class QuantileTracking:
    """Bounds at a quantile of the norms, followed by noisy counts (Andrew et al. 2021).

    Each example says for each group whether it was within the bound, as ±½: over G groups a vector of norm √G / 2,
    scaled here to one.
    """

    def __init__(self, bounds: Tensor, *, quantile: float = 0.5, rate: float = 0.2, side_noise: float = 10.0) -> None:
        self.bounds = bounds.clone()
        self.measures = len(bounds)
        self.quantile, self.rate, self.side_noise = quantile, rate, side_noise

    def weigh(self, norms: Tensor) -> Tensor:
        """min(1, C / norm)."""
        return clip_weights(norms, self.bounds)

    def measure(self, norms: Tensor, present: Tensor) -> Tensor:
        """Σ (±½) / (√G / 2)."""
        within = (norms <= self.bounds[:, None]).to(norms.dtype) - 0.5
        return (within * present).sum(dim=1) * (2 / math.sqrt(len(self.bounds)))

    def follow(self, noisy: Tensor | None, expected_batch: float) -> None:
        """Moves each bound towards the quantile, geometrically."""
        if noisy is None:
            return
        fraction = noisy * (math.sqrt(len(self.bounds)) / 2) / expected_batch + 0.5
        self.bounds.mul_(torch.exp(-self.rate * (fraction - self.quantile)))


class NoisyMode:
    """The bound is the mode of a noisy histogram of norms (Acs et al. 2019, Algorithm 4): one group.

    An example is in one bin: norm one. The bound is the upper edge of the fullest bin; of an empty batch that is any.
    """

    def __init__(self, *, largest: float = 10.0, bins: int = 100, side_noise: float = 4.0, device: str = "cpu") -> None:
        self.edges = torch.linspace(0, largest, bins + 1, device=device)[1:]
        self.bounds = self.edges[-1:].clone()
        self.measures = bins
        self.side_noise = side_noise

    def weigh(self, norms: Tensor) -> Tensor:
        """min(1, C / norm)."""
        return clip_weights(norms, self.bounds)

    def measure(self, norms: Tensor, present: Tensor) -> Tensor:
        """The histogram; what is above the largest edge counts in the last bin."""
        bins = torch.bucketize(norms[0], self.edges).clamp_max(len(self.edges) - 1)
        return torch.zeros_like(self.edges).scatter_add_(0, bins, present.to(self.edges.dtype))

    def follow(self, noisy: Tensor | None, expected_batch: float) -> None:  # noqa: ARG002
        """Takes the mode."""
        if noisy is not None:
            self.bounds.copy_(self.edges[noisy.argmax()])
