"""Gaussian noise for clipped sums: how large it is in each group, and where it is drawn.

Everything that a step measures of private examples, the gradient and what its clipping policy asks for, is one vector
with Gaussian noise. Its noise multiplier is the one that the plan pays for (docs/training.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from sundog.privacy.noise import NoiseSource
from sundog.training.groups import Groups


def compute_gradient_multiplier(noise_multiplier: float, measurement_noise: float | None) -> float:
    """Return the noise multiplier of the gradient, if a policy's measurement shares the step with it.

    Gradient (σ_G) and measurement (σ_C) are coordinates of one vector: together they cost (σ_G⁻² + σ_C⁻²)^(−1/2).

    >>> round(compute_gradient_multiplier(1.0, 4.0), 4)
    1.0328
    """
    if measurement_noise is None:
        return noise_multiplier
    if measurement_noise <= noise_multiplier:
        raise ValueError(f"a measurement with noise multiplier {measurement_noise} costs more than the whole step")
    return 1 / math.sqrt(noise_multiplier**-2 - measurement_noise**-2)


def compute_noise_scales(groups: Groups, bounds: Tensor, noise_multiplier: float) -> Tensor:
    """Return the standard deviation of the noise in each group: the smallest noise that costs `noise_multiplier`.

    Minimise Σ d_g s_g² subject to Σ C_g²/s_g² = 1/σ²: s_g² = σ² · (C_g/√d_g) · Σ_h C_h √d_h, for d_g parameters in
    group g.

    >>> from sundog.training.groups import group_all
    >>> compute_noise_scales(group_all(torch.nn.Linear(3, 2)), torch.tensor([2.0]), 1.5)
    tensor([3.])
    """
    if groups.count == 1:
        return noise_multiplier * bounds
    # Python numbers, not tensors: nothing has to be sent to a device in the middle of a step
    roots = [math.sqrt(size) for size in groups.sizes]
    total = sum((bounds[g] * root for g, root in enumerate(roots)), bounds.new_zeros(())).sqrt()
    # roots first: squares of small bounds would underflow to no noise
    return noise_multiplier * torch.stack([(bounds[g] / root).sqrt() * total for g, root in enumerate(roots)])


class StepNoise:
    """Standard normal numbers for one step; each step draws its own.

    Args:
        sizes: the number of coordinates of each part of the noisy vector.
        device: where the sums are.
    """

    def __init__(self, sizes: Sequence[int], device: torch.device) -> None:
        self._sizes = list(sizes)
        self.normals = torch.empty(sum(sizes), device=device)  # overwritten in place: compiled programs read it
        self._is_fresh = False

    def draw(self, source: NoiseSource) -> None:
        """Draw the noise of the next step."""
        source.standard_normal_(self.normals)
        self._is_fresh = True

    def split(self) -> tuple[Tensor, ...]:
        """Return the noise of each part."""
        return torch.split(self.normals, self._sizes)

    def use_up(self) -> None:
        """Mark the noise as used; raise if it was used before."""
        if not self._is_fresh:
            raise RuntimeError("noise can be used once: the difference of two sums with the same noise has none")
        self._is_fresh = False
