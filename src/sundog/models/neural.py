"""What neural models have in common: how one of them is trained, or k of them at once on disjoint parts of the records.

A record is in one part only, and which one follows from the record and from what is public. So under adding or removing
a record one model changes, whichever it is, and k trainings cost what one does: they share one plan and one charge.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from sundog.models.base import Parts, Workshop
from sundog.privacy.ledger import Ledger
from sundog.training.clipping import Fixed
from sundog.training.data import Examples
from sundog.training.graphs import GraphedStep, capacity_for
from sundog.training.groups import flat
from sundog.training.plan import TrainingPlan
from sundog.training.schedules import cosine
from sundog.training.shared import StackedExamples
from sundog.training.stacked import stack, unstack
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer

_MANY = 20_000  # steps on a GPU: fewer are taken in the time that a compiler would need
_FEWEST = 1.0  # records that a model is thought to have in a step, if there are hardly any


class Trainee(nn.Module):
    """A network that is trained on private records.

    All of its parameters are in linear layers, and what it does works on the last dimensions, so that it can be
    stacked.
    """

    has_public_loss = False

    def loss(self, batch: Any) -> Tensor:
        """The loss of each record by itself."""
        raise NotImplementedError

    def public_loss(self) -> Tensor:
        """The loss in which no record is; of a stack, the sum over its models."""
        raise NotImplementedError

    def proceed(self, done: float) -> None:
        """Public work before the first step and after each, told which part of all steps is done.

        What it changes are buffers, in place, so that an interrupted training finds them again.
        """


N = TypeVar("N", bound=Trainee)


def default_batch(records: int) -> int:
    """A thirty-second of the records, so that 30 epochs have about a thousand steps; 64 at least and 8,192 at most.

    On Adult fewer records in more steps, or more of them at the same number of steps, were worse or no better. Of a
    million records there is so little noise that more steps are better.

    >>> default_batch(1000), default_batch(32_000), default_batch(1_000_000)
    (64, 1000, 8192)
    """
    return min(8192, max(64, records // 32))


def initialised(new: Callable[[], N], count: int, seed: int | None) -> list[N]:
    """New networks, with the weights that the seed gives them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(secrets.randbits(62) if seed is None else seed)
        return [new() for _ in range(count)]


def train(
    networks: Sequence[N],
    examples: Examples,
    parts: Parts,
    training: TrainingPlan,
    ledger: Ledger,
    workshop: Workshop,
    *,
    clip: float,
    learning_rate: float,
) -> list[N]:
    """Trains each network on its part, all at once; their weights are averages over the last steps.

    Args:
        networks: one for each part, alike but for their weights.
        examples: all the records.
        parts: which network learns from each.
        training: steps, sampling and noise of each of them.
        ledger: is charged for one training.
        workshop: where, and who watches.
        clip: the largest norm of a record's gradient.
        learning_rate: of Adam, at its highest.
    """
    whole: Any = (networks[0] if parts.owner is None else stack(networks)).to(workshop.device)
    step = _step(whole, parts, training, ledger, clip=clip, learning_rate=learning_rate)
    whole.proceed(0.0)
    trainer = Trainer(
        _graphed(step, examples, parts, fused=training.steps >= _MANY),
        examples if parts.owner is None else StackedExamples(examples, parts.owner, len(parts.sizes)),
        training,
        ledger,
        seed=workshop.seed,
        progress=workshop.progress,
        checkpoint=workshop.checkpoint,
        schedule=cosine(training.steps, last=0.1),
        average=_decay(training.steps),
        after=lambda number: whole.proceed((number + 1) / training.steps),
        show_loss=workshop.show_loss,
    )
    trainer.run()
    if trainer.average is not None:
        trainer.average.apply()
    whole.cpu()
    return [networks[0]] if parts.owner is None else unstack(whole, networks[0])  # type: ignore[return-value]


def _step(
    whole: Trainee, parts: Parts, training: TrainingPlan, ledger: Ledger, *, clip: float, learning_rate: float
) -> PrivateStep:
    device = next(whole.parameters()).device
    kind: dict[str, Any] = {"capturable": True, "foreach": True} if device.type == "cuda" else {"fused": True}
    batches = [max(_FEWEST, training.sample_rate * size) for size in parts.sizes]
    return PrivateStep(
        module=whole,
        private_loss=whole.loss,
        groups=flat(whole),
        policy=Fixed(torch.full((1,), clip, device=device)),
        optimizer=torch.optim.Adam(whole.parameters(), lr=learning_rate, **kind),
        noise=ledger.noise,
        noise_multiplier=training.noise_multiplier,
        expected_batch=training.expected_batch if parts.owner is None else torch.tensor(batches, device=device),
        public_loss=whole.public_loss if whole.has_public_loss else None,
    )


def _graphed(step: PrivateStep, examples: Examples, parts: Parts, *, fused: bool) -> PrivateStep | GraphedStep:
    """On a GPU a step is one graph over data that lies there."""
    if examples.device.type != "cuda" or not len(examples):
        return step
    largest = step.expected_batch
    capacity = capacity_for(float(largest.max()) if isinstance(largest, Tensor) else largest)
    data = examples.take(np.arange(len(examples)))
    return GraphedStep(step, data, capacity=capacity, owner=parts.owner, fused=fused)


def _decay(steps: int) -> float:
    """Of the moving average: over the last tenth of the steps, or a thousand."""
    return min(0.999, 1 - 10 / (steps + 10))
