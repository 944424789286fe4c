"""The trainer: what it pays, when, and that it trains."""

from __future__ import annotations

import dataclasses
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.training.in_memory import InMemory
from tests.training.toy import DELTA, EPSILON, PLAN, ROWS, Toy, collect_tensors, draw_examples, make_ledger, make_toy
from torch import nn

from sundog.errors import BudgetExceededError
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, Pure, SampledGaussian
from sundog.privacy.ledger import Budget, Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource
from sundog.training.batches.examples import Positions
from sundog.training.batches.poisson import Index
from sundog.training.clipping import Fixed
from sundog.training.groups import group_all
from sundog.training.pacing import BLOCK_SECONDS, Pace
from sundog.training.schedules import make_cosine_schedule
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer
from sundog.training.training_plan import TrainingPlan, plan_training
from sundog.training.weight_average import MovingAverage

# --- the plan ---


def test_a_plan_spends_the_budget() -> None:
    already = [Charge(event=Pure(epsilon=0.2), purpose="before")]
    plan = plan_training(Budget(1.0, 1e-5), already=already, records=1000, batch=100, epochs=3)
    assert (plan.steps, plan.sample_rate, plan.expected_batch) == (30, 0.1, 100.0)
    assert 0.998 <= compute_epsilon([*already, plan.make_charge(plan.steps)], delta=1e-5) <= 1.0
    event = SampledGaussian(noise_multiplier=plan.noise_multiplier, sample_rate=0.1)
    assert plan.make_charge(7) == Charge(event=event, count=7, purpose="training")


@pytest.mark.parametrize("records", [-5, 0, 1, 30])
def test_a_batch_is_no_larger_than_the_records_are_many(records: int) -> None:
    plan = plan_training(Budget(1.0, 1e-5), records=records, batch=100, epochs=2.5)
    assert plan.sample_rate == 1.0
    assert plan.expected_batch == max(1, records)
    assert plan.steps == 3


@pytest.mark.parametrize(
    "change",
    [
        {"sample_rate": 0.0},
        {"sample_rate": 1.01},
        {"steps": 0},
        {"noise_multiplier": 0.0},
        {"noise_multiplier": math.inf},
        {"expected_batch": 0.0},
        {"expected_batch": math.nan},
    ],
    ids=str,
)
def test_an_invalid_plan_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(change)) if "steps" not in change else "at least one step"):
        dataclasses.replace(PLAN, **change)


# --- paying ---


@pytest.mark.parametrize("block", [1, 5, 12, 100])
def test_it_pays_for_its_steps_and_no_others(block: int) -> None:
    ledger = make_ledger()
    trained = make_toy(ledger, block=block)
    trained.trainer.run()
    assert trained.trainer.done == PLAN.steps
    assert merge_blocks(ledger.charges) == [PLAN.make_charge(PLAN.steps)]
    assert len(ledger.entries) == math.ceil(PLAN.steps / block)
    for state in trained.trainer.step.optimizer.state.values():
        assert int(state["step"]) == PLAN.steps


def test_every_step_was_paid_for_before_it_was_taken() -> None:
    ledger = make_ledger()
    seen = []

    def paid(number: int) -> None:
        seen.append(sum(charge.count for charge in ledger.charges))
        assert number + 1 <= seen[-1]

    make_toy(ledger, after=paid, block=5).trainer.run()
    assert seen == [5] * 5 + [10] * 5 + [12] * 2


def test_a_training_that_the_ledger_does_not_cover_takes_no_step() -> None:
    ledger = make_ledger(epsilon=0.3)
    taken: list[int] = []
    trained = make_toy(ledger, after=taken.append, block=1)
    before = collect_tensors(trained)
    with pytest.raises(BudgetExceededError, match="refused: 'training' would bring"):
        trained.trainer.run()
    assert ledger.charges == ()
    assert taken == []
    assert collect_tensors(trained) == before


def test_a_second_training_without_a_checkpoint_is_charged_like_the_first() -> None:
    ledger = make_ledger(epsilon=6.0)
    make_toy(ledger).trainer.run()
    make_toy(ledger).trainer.run()
    assert merge_blocks(ledger.charges) == [PLAN.make_charge(2 * PLAN.steps)]


def test_what_it_pays_for_is_what_the_step_does() -> None:
    for change in ({"noise_multiplier": 2.1}, {"expected_batch": 21.0}):
        trained = make_toy(make_ledger())
        for name, value in change.items():
            setattr(trained.trainer.step, name, value)
        with pytest.raises(ValueError, match="but the plan"):
            Trainer(trained.trainer.step, draw_examples(), PLAN, make_ledger())


