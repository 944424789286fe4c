"""How long a gradient may be: policies that turn the norms of examples into weights, each a small class.

A policy has one bound for each group of parameters. Some follow the norms as training goes on; what they measure of
private examples is noised together with the gradient, as further coordinates of one Gaussian vector
(docs/training.md), and `side_noise` says with which multiplier, so that the plan can pay for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from sundog.errors import SundogError

DPNORM = "dpnorm"  # the value of the setting `clip` that asks for it
_HISTOGRAM_NOISE = 4.0  # σ_C of the text
_LEAST_RATIO = 2.0  # of σ_C to the multiplier of a whole step: at most 15% more noise on the gradient


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

    def follow(self, noisy: Tensor | None) -> None:
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

    def follow(self, noisy: Tensor | None) -> None:
        """Stays."""


class Decay(Fixed):
    """Bounds that fall by a factor a step, as gradients do (Frigerio et al. 2019): public, and free."""

    def __init__(self, bounds: Tensor, factor: float) -> None:
        super().__init__(bounds)
        self.factor = factor

    def follow(self, noisy: Tensor | None) -> None:  # noqa: ARG002
        """Falls."""
        self.bounds.mul_(self.factor)


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

    def follow(self, noisy: Tensor | None) -> None:  # noqa: ARG002
        """Asks again: the step has changed the model."""
        self.bounds.copy_(self._mean())

    def _mean(self) -> Tensor:
        return self.norms().detach().mean(dim=1).mul_(self.factor)


class DPNorm:
    """Bounds at the noisy mode of the gradient norms: DPNorm (Acs et al. 2019, Algorithm 3). One group.

    Each step adds Gaussian noise to a histogram of its norms; the upper edge of the fullest bin bounds the next step.
    Algorithm 3 bounds the same step, which needs all norms of a batch before the first gradient is weighted; one step
    later, a batch can be taken in pieces, and histogram and gradient are one Gaussian vector. The first bound is the
    largest. The components of a mixture share a histogram: an example is in one component, and so in one bin.

    Args:
        noise_multiplier: of a whole step, gradient and histogram together: what the plan charges.
        largest: the upper edge of the last bin, C_max; longer gradients are counted in that bin.
        bins: how many bins there are, w.
        device: where the gradients are.
    """

    def __init__(
        self, *, noise_multiplier: float, largest: float = 10.0, bins: int = 100, device: torch.device | str = "cpu"
    ) -> None:
        self.edges = torch.linspace(0, largest, bins + 1, device=device)[1:]
        self.bounds = self.edges[-1:].clone()
        self.measures = bins
        self.side_noise = max(_HISTOGRAM_NOISE, _LEAST_RATIO * noise_multiplier)

    def weigh(self, norms: Tensor) -> Tensor:
        """min(1, C / norm)."""
        return clip_weights(norms, self.bounds)

    def measure(self, norms: Tensor, present: Tensor) -> Tensor:
        """The histogram of the norms, without noise. An example adds one to one bin: the sensitivity is 1."""
        bins = torch.bucketize(norms[0], self.edges).clamp_max(len(self.edges) - 1)
        return torch.zeros_like(self.edges).scatter_add_(0, bins, present.to(self.edges.dtype))

    def follow(self, noisy: Tensor | None) -> None:
        """Moves the bound to the mode of the noisy histogram."""
        if noisy is not None:
            self.bounds.copy_(self.edges.gather(0, noisy.argmax(dim=0, keepdim=True)))
