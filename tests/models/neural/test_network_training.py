"""Several networks trained at once: each learns what it would alone, for the price of one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import stats
from tests.training.in_memory import InMemory
from torch import Tensor, nn

from sundog.models.neural import network_training
from sundog.models.neural.network_training import TrainableNetwork, initialise, train_networks
from sundog.models.protocol import FitContext, Parts
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource
from sundog.training.stacked_modules import stack
from sundog.training.training_plan import TrainingPlan

Integers = npt.NDArray[np.int64]


class Free(Ledger):
    """Takes any charge, and remembers it."""

    def __init__(self, noise: NoiseSource | None = None) -> None:
        super().__init__(epsilon=1.0, delta=1e-5, noise=noise)
        self.taken: list[Charge] = []

    def check(self, *charges: Charge) -> None:
        pass

    def spend(self, *charges: Charge) -> None:
        self.taken += charges


class Coder(TrainableNetwork):
    """Draws nothing, so that it learns the same however its batches are laid out."""

    pull: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(4, 3), nn.Linear(3, 4)
        self.register_buffer("pull", torch.zeros(1))
        self.told: list[float] = []

    def loss(self, batch: Tensor) -> Tensor:
        error: Tensor = (self.decode(torch.tanh(self.encode(batch))) - batch).square().sum(dim=-1)
        return error

    def update_buffers(self, done: float) -> None:
        self.pull.fill_(done)
        self.told.append(done)


class Pulled(Coder):
    """One whose weights are drawn to zero by something that is public."""

    has_public_loss = True

    def public_loss(self) -> Tensor:
        return sum((parameter.square().sum() for parameter in self.parameters()), torch.zeros(())) / 100


def draw_rows(count: int = 60) -> Tensor:
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(3))


def plan_of(size: float, *, steps: int = 25, noise: float = 1e-7, rate: float = 1.0) -> TrainingPlan:
    return TrainingPlan(sample_rate=rate, steps=steps, noise_multiplier=noise, expected_batch=rate * size)


def train(networks: list[Any], data: Tensor, parts: Parts, plan: TrainingPlan, **options: Any) -> list[Any]:
    ledger = options.pop("ledger", None) or Free(NoiseSource.seeded(1))
    context = FitContext(seed=1, **options)
    return train_networks(
        copy.deepcopy(networks), InMemory(data), parts, plan, ledger, context, clip=1.0, learning_rate=0.02
    )


def assert_alike(one: nn.Module, other: nn.Module) -> None:
    for name, value in one.state_dict().items():
        torch.testing.assert_close(value, other.state_dict()[name], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize("kind", [Coder, Pulled])
def test_a_stack_learns_what_its_networks_learn_in_turn(kind: type[Coder]) -> None:
    """Every record in every step, and next to no noise: nothing is left to chance."""
    data, owner = draw_rows(), np.random.default_rng(0).integers(0, 3, 60)
    sizes = tuple(np.bincount(owner).astype(float))
    networks = initialise(kind, 3, seed=7)
    together = train(networks, data, Parts(owner, sizes), plan_of(60.0))
    for number, network in enumerate(networks):
        alone = train([network], data[owner == number], Parts.whole(sizes[number]), plan_of(sizes[number]))
        assert_alike(together[number], alone[0])
        before = network.state_dict()["encode.weight"]
        assert not torch.allclose(before, together[number].state_dict()["encode.weight"], atol=0.01)


def test_a_part_with_nobody_in_it_learns_nothing_and_disturbs_nobody() -> None:
    data, networks = draw_rows(), initialise(Coder, 3, seed=7)
    owner: Integers = np.where(np.arange(60) < 40, 0, 2)
    found = train(networks, data, Parts(owner, (40.0, 0.0, 20.0)), plan_of(60.0, noise=1e-12))
    assert_alike(found[1], _with_pull(networks[1]))
    assert_alike(found[0], train([networks[0]], data[:40], Parts.whole(40.0), plan_of(40.0))[0])


def _with_pull(network: Coder) -> Coder:
    other = copy.deepcopy(network)
    other.pull.fill_(1.0)
    return other


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_anybody(count: int) -> None:
    parts = Parts(np.zeros(count, np.int64), (1.0, 1e-7, 0.0))
    plan = plan_of(1.0, noise=1.0, steps=5, rate=0.5)
    found = train(initialise(Coder, 3, seed=1), draw_rows(count), parts, plan)
    assert len(found) == 3
    for network in found:
        assert all(bool(value.isfinite().all()) for value in network.state_dict().values())


@pytest.mark.parametrize("parts", [1, 5])
def test_all_networks_together_are_one_charge(parts: int) -> None:
    ledger, plan = Free(), plan_of(60.0, steps=12, noise=1.0, rate=0.2)
    owner = np.arange(60) % parts
    train(initialise(Coder, parts, seed=1), draw_rows(), Parts(owner, (60 / parts,) * parts), plan, ledger=ledger)
    assert merge_blocks(ledger.taken) == [plan.make_charge(12)]


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 3 / 2])
def test_each_part_has_the_noise_of_the_whole_plan(factor: float) -> None:
    """One step without a record: what moves is noise over the batch of the part, and Adam is scale-free, so look there.

    The first moments of Adam are a tenth of the gradient.
    """
    networks = initialise(Wide, 3, seed=1)
    whole: Any = stack(networks)
    plan = plan_of(60.0, steps=1, noise=2.0, rate=0.5)
    step = network_training._new_step(
        whole, Parts(np.zeros(0, np.int64), (10.0, 20.0, 40.0)), plan, Free(), clip=3.0, learning_rate=0.01
    )
    step([torch.zeros(3, 0, 40)])
    for number, batch in enumerate((5.0, 10.0, 20.0)):
        moment = step.optimizer.state[whole.layer.weight]["exp_avg"][number] * 10
        p = stats.kstest(moment.flatten().numpy(), "norm", (0, factor * 2.0 * 3.0 / batch)).pvalue
        assert (p > 1e-9) == (factor == 1.0)


class Wide(TrainableNetwork):
    """Has many parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(40, 60, bias=False)

    def loss(self, batch: Tensor) -> Tensor:
        found: Tensor = self.layer(batch).sum(dim=-1)
        return found