def test_its_noise_is_that_of_the_ledger() -> None:
    ledger = make_ledger()
    trained = make_toy(ledger)
    trained.trainer.step.noise = NoiseSource.seeded(1)  # whoever made the step with another source is overruled
    trained.trainer.run()
    assert trained.trainer.step.noise is ledger.noise


def test_batches_are_drawn_anew_in_every_step_and_from_all_records() -> None:
    drawn = []

    class Noting(InMemory):
        def take(self, index: Index) -> Any:
            drawn.append(index)
            return super().take(index)

    data = Noting(draw_examples()._data)
    make_toy(make_ledger(), data=data, largest_piece=1000).trainer.run()
    assert len(drawn) == PLAN.steps
    assert len({index.tobytes() for index in drawn}) == PLAN.steps
    sizes = [len(index) for index in drawn]
    assert 10 < np.mean(sizes) < 30
    assert 0 <= min(map(min, drawn)) < 60
    assert ROWS > max(map(max, drawn)) > ROWS - 60


# --- what it does ---


def test_the_same_seeds_give_the_same_training_whatever_the_blocks() -> None:
    results: list[Any] = []
    for block in (None, 1, 7):
        trained = make_toy(make_ledger(noise=NoiseSource.seeded(3)), block=block)
        torch.manual_seed(len(results))
        before = torch.get_rng_state()
        trained.trainer.run()
        results.append(collect_tensors(trained))
        assert torch.equal(torch.get_rng_state(), before)  # whoever calls keeps their own randomness
    assert results[0] == results[1] == results[2]


def test_other_seeds_give_others() -> None:
    results = []
    for noise, seed in ((3, 5), (4, 5), (3, 6), (3, None)):
        trained = make_toy(make_ledger(noise=NoiseSource.seeded(noise)), seed=seed)
        trained.trainer.run()
        results.append(repr(collect_tensors(trained)))
    assert len(set(results)) == 4


def test_it_learns() -> None:
    torch.set_num_threads(1)
    x = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([1.0, -2.0, 0.5])
    module = nn.Linear(3, 1)
    plan = plan_training(Budget(3.0, 1e-5), records=4000, batch=200, epochs=10)
    ledger = Ledger(epsilon=3.0, delta=1e-5)
    step = PrivateStep(
        module=module,
        private_loss=lambda batch: (module(batch[0])[:, 0] - batch[1]).square(),
        groups=group_all(module),
        policy=Fixed(torch.ones(1)),
        optimizer=torch.optim.SGD(module.parameters(), lr=0.5),
        noise=ledger.noise,
        noise_multiplier=plan.noise_multiplier,
        expected_batch=plan.expected_batch,
    )
    trainer = Trainer(
        step, InMemory((x, x @ target)), plan, ledger, schedule=make_cosine_schedule(plan.steps), average=0.9
    )
    trainer.run()
    assert trainer.average is not None
    trainer.average.apply()
    assert float((module.weight.detach()[0] - target).norm()) < 0.2
    assert ledger.compute_spent() <= 3.0


@pytest.mark.parametrize("largest", [1, 3, 4096])
def test_pieces_make_the_same_steps(largest: int) -> None:
    results = []
    for pieces in (4096, largest):
        trained = make_toy(make_ledger(noise=NoiseSource.seeded(3)), largest_piece=pieces)
        trained.module[2].p = 0.0  # type: ignore[index]  # which example is dropped depends on the piece
        trained.trainer.run()
        results.append(torch.cat([p.detach().flatten() for p in trained.module.parameters()]))
    torch.testing.assert_close(*results)


def test_empty_data_is_steps_of_noise() -> None:
    trained = make_toy(make_ledger(), data=InMemory({"x": torch.zeros(0, 6), "y": torch.zeros(0)}))
    trained.trainer.run()
    assert trained.trainer.done == PLAN.steps


def test_an_error_in_a_step_stops_the_thread_and_leaves_randomness_alone() -> None:
    def broken(number: int) -> None:
        if number == 3:
            raise OSError("gone")

    trained = make_toy(make_ledger(), after=broken)
    before = torch.get_rng_state()
    with pytest.raises(OSError, match="gone"):
        trained.trainer.run()
    assert torch.equal(torch.get_rng_state(), before)
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]


# --- rates and averages ---


