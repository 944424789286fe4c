"""A small training for the tests: everything that has a state, and some of everything that is random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from tests.training.in_memory import InMemory
from torch import Tensor, nn

from sundog.privacy.ledger import Ledger
from sundog.training.batches.examples import Examples
from sundog.training.clipping import DPNorm
from sundog.training.groups import Groups, group_all, list_trainable
from sundog.training.schedules import make_cosine_schedule
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer
from sundog.training.training_plan import TrainingPlan

ROWS = 400
PLAN = TrainingPlan(sample_rate=0.05, steps=12, noise_multiplier=2.0, expected_batch=20.0)
EPSILON, DELTA = 3.0, 1e-5


@dataclass
class Toy:
    """A network with dropout, a generator of public noise beside it, and how to train both."""

    module: nn.Module
    generator: nn.Module
    trainer: Trainer


def by_layer(module: nn.Module) -> Groups:
    """A group for each layer."""
    owners = {id(p): name for name, layer in module.named_modules() for p in layer.parameters(recurse=False)}
    parameters = list_trainable(module)
    names = [owners[id(p)] for p in parameters]
    return Groups(parameters, [list(dict.fromkeys(names)).index(name) for name in names])


def draw_examples(device: str = "cpu") -> InMemory:
    x = torch.randn(ROWS, 6, generator=torch.Generator().manual_seed(1)).to(device)
    return InMemory({"x": x, "y": x[:, 0] - x[:, 1]})


def make_toy(ledger: Ledger, *, plan: TrainingPlan = PLAN, data: Examples | None = None, **options: Any) -> Toy:
    torch.set_num_threads(1)
    module = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 1))
    generator = nn.Linear(2, 2)
    for number, parameter in enumerate([*module.parameters(), *generator.parameters()]):
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(number))
    device = options.pop("device", "cpu")
    module.to(device)
    generator.to(device)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    step = PrivateStep(
        module=module,
        private_loss=lambda batch: (module(batch["x"])[:, 0] - batch["y"]).square(),
        groups=group_all(module),
        policy=DPNorm(noise_multiplier=plan.noise_multiplier, device=device),
        optimizer=optimizer,
        noise=ledger.noise,
        noise_multiplier=plan.noise_multiplier,
        expected_batch=plan.expected_batch,
    )
    public = torch.optim.SGD(generator.parameters(), lr=0.1, momentum=0.9)

    def generate(_: int) -> None:
        public.zero_grad()
        loss: Tensor = generator(torch.randn(5, 2, device=device)).square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        public.step()

    also: Callable[[int], None] | None = options.pop("after", None)

    def after(number: int) -> None:
        generate(number)
        if also is not None:
            also(number)

    options = {
        "seed": 5,
        "schedule": make_cosine_schedule(plan.steps, last=0.1),
        "average": 0.9,
        "keep": {"generator": generator, "public": public},
        "largest_piece": 8,
        **options,
    }
    trainer = Trainer(step, data if data is not None else draw_examples(device), plan, ledger, after=after, **options)
    return Toy(module, generator, trainer)


def collect_tensors(trained: Toy) -> list[Any]:
    """All that a training has in its end, bit for bit."""
    trainer = trained.trainer
    tensors: list[Tensor] = [*trained.module.state_dict().values(), *trained.generator.state_dict().values()]
    for optimizer in (trainer.step.optimizer, trainer.keep["public"]):
        for state in optimizer.state_dict()["state"].values():
            tensors += [torch.as_tensor(value) for value in state.values()]
    assert trainer.average is not None
    tensors += [*trainer.average.values, trainer.step.policy.bounds]
    return [
        trainer.done,
        [group["lr"] for group in trainer.step.optimizer.param_groups],
        *(t.tolist() for t in tensors),
    ]


def make_ledger(epsilon: float = EPSILON, **options: Any) -> Ledger:
    return Ledger(epsilon=epsilon, delta=DELTA, **options)