def test_public_work_receives_the_progress_of_the_training() -> None:
    found = train(initialise(Coder, 1, seed=1), draw_rows(), Parts.whole(60.0), plan_of(60.0, steps=4))
    assert found[0].told == [0.0, 0.25, 0.5, 0.75, 1.0]
    stacked = train(initialise(Coder, 2, seed=1), draw_rows(), Parts(np.arange(60) % 2, (30.0, 30.0)), plan_of(60.0))
    assert [float(network.pull) for network in stacked] == [1.0, 1.0]


def test_a_stack_that_was_stopped_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, plan = Parts(np.arange(60) % 3, (20.0,) * 3), plan_of(60.0, steps=9, noise=1.5, rate=0.3)
    networks = initialise(Coder, 3, seed=2)
    whole = train(
        networks, draw_rows(), parts, plan, ledger=Ledger(epsilon=9.0, delta=1e-5, noise=NoiseSource.seeded(4))
    )
    monkeypatch.setattr("sundog.training.trainer.Pace", lambda block: _Pace())
    ledger = Ledger(epsilon=9.0, delta=1e-5, noise=NoiseSource.seeded(4))
    checkpoint = Checkpoint.begin(tmp_path / "o.sundog", {})
    update_buffers = Coder.update_buffers

    def stop(network: Coder, done: float) -> None:
        update_buffers(network, done)
        if done > 0.5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Coder, "update_buffers", stop)
        with pytest.raises(KeyboardInterrupt):
            train(networks, draw_rows(), parts, plan, ledger=ledger, checkpoint=checkpoint)
    again = train(networks, draw_rows(), parts, plan, ledger=ledger, checkpoint=checkpoint)
    checkpoint.remove()
    assert merge_blocks(ledger.charges) == [plan.make_charge(9)]
    for one, other in zip(whole, again, strict=True):
        for name, value in one.state_dict().items():
            assert torch.equal(value, other.state_dict()[name]), name


class _Pace:
    """Two steps at a time."""

    steps = fixed = 2

    def learn(self, **_: float) -> None:
        pass


def test_a_seed_fixes_where_networks_begin_and_no_two_begin_alike() -> None:
    first, same, other = (initialise(Coder, 2, seed) for seed in (1, 1, None))
    assert torch.equal(first[1].encode.weight, same[1].encode.weight)
    assert not torch.equal(first[0].encode.weight, first[1].encode.weight)
    assert not torch.equal(first[0].encode.weight, other[0].encode.weight)


def test_the_loss_of_a_stack_is_shown_to_those_who_insist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sundog.training.progress_messages._INTERVAL", 0.0)
    parts, plan = Parts(np.arange(60) % 3, (20.0,) * 3), plan_of(60.0, steps=3, noise=1.5)
    for insist in (False, True):
        told: list[str] = []
        train(
            initialise(Coder, 3, seed=2),
            draw_rows(),
            parts,
            plan,
            progress=lambda text, _, told=told: told.append(text),
            show_loss=insist,
        )
        assert any("loss" in text and "NOT PRIVATE" in text for text in told) == insist