def test_rates_follow_the_schedule() -> None:
    rates: list[float] = []
    trained: Toy | None = None

    def note(_: int) -> None:
        assert trained is not None
        rates.append(trained.trainer.step.optimizer.param_groups[0]["lr"])

    trained = make_toy(make_ledger(), after=note, schedule=make_cosine_schedule(12, last=0.1))
    trained.trainer.run()
    expected = [0.01 * (0.1 + 0.9 * (1 + math.cos(math.pi * i / 11)) / 2) for i in range(12)]
    assert rates == pytest.approx(expected)
    assert make_cosine_schedule(1)(0) == 1.0
    assert make_cosine_schedule(3)(99) == pytest.approx(0.0)


def test_a_rate_that_is_a_tensor_stays_one() -> None:
    trained = make_toy(make_ledger(), schedule=lambda step: 0.5)
    rate = torch.tensor(0.01)
    trained.trainer.step.optimizer.param_groups[0]["lr"] = rate
    trained.trainer.run()
    assert float(rate) == pytest.approx(0.005)


def test_the_average_is_the_weighted_mean_of_all_weights() -> None:
    decay, weights = 0.8, [torch.randn(3) for _ in range(7)]
    parameter = nn.Parameter(torch.full((3,), 1e6))  # where it began has no part in it
    average = MovingAverage([parameter], decay)
    for count, weight in enumerate(weights, 1):
        parameter.data.copy_(weight)
        average.update(count)
    shares = torch.tensor([decay ** (len(weights) - 1 - i) for i in range(len(weights))])
    torch.testing.assert_close(average.values[0], (shares[:, None] * torch.stack(weights)).sum(0) / shares.sum())
    average.apply()
    assert torch.equal(parameter.detach(), average.values[0])
    with pytest.raises(ValueError, match="between 0 and 1"):
        MovingAverage([parameter], 1.0)


# --- how long a block is ---


def test_blocks_take_about_a_second_and_paying_little_of_it() -> None:
    for a_step, overhead in ((1e-4, 1e-3), (0.01, 0.001), (0.01, 0.2), (3.0, 0.1)):
        pace = Pace()
        for _ in range(20):
            pace.learn(steps=pace.steps, working=pace.steps * a_step, overhead=overhead)
        seconds = pace.steps * a_step
        assert seconds >= min(BLOCK_SECONDS, a_step) * 0.9
        assert overhead <= 0.055 * (seconds + overhead)
        assert seconds <= max(BLOCK_SECONDS, 20 * overhead, a_step) * 1.1
    fixed = Pace(7)
    fixed.learn(steps=7, working=1e-3, overhead=1.0)
    assert fixed.steps == 7


# --- steps that hold the data themselves ---


def test_a_step_that_has_the_data_receives_the_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """`GraphedStep` needs a GPU; one that does the same without a graph stands in for it."""

    class Holder:
        def __init__(self, step: PrivateStep) -> None:
            self.step, self.data = step, draw_examples()

        def __call__(self, index: Index) -> None:
            self.step([self.data.take(index)])

    monkeypatch.setattr("sundog.training.trainer.GraphedStep", Holder)
    results = []
    for held in (False, True):
        ledger = make_ledger(noise=NoiseSource.seeded(3))
        trained = make_toy(ledger, largest_piece=ROWS)
        if held:
            inner = trained.trainer
            trained.trainer = Trainer(
                Holder(inner.step),  # type: ignore[arg-type]
                Positions(ROWS),
                PLAN,
                ledger,
                seed=5,
                average=0.9,
                schedule=inner.schedule,
                after=inner.after,
                keep=inner.keep,
            )
        trained.trainer.run()
        results.append(collect_tensors(trained))
    assert results[0] == results[1]


def test_a_file_ledger_and_no_checkpoint(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l", epsilon=EPSILON, delta=DELTA)
    make_toy(ledger.run(epsilon=EPSILON, delta=DELTA)).trainer.run()
    assert merge_blocks(Ledger.open(tmp_path / "l").charges) == [PLAN.make_charge(PLAN.steps)]


def test_a_plan_has_a_purpose() -> None:
    plan = TrainingPlan(0.05, 12, 2.0, 20.0, purpose="training of cluster 3")
    ledger = make_ledger()
    make_toy(ledger, plan=plan).trainer.run()
    assert [(charge.purpose, charge.count) for charge in merge_blocks(ledger.charges)] == [
        ("training of cluster 3", 12)
    ]
