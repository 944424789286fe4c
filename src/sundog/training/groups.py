"""Parameters that are clipped together, and how noise is best spread over groups.

One example is in every group, so groups are no way to save budget (the dp-GAN text's Theorem 4.1 says so, and is
wrong): the groups are coordinates of one Gaussian vector. With bound C_g and noise of standard deviation s_g in each
group the step costs what one Gaussian with multiplier (Σ C_g²/s_g²)^(−1/2) does. What groups can do is to put noise
where it hurts least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sundog.training.per_example.engine import Groups
from sundog.training.stacked_modules import StackedLinear


def flat(module: nn.Module) -> Groups:
    """One group for all."""
    parameters = trainable(module)
    return Groups(parameters, [0] * len(parameters))


def weights_and_biases(module: nn.Module) -> Groups:
    """Matrices and filters in one group, vectors in another."""
    parameters = trainable(module)
    stacked = {id(p) for layer in module.modules() if isinstance(layer, StackedLinear) for p in layer.parameters()}
    return _numbered(parameters, [p.dim() - (id(p) in stacked) < 2 for p in parameters])


def by_layer(module: nn.Module) -> Groups:
    """A group for each layer."""
    owners = {id(p): name for name, layer in module.named_modules() for p in layer.parameters(recurse=False)}
    parameters = trainable(module)
    return _numbered(parameters, [owners[id(p)] for p in parameters])


def by_bound(module: nn.Module, bounds: Sequence[float], count: int) -> Groups:
    """`count` groups of parameters with similar bounds (dp-GAN, Algorithm 2).

    Neighbours in size are merged while there are more groups than that. `bounds` has the bound of each trainable
    parameter, measured on public data.
    """
    parameters = trainable(module)
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


def trainable(module: nn.Module) -> list[nn.Parameter]:
    """The parameters that are trained."""
    return [p for p in module.parameters() if p.requires_grad]


def noise_scales(groups: Groups, bounds: Tensor, noise_multiplier: float) -> Tensor:
    """The standard deviation of the noise in each group that costs `noise_multiplier` and is smallest in all.

    Minimise Σ d_g s_g² subject to Σ C_g²/s_g² = 1/σ²: s_g² = σ² · (C_g/√d_g) · Σ_h C_h √d_h, for d_g parameters in
    group g.

    >>> layer = nn.Linear(3, 2)
    >>> noise_scales(flat(layer), torch.tensor([2.0]), 1.5)
    tensor([3.])
    """
    # by numbers, not tensors: nothing has to be sent to a device in the middle of a step
    if groups.count == 1:
        return noise_multiplier * bounds
    roots = [math.sqrt(size) for size in groups.sizes]
    total = sum((bounds[g] * root for g, root in enumerate(roots)), bounds.new_zeros(())).sqrt()
    # roots first: squares of small bounds would be no noise at all
    return noise_multiplier * torch.stack([(bounds[g] / root).sqrt() * total for g, root in enumerate(roots)])


def _numbered(parameters: list[nn.Parameter], keys: Sequence[object]) -> Groups:
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return Groups(parameters, [numbers[key] for key in keys])
