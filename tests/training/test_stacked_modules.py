"""Many models at once: each example is clipped in its own model, as if the others were not there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from sundog.errors import SundogError
from sundog.privacy.noise import NoiseSource
from sundog.training.batches.examples import Padded
from sundog.training.clipping import DPNorm, Fixed, compute_clip_weights
from sundog.training.groups import group_all, group_weights_and_biases
from sundog.training.per_example.engine import clip_and_sum
from sundog.training.stacked_modules import StackedLinear, stack, unstack
from sundog.training.step import PrivateStep


class Coder(nn.Module):
    """Works on the last dimension, so it can be stacked."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(6, 5)
        self.decode = nn.Linear(5, 6, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(torch.tanh(self.encode(x)))  # type: ignore[no-any-return]

    def loss(self, x: Tensor) -> Tensor:
        return functional.mse_loss(self(x), x, reduction="none").sum(dim=-1)

    def penalised(self, x: Tensor) -> Tensor:
        x = x.clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(self(x).sum(), x, create_graph=True)
        penalty: Tensor = (slope.norm(dim=-1) - 1).square()
        return self.loss(x) + penalty


@pytest.mark.parametrize("loss", ["loss", "penalised"])
@pytest.mark.parametrize("batch", [0, 1, 7])
@pytest.mark.parametrize("grouping", [group_all, group_weights_and_biases])
def test_a_stack_does_what_its_models_do(loss: str, batch: int, grouping: type) -> None:
    models = [Coder() for _ in range(3)]
    whole = stack(models)
    x = 3 * torch.randn(3, batch, 6)
    groups = grouping(whole)
    bounds = torch.linspace(0.5, 1.0, groups.count)
    found = clip_and_sum(whole, getattr(whole, loss), x, groups, lambda n: compute_clip_weights(n, bounds))
    for number, model in enumerate(models):
        alone = clip_and_sum(
            model, getattr(model, loss), x[number], grouping(model), lambda n: compute_clip_weights(n, bounds)
        )
        for ours, expected in zip(found.sums, alone.sums, strict=True):
            torch.testing.assert_close(ours[number], expected, rtol=1e-4, atol=1e-5)
        norms = found.norms.view(groups.count, 3, batch)[:, number]
        torch.testing.assert_close(norms, alone.norms, rtol=1e-4, atol=1e-5)


def test_padding_and_bad_examples_count_for_nothing() -> None:
    models = [Coder() for _ in range(2)]
    whole = stack(models)
    x = torch.randn(2, 4, 6)
    x[0, 2:] = torch.inf
    x[1, 3] = 100.0
    present = torch.tensor([[True, True, False, True], [True, True, True, False]])
    groups = group_all(whole)
    loss: Any = whole.loss
    found = clip_and_sum(whole, loss, Padded(x, present), groups, lambda n: compute_clip_weights(n, torch.ones(1)))
    assert found.present.tolist() == [True, True, False, False, True, True, True, False]
    for number, kept in ((0, [0, 1]), (1, [0, 1, 2])):
        model = models[number]
        alone = clip_and_sum(
            model, model.loss, x[number, kept], group_all(model), lambda n: compute_clip_weights(n, torch.ones(1))
        )
        for ours, expected in zip(found.sums, alone.sums, strict=True):
            torch.testing.assert_close(ours[number], expected, rtol=1e-4, atol=1e-5)


def test_a_step_divides_by_the_batch_of_each_model() -> None:
    whole = stack([nn.Linear(40, 50) for _ in range(3)])
    assert isinstance(whole, StackedLinear)
    before = whole.weight.detach().clone()
    batches = torch.tensor([10.0, 20.0, 40.0])
    step = PrivateStep(
        module=whole,
        private_loss=lambda x: 0.0 * whole(x).sum(dim=-1),
        groups=group_all(whole),
        policy=DPNorm(noise_multiplier=2.0, largest=1.0),
        optimizer=torch.optim.SGD(whole.parameters(), lr=1.0),
        noise=NoiseSource(),
        noise_multiplier=2.0,
        expected_batch=batches,
    )
    step([torch.randn(3, 4, 40)])
    moved = (whole.weight.detach() - before).flatten(1).std(dim=1)
    scale = step._noise.normals.std() * 2 / (1 - (2 / 4) ** 2) ** 0.5
    torch.testing.assert_close(moved * batches, scale.expand(3), rtol=0.1, atol=0.0)


def test_there_and_back() -> None:
    models = [Coder() for _ in range(4)]
    for before, after in zip(models, unstack(stack(models), models[0]), strict=True):
        for a, b in zip(before.parameters(), after.parameters(), strict=True):
            assert torch.equal(a, b)


def test_what_cannot_be_stacked_says_so() -> None:
    with pytest.raises(SundogError, match=r"1 \(Conv1d\) cannot be stacked"):
        stack([nn.Sequential(nn.Linear(4, 4), nn.Conv1d(1, 1, 2)) for _ in range(2)])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30])
def test_an_example_that_is_not_finite_cannot_be_seen(bad: float) -> None:
    """Nothing about the sum says that it was there."""
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1))
    x = torch.randn(5, 6)
    with_it = torch.cat([x[:2], torch.full((1, 6), bad), x[2:]])

    def loss(batch: Tensor) -> Tensor:
        losses: Tensor = model(batch).flatten() * batch.square().sum(dim=1)
        return losses

    found = [
        clip_and_sum(model, loss, batch, group_all(model), Fixed(torch.ones(1)).weigh).sums for batch in (x, with_it)
    ]
    for without, ours in zip(*found, strict=True):
        assert bool(ours.isfinite().all())
        torch.testing.assert_close(ours, without)
