"""Clipping policies: how long the gradient of an example may be.

A policy has one bound for each group of parameters, and turns the norms of examples into weights. DPNorm also measures
the norms of private examples; that measurement is noised together with the gradient, as further coordinates of one
Gaussian vector (noise_addition.py, docs/training.md).
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
    """The clipping bounds of each step. Its only state is `bounds`, which checkpoints keep."""

    @property
    def measurement_noise(self) -> float | None:
        """The noise multiplier of `measure`; None if nothing is measured."""

    bounds: Tensor
    """The largest norm of a clipped gradient in each group, (groups,). Updated in place."""

    @property
    def measurements(self) -> int:
        """The number of coordinates of `measure`."""

    def weigh(self, norms: Tensor) -> Tensor:
        """Return the weight of each example in each group: (groups, B) to (groups, B)."""

    def measure(self, norms: Tensor, present: Tensor) -> Tensor | None:
        """Return a sum over the examples present, with L2 sensitivity 1; None if nothing is measured."""

    def update(self, noisy: Tensor | None) -> None:
        """Set the bounds of the next step, given the noisy measurement of this one."""


def compute_clip_weights(norms: Tensor, bounds: Tensor) -> Tensor:
    """Return min(1, C / norm)."""
    return (bounds[:, None] / norms.clamp_min(torch.finfo(norms.dtype).tiny)).clamp_max(1.0)


class Fixed:
    """Constant bounds."""

    measurement_noise: ClassVar[float | None] = None
    measurements: ClassVar[int] = 0

    def __init__(self, bounds: Tensor) -> None:
        self.bounds = bounds.clone()

    def weigh(self, norms: Tensor) -> Tensor:
        """Return min(1, C / norm)."""
        return compute_clip_weights(norms, self.bounds)

    def measure(self, norms: Tensor, present: Tensor) -> Tensor | None:  # noqa: ARG002
        """Measure nothing."""
        return None

    def update(self, noisy: Tensor | None) -> None:
        """Keep the bounds."""


class Decay(Fixed):
    """Bounds that are multiplied by a constant factor in each step (Frigerio et al. 2019). Costs no budget."""

    def __init__(self, bounds: Tensor, factor: float) -> None:
        super().__init__(bounds)
        self.factor = factor

    def update(self, noisy: Tensor | None) -> None:  # noqa: ARG002
        """Multiply the bounds by the factor."""
        self.bounds.mul_(self.factor)


class PublicMean(Fixed):
    """The mean norms of public examples under the current model (Zhang et al. 2018). Costs no budget.

    Args:
        norms: returns the norms of a batch of public examples, (groups, B).
        factor: the bounds in units of the mean norm.
    """

    def __init__(self, norms: Callable[[], Tensor], factor: float = 1.0) -> None:
        self.norms, self.factor = norms, factor
        super().__init__(self._compute_mean())
        if not bool((self.bounds > 0).all() and self.bounds.isfinite().all()):
            raise SundogError("the gradients of the public examples are zero or not finite: they give no clipping norm")

    def update(self, noisy: Tensor | None) -> None:  # noqa: ARG002
        """Compute the mean norms under the updated model."""
        self.bounds.copy_(self._compute_mean())

    def _compute_mean(self) -> Tensor:
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
        self.measurements = bins
        self.measurement_noise = max(_HISTOGRAM_NOISE, _LEAST_RATIO * noise_multiplier)

    def weigh(self, norms: Tensor) -> Tensor:
        """Return min(1, C / norm)."""
        return compute_clip_weights(norms, self.bounds)

    def measure(self, norms: Tensor, present: Tensor) -> Tensor:
        """Return the histogram of the norms. An example adds one to one bin, so the L2 sensitivity is 1."""
        bins = torch.bucketize(norms[0], self.edges).clamp_max(len(self.edges) - 1)
        return torch.zeros_like(self.edges).scatter_add_(0, bins, present.to(self.edges.dtype))

    def update(self, noisy: Tensor | None) -> None:
        """Set the bound to the mode of the noisy histogram."""
        if noisy is not None:
            self.bounds.copy_(self.edges.gather(0, noisy.argmax(dim=0, keepdim=True)))
