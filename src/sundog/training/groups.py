"""Groups of parameters that are clipped together.

One example is in every group, so groups do not save budget (Theorem 4.1 of the dp-GAN text claims that they do, and is
wrong): the groups are coordinates of one Gaussian vector. With bound C_g and noise of standard deviation s_g in
group g, a step costs as much as one Gaussian with multiplier (Σ C_g²/s_g²)^(−1/2). Groups only choose where the noise
goes (noise_addition.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from sundog.training.stacked_modules import StackedLinear


@dataclass(frozen=True)
class Groups:
    """Parameters that are clipped together: `of[i]` is the group of parameter i."""

    parameters: Sequence[nn.Parameter]
    of: Sequence[int]

    @property
    def count(self) -> int:
        """The number of groups."""
        return max(self.of, default=-1) + 1

    @property
    def sizes(self) -> list[int]:
        """The number of scalar parameters in each group."""
        sizes = [0] * self.count
        for parameter, group in zip(self.parameters, self.of, strict=True):
            sizes[group] += parameter.numel()
        return sizes


def group_all(module: nn.Module) -> Groups:
    """Return all trainable parameters in one group."""
    parameters = list_trainable(module)
    return Groups(parameters, [0] * len(parameters))


def group_weights_and_biases(module: nn.Module) -> Groups:
    """Return matrices and filters in one group, biases in another."""
    parameters = list_trainable(module)
    stacked = {id(p) for layer in module.modules() if isinstance(layer, StackedLinear) for p in layer.parameters()}
    return _group_by_key(parameters, [p.dim() - (id(p) in stacked) < 2 for p in parameters])


def group_by_bound(module: nn.Module, bounds: Sequence[float], count: int) -> Groups:
    """Cluster the parameters into `count` groups with similar bounds (dp-GAN, Algorithm 2).

    Args:
        module: the owner of the parameters.
        bounds: of each trainable parameter, measured on public data.
        count: the number of groups; the two neighbours with the closest means are merged until it is reached.
    """
    parameters = list_trainable(module)
    order = sorted(range(len(parameters)), key=lambda i: bounds[i])
    clusters = [[i] for i in order]
    while len(clusters) > count:
        means = [sum(bounds[i] for i in cluster) / len(cluster) for cluster in clusters]
        gaps = [means[k + 1] / max(means[k], 1e-12) for k in range(len(means) - 1)]
        k = gaps.index(min(gaps))
        clusters[k : k + 2] = [clusters[k] + clusters[k + 1]]
    of = [0] * len(parameters)
    for number, cluster in enumerate(clusters):
        for i in cluster:
            of[i] = number
    return Groups(parameters, of)


def list_trainable(module: nn.Module) -> list[nn.Parameter]:
    """List the parameters that are trained."""
    return [p for p in module.parameters() if p.requires_grad]


def _group_by_key(parameters: list[nn.Parameter], keys: Sequence[object]) -> Groups:
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return Groups(parameters, [numbers[key] for key in keys])
