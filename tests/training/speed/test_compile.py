"""Compiled steps do what plain ones do, and see what changes between them."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from sundog.privacy.noise import NoiseSource
from sundog.training.batches.examples import Padded
from sundog.training.clipping import ClipPolicy, DPNorm, Fixed
from sundog.training.groups import Groups, group_all
from sundog.training.speed.compile import compile_program
from sundog.training.speed.options import Speed
from sundog.training.stacked_modules import stack
from sundog.training.step import PrivateStep

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="torch.compile needs a C++ compiler: install Debian's g++"
)


def step_of(policy: ClipPolicy, speed: Speed, grouping: Callable[[nn.Module], Groups] = group_all) -> PrivateStep:
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
        groups=grouping(module),
        policy=policy,
        optimizer=torch.optim.Adam(module.parameters(), lr=0.01, foreach=True),
        noise=NoiseSource.seeded(5),
        noise_multiplier=1.0,
        expected_batch=8.0,
        speed=speed,
    )


@pytest.mark.filterwarnings("ignore")  # of torch about itself
def test_a_stack_whose_first_batch_has_as_many_records_as_there_are_models() -> None:
    def stacked(*, compiled: bool) -> PrivateStep:
        torch.manual_seed(0)
        module = stack([nn.Linear(6, 5) for _ in range(3)])
        return PrivateStep(
            module=module,
            private_loss=lambda x: module(x).square().sum(dim=-1),
            groups=group_all(module),
            policy=Fixed(torch.ones(1)),
            optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
            noise=NoiseSource.seeded(5),
            noise_multiplier=1.0,
            expected_batch=torch.full((3,), 4.0),
            speed=Speed(compiled=compiled),
        )

    plain, fast = (stacked(compiled=compiled) for compiled in (False, True))
    for size in (3, 4, 7):
        batch = Padded(torch.randn(3, size, 6), torch.ones(3, size, dtype=torch.bool))
        for step in (plain, fast):
            step([batch])
    check_same_parameters(plain, fast)


@pytest.mark.filterwarnings("ignore")  # of torch about itself
def test_compiled_steps_are_the_same_steps() -> None:
    plain, fast = (step_of(Fixed(torch.ones(1)), Speed(precision="bf16")) for _ in range(2))
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
        both = [batch, Padded(torch.randn(8, 6), torch.arange(8) < 3)]
        for step in (plain, fast):  # several pieces are taken without the program
            step(both)
    check_same_parameters(plain, fast)
    torch.testing.assert_close(plain.policy.bounds, fast.policy.bounds)


def check_same_parameters(plain: PrivateStep, fast: PrivateStep) -> None:
    for a, b in zip(plain.groups.parameters, fast.groups.parameters, strict=True):
        assert bool(b.isfinite().all())
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # of torch about itself
def test_a_program_for_any_size() -> None:
    """Sizes that it is not made for and examples that are not finite included."""
    policy = [DPNorm(noise_multiplier=1.0) for _ in range(2)]
    plain, fast = (step_of(p, Speed(compiled=c)) for p, c in zip(policy, (False, True), strict=True))
    for size in (5, 2, 0, 1, 9, 30):
        x = torch.randn(size, 6)
        if size == 9:
            x[3] = torch.nan
        for step in (plain, fast):
            step([x])
    check_same_parameters(plain, fast)
    torch.testing.assert_close(policy[0].bounds, policy[1].bounds)
    fast.noise_multiplier = 5.0  # which the program knows nothing of
    fast.draw_noise()
    with pytest.raises(RuntimeError, match="compiled for another noise"):
        fast.take_compiled(torch.randn(4, 6))


def test_noise_serves_once() -> None:
    step = step_of(Fixed(torch.ones(1)), Speed())
    step([torch.randn(3, 6)])
    with pytest.raises(RuntimeError, match="noise can be used once"):
        step.take([torch.randn(3, 6)])
    with pytest.raises(RuntimeError, match="must be called before take_compiled"):
        step.take_compiled(Padded(torch.randn(3, 6), torch.ones(3)))
    with pytest.raises(ValueError, match="needs at least one piece"):
        step([])


@pytest.mark.filterwarnings("default")
def test_a_loss_with_waves_is_compiled_without_a_word_about_complex_numbers(recwarn: pytest.WarningsRecorder) -> None:
    module = nn.Linear(4, 1)

    def loss(x: Tensor) -> Tensor:
        waves = torch.view_as_real(torch.fft.rfft(module(x), dim=-1)).square().sum(dim=(-2, -1))
        strong: Tensor = waves + torch.view_as_real(torch.fft.rfft(x)).square().sum(dim=(-2, -1))
        return strong

    program = compile_program(lambda x: [loss(x)], torch.randn(5, 4), Speed(), fixed_size=False)
    x = torch.randn(7, 4)
    torch.testing.assert_close(program(x)[0], loss(x).detach())
    assert not [each for each in recwarn if "complex" in str(each.message)]
