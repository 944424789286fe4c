"""Noise over groups of parameters: it costs what was planned, and is the smallest that does."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from tests.training.toy import by_layer
from torch import Tensor, nn

from sundog.privacy.noise import NoiseSource
from sundog.training.groups import Groups, group_all, group_weights_and_biases
from sundog.training.noise_addition import StepNoise, compute_gradient_multiplier, compute_noise_scales


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(30, 80), nn.Tanh(), nn.Linear(80, 40))


@pytest.mark.parametrize("grouping", [group_all, group_weights_and_biases, by_layer])
def test_groups_cost_what_was_planned(grouping: Callable[[nn.Module], Groups]) -> None:
    """One example is in every group: the squared signal-to-noise ratios of the groups add up to the plan's."""
    groups = grouping(network())
    bounds = torch.rand(groups.count) + 0.1
    scales = compute_noise_scales(groups, bounds, 1.3)
    assert float((bounds / scales).square().sum()) == pytest.approx(1 / 1.3**2, rel=1e-5)


@pytest.mark.parametrize("bound", [1e-30, 1e-20, 1e20, 1e30])
def test_groups_with_small_and_large_bounds_have_their_noise(bound: float) -> None:
    """Squares of such bounds are zero or infinite where numbers have 32 bits."""
    groups = by_layer(network())
    bounds = torch.tensor([1.0, 2.0])
    scales = compute_noise_scales(groups, bounds * bound, 1.3) / bound
    assert torch.allclose(scales, compute_noise_scales(groups, bounds, 1.3), rtol=1e-5)


def test_the_spread_of_noise_over_groups_is_the_best() -> None:
    groups = by_layer(network())
    bounds = torch.tensor([0.3, 2.0])
    sizes = torch.zeros(2)
    for parameter, group in zip(groups.parameters, groups.of, strict=True):
        sizes[group] += parameter.numel()

    def total(scales: Tensor) -> float:
        return float((sizes * scales.square()).sum())

    best = total(compute_noise_scales(groups, bounds, 1.0))
    for share in np.linspace(0.02, 0.98, 49):  # every other way to spend the same
        other = bounds / torch.sqrt(torch.tensor([share, 1 - share]))
        assert best <= total(other) * 1.0001


def test_a_measurement_takes_its_part_of_the_step() -> None:
    together = 1 / math.sqrt(compute_gradient_multiplier(1.0, 4.0) ** -2 + 4.0**-2)
    assert together == pytest.approx(1.0)
    with pytest.raises(ValueError, match="costs more"):
        compute_gradient_multiplier(1.0, 0.9)


def test_noise_can_be_used_once() -> None:
    noise = StepNoise([3, 2], torch.device("cpu"))
    with pytest.raises(RuntimeError, match="noise can be used once"):
        noise.use_up()
    noise.draw(NoiseSource())
    assert [len(part) for part in noise.split()] == [3, 2]
    noise.use_up()
    with pytest.raises(RuntimeError, match="noise can be used once"):
        noise.use_up()
