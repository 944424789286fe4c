"""The step: noise of the right size, once, on the sum; public parts untouched; batches that may be empty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats
from tests.training.toy import by_layer
from torch import nn

from sundog.privacy.noise import NoiseSource
from sundog.training.batches.poisson import draw_poisson_batch, split_batch
from sundog.training.clipping import ClipPolicy, Decay, DPNorm, Fixed
from sundog.training.groups import Groups, group_all, group_by_bound, group_weights_and_biases
from sundog.training.noise_addition import compute_gradient_multiplier, compute_noise_scales
from sundog.training.per_example.engine import clip_and_sum
from sundog.training.step import PrivateStep

RIGHT, WRONG = 1e-7, 1e-10  # p-values: a false alarm once in ten million runs, and no doubt about a wrong scale


def network() -> nn.Module:
    module = nn.Sequential(nn.Linear(30, 80), nn.Tanh(), nn.Linear(80, 40))
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    return module


def step_of(module: nn.Module, groups: Groups, policy: ClipPolicy, *, noise: float, batch: float) -> PrivateStep:
    return PrivateStep(
        module=module,
        private_loss=lambda x: 0.0 * module(x).sum(1),
        groups=groups,
        policy=policy,
        optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
        noise=NoiseSource(),
        noise_multiplier=noise,
        expected_batch=batch,
    )


def policies(groups: int) -> list[tuple[ClipPolicy, float]]:
    bounds = torch.linspace(0.5, 2.0, groups)
    found: list[tuple[ClipPolicy, float]] = [(Fixed(bounds), 1.5), (Decay(bounds, 0.99), 1.5)]
    if groups == 1:
        found.append((DPNorm(noise_multiplier=1.5, largest=2.0), compute_gradient_multiplier(1.5, 4.0)))
    return found


@pytest.mark.parametrize("grouping", [group_all, group_weights_and_biases, by_layer])
def test_the_noise_has_the_right_scale_in_every_group_and_policy(grouping: Callable[[nn.Module], Groups]) -> None:
    count = grouping(network()).count
    for number in range(len(policies(count))):
        policy, multiplier = policies(count)[number]
        module = network()
        groups = grouping(module)
        scales = compute_noise_scales(groups, policy.bounds, multiplier)
        step_of(module, groups, policy, noise=1.5, batch=50.0)([torch.randn(8, 30)])
        for group in range(groups.count):
            drawn = torch.cat(
                [p.detach().flatten() for p, g in zip(groups.parameters, groups.of, strict=True) if g == group]
            ).numpy()
            for factor, accepted in ((1.0, True), (2 / 3, False), (3 / 2, False)):
                p_value = stats.kstest(drawn, stats.norm(scale=factor * float(scales[group]) / 50).cdf).pvalue
                if accepted:
                    assert p_value > RIGHT
                elif len(drawn) > 1000:
                    assert p_value < WRONG


def test_micro_batches_make_the_same_step() -> None:
    torch.manual_seed(0)
    x = torch.randn(20, 30)
    results = []
    for parts in ([x], [x[:7], x[7:8], x[8:]]):
        torch.manual_seed(1)
        module = nn.Linear(30, 4)
        step = PrivateStep(
            module=module,
            private_loss=lambda batch, module=module: module(batch).square().sum(1),  # type: ignore[misc]
            groups=group_all(module),
            policy=Fixed(torch.ones(1)),
            optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
            noise=NoiseSource(),
            noise_multiplier=1e-9,
            expected_batch=20,
        )
        step(parts)
        results.append(module.weight.detach().clone())
    torch.testing.assert_close(*results)


def test_the_public_part_is_neither_clipped_nor_noised() -> None:
    module = nn.Linear(3, 1, bias=False)
    nn.init.zeros_(module.weight)
    step = step_of(module, group_all(module), Fixed(torch.full((1,), 1e-9)), noise=1.0, batch=1.0)
    step.public_loss = lambda: 1000.0 * module(torch.ones(1, 3)).sum()
    step([torch.randn(4, 3)])
    torch.testing.assert_close(module.weight.detach(), torch.full((1, 3), -1000.0))


def test_an_empty_batch_is_a_step_of_noise() -> None:
    module = network()
    step_of(module, group_all(module), DPNorm(noise_multiplier=1.0), noise=1.0, batch=10.0)([torch.empty(0, 30)])
    assert all((p.detach() != 0).all() for p in module.parameters())


def test_batch_sizes_are_binomial_and_every_record_is_drawn_alike() -> None:
    noise, records, rate = NoiseSource(), 400, 0.05
    batches = [draw_poisson_batch(records, rate, noise) for _ in range(4000)]
    sizes = np.array([len(batch) for batch in batches])
    edges = [0, 12, 15, 17, 19, 21, 23, 26, records + 1]
    expected = np.diff(stats.binom(records, rate).cdf(np.array(edges) - 1)) * len(sizes)
    assert stats.chisquare(np.histogram(sizes, edges)[0], expected * len(sizes) / expected.sum()).pvalue > RIGHT
    fixed = np.diff(stats.norm(20, 0.5).cdf(np.array(edges) - 1)) + 1e-9  # fixed-size batches would be caught
    assert stats.chisquare(np.histogram(sizes, edges)[0], fixed / fixed.sum() * len(sizes)).pvalue < WRONG
    drawn = np.bincount(np.concatenate(batches), minlength=records)
    assert stats.chisquare(drawn).pvalue > RIGHT
    assert all((np.diff(batch) > 0).all() for batch in batches)


def test_pieces_are_the_batch() -> None:
    index = np.arange(10)
    assert [len(piece) for piece in split_batch(index, 4)] == [4, 4, 2]
    assert [len(piece) for piece in split_batch(index[:0], 4)] == [0]


def test_no_weighted_gradient_is_longer_than_its_bound() -> None:
    torch.manual_seed(0)
    module = nn.Linear(5, 3)
    groups = group_weights_and_biases(module)
    bounds = torch.tensor([0.2, 0.7])
    for i in range(20):
        x = torch.randn(1, 5) * 10.0**i / 1e8
        sums = clip_and_sum(module, lambda b: module(b).square().sum(1), x, groups, Fixed(bounds).weigh).sums
        for total, group in zip(sums, groups.of, strict=True):
            assert float(total.norm()) <= float(bounds[group]) * (1 + 1e-5)


def test_similar_bounds_are_grouped() -> None:
    module = nn.Sequential(*(nn.Linear(2, 2, bias=False) for _ in range(5)))
    groups = group_by_bound(module, [0.1, 5.0, 0.11, 4.9, 1.0], 3)
    assert groups.of[0] == groups.of[2]
    assert groups.of[1] == groups.of[3]
    assert len(set(groups.of)) == 3
