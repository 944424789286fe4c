"""What would let an example through: cancellation, vanishing squares, losses that are none, statistics on the side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.training.in_memory import InMemory
from torch import Tensor, nn

from sundog.errors import SundogError
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.training.clipping import Fixed, compute_clip_weights
from sundog.training.groups import group_all
from sundog.training.per_example.engine import clip_and_sum
from sundog.training.per_example.factors import Factors, Lookup, Outer, OuterSum
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer
from sundog.training.training_plan import TrainingPlan


def contribution(module: nn.Module, loss: Callable[[Tensor], Tensor], x: Tensor, bound: float) -> float:
    found = clip_and_sum(module, loss, x, group_all(module), lambda n: compute_clip_weights(n, torch.tensor([bound])))
    return float(torch.cat([total.flatten() for total in found.sums]).norm())


@pytest.mark.parametrize("bound", [1.0, 1e-2, 1e-3])
def test_terms_that_cancel_are_not_longer_than_the_bound(bound: float) -> None:
    """A layer used twice on nearly the same input, with opposite signs."""
    module = nn.Linear(200, 200, bias=False)
    for _ in range(20):
        x = torch.randn(1, 200)
        step = 1e-4 * torch.randn(1, 200)
        weight = torch.randn(200)

        def loss(x: Tensor, step: Tensor = step, weight: Tensor = weight) -> Tensor:
            difference: Tensor = module(x) @ weight - module(x + step) @ weight
            return difference

        assert contribution(module, loss, x, bound) <= bound * (1 + 1e-5)


def test_every_factored_norm_is_an_upper_bound_under_cancellation() -> None:
    left, right = torch.randn(8, 1, 64), torch.randn(8, 1, 64)
    near = right + 1e-4 * torch.randn(8, 1, 64)
    index = torch.zeros(8, 2, dtype=torch.int64)
    uses: list[Factors] = [
        Outer.of([(left[:, 0], right[:, 0]), (-left[:, 0], near[:, 0])]),
        OuterSum(torch.cat([left, -left], dim=1), torch.cat([right, near], dim=1)),
        Lookup(index, torch.cat([right, -near], dim=1), 3),
    ]
    for use in uses:
        mass = use.compute_squared_mass()
        assert mass is not None
        bound = (use.compute_squared_norms() + 2 * 2**-21 * mass).sqrt() + 2**-21 * mass.sqrt()
        each = torch.stack([use.sum_weighted(one).double().flatten().norm() for one in torch.eye(8)])
        assert bool((each <= bound).all())


def test_numbers_whose_squares_vanish_still_count() -> None:
    module = nn.Linear(256, 256, bias=False)

    def loss(x: Tensor) -> Tensor:
        tiny: Tensor = (module(x) * 2e-23).sum(dim=1)
        return tiny

    assert contribution(module, loss, torch.full((1, 256), 1e18), 1e-3) <= 1e-3


def test_a_loss_is_one_number_for_each_example() -> None:
    module = nn.Linear(3, 2)
    losses: list[Callable[[Tensor], Tensor]] = [
        lambda x: module(x).sum(),
        lambda x: module(x).mean()[None],
        lambda x: module(x.reshape(-1, 3)).sum(dim=1),
        lambda x: module(x).sum(dim=2).sum(dim=0),
    ]
    for loss in losses:
        with pytest.raises(SundogError, match="one number for each example"):
            contribution(module, loss, torch.randn(6, 5, 3), 1.0)
    recurrent = nn.GRU(3, 4)  # not batch_first
    with pytest.raises(SundogError, match="batch_first"):
        contribution(recurrent, lambda x: recurrent(x)[0].sum(dim=(1, 2)), torch.randn(6, 7, 3), 1.0)


def test_running_statistics_are_refused() -> None:
    module = nn.Sequential(nn.InstanceNorm1d(3, track_running_stats=True), nn.Flatten(), nn.Linear(12, 1))
    with pytest.raises(SundogError, match="InstanceNorm1d"):
        contribution(module, lambda x: module(x)[:, 0], torch.randn(5, 3, 4), 1.0)


def test_other_modules_are_left_without_gradients() -> None:
    critic, generator = nn.Linear(3, 1), nn.Linear(2, 3)
    contribution(critic, lambda z: critic(generator(z))[:, 0], torch.randn(4, 2), 1.0)
    assert all(p.grad is None for p in generator.parameters())


@pytest.mark.filterwarnings("ignore:per-example gradients")
def test_special_layers_are_not_tapped() -> None:
    padded = nn.Embedding(5, 3, padding_idx=0)
    found = clip_and_sum(
        padded, lambda i: padded(i).sum(dim=(1, 2)), torch.tensor([[0, 1]]), group_all(padded), lambda n: 1 + 0 * n
    )
    assert float(found.sums[0][0].abs().sum()) == 0
    tied = nn.Sequential(nn.Embedding(4, 4), nn.Linear(4, 4, bias=False))
    tied[1].weight = tied[0].weight
    index = torch.tensor([[0, 1], [2, 2]])
    whole = clip_and_sum(tied, lambda i: tied(i).sum(dim=(1, 2)), index, group_all(tied), torch.ones_like).sums[0]
    (expected,) = torch.autograd.grad(tied(index).sum(), list(tied.parameters()))
    torch.testing.assert_close(whole, expected)


def test_a_step_refuses_other_numbers_than_float32() -> None:
    module = nn.Linear(3, 1).double()
    with pytest.raises(SundogError, match="float32"):
        PrivateStep(
            module=module,
            private_loss=lambda x: module(x)[:, 0],
            groups=group_all(module),
            policy=Fixed(torch.ones(1)),
            optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
            noise=NoiseSource(),
            noise_multiplier=1.0,
            expected_batch=2.0,
        )


def trainer_of(records: int, drawn: list[float], after: Callable[[int], None]) -> Trainer:
    """Every record in every step, and a loss that draws a number for each."""
    module = nn.Linear(3, 1)

    def loss(x: Tensor) -> Tensor:
        luck = torch.rand(len(x))
        drawn.append(float(luck[0]))
        return module(x)[:, 0] * luck  # type: ignore[no-any-return]

    plan = TrainingPlan(sample_rate=1.0, steps=4, noise_multiplier=20.0, expected_batch=100.0)
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    step = PrivateStep(
        module=module,
        private_loss=loss,
        groups=group_all(module),
        policy=Fixed(torch.ones(1)),
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        noise=ledger.noise,
        noise_multiplier=plan.noise_multiplier,
        expected_batch=plan.expected_batch,
    )
    return Trainer(step, InMemory(torch.randn(records, 3)), plan, ledger, seed=1, after=after)


def test_what_a_loss_draws_is_secret_and_what_follows_does_not_tell_the_size_of_a_batch() -> None:
    private: list[list[float]] = [[], []]
    public: list[list[float]] = [[], []]
    for number, records in enumerate((100, 101)):
        trainer_of(records, private[number], lambda _, n=number: public[n].append(float(torch.rand(())))).run()  # type: ignore[misc]
    assert public[0] == public[1]
    assert not set(private[0]) & set(private[1])
    assert not set(private[0]) & set(public[0])


def test_a_training_that_failed_half_way_does_not_go_on() -> None:
    def fails(step: int) -> None:
        if step == 1:
            raise OSError("the generator is gone")

    trainer = trainer_of(10, [], fails)
    with pytest.raises(OSError, match="generator"):
        trainer.run()
    with pytest.raises(RuntimeError, match="failed in the middle of a block"):
        trainer.run()


def test_two_trainings_of_one_purpose_are_one(tmp_path: Path) -> None:
    checkpoint = Checkpoint.begin(tmp_path / "a.sundog", {})
    first = trainer_of(10, [], lambda _: None)
    first.checkpoint = checkpoint
    first.run()
    second = trainer_of(10, [], lambda _: None)
    second.checkpoint, second.ledger = checkpoint, first.ledger
    second.run()
    assert torch.equal(*(t.step.groups.parameters[0] for t in (first, second)))
    assert sum(charge.count for charge in first.ledger.charges) == 4
    checkpoint.release()
