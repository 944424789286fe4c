"""Compiled steps do what plain ones do, and see what changes between them."""

from __future__ import annotations

import shutil

import pytest
import torch
from torch import Tensor, nn

from sundog.privacy.noise import NoiseSource
from sundog.training.clipping import ClipPolicy, Fixed, NoisyMode
from sundog.training.gradients import Padded
from sundog.training.groups import flat
from sundog.training.speed import Speed
from sundog.training.step import PrivateStep

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="torch.compile needs a C++ compiler: install Debian's g++"
)


def step_of(policy: ClipPolicy, speed: Speed) -> PrivateStep:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1))

    def penalised(x: Tensor) -> Tensor:
        x = x.clone().requires_grad_(True)
        score: Tensor = module(x).flatten()
        (slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
        penalty: Tensor = (slope.norm(dim=1) - 1).square()
        return penalty + score

    return PrivateStep(
        module=module,
        private_loss=penalised,
        groups=flat(module),
        policy=policy,
        optimizer=torch.optim.Adam(module.parameters(), lr=0.01, foreach=True),
        noise=NoiseSource.seeded(5),
        noise_multiplier=1.0,
        expected_batch=8.0,
        speed=speed,
    )


@pytest.mark.filterwarnings("ignore")  # of torch about itself
def test_compiled_steps_are_the_same_steps() -> None:
    for fixed, speed in ((True, Speed()), (False, Speed(precision="bf16"))):
        plain, fast = (step_of(Fixed(torch.ones(1)) if fixed else NoisyMode(), speed) for _ in range(2))
        batch = Padded(torch.randn(8, 6), torch.arange(8) < 6)
        fast.compile(batch, fixed_size=True)
        for number in range(4):
            if number == 2:
                for step in (plain, fast):
                    step.policy.bounds.mul_(0.1)
            batch = Padded(torch.randn(8, 6), torch.arange(8) < 2 * number)
            plain([batch])
            fast.draw_noise()
            fast.take_compiled(batch)
        for a, b in zip(plain.groups.parameters, fast.groups.parameters, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(plain.policy.bounds, fast.policy.bounds)


def test_noise_serves_once() -> None:
    step = step_of(Fixed(torch.ones(1)), Speed())
    step([torch.randn(3, 6)])
    with pytest.raises(RuntimeError, match="noise of its own"):
        step.take([torch.randn(3, 6)])
    with pytest.raises(RuntimeError, match="before compile"):
        step.take_compiled(Padded(torch.randn(3, 6), torch.ones(3)))
    with pytest.raises(ValueError, match="needs a piece"):
        step([])
