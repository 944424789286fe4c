"""What neural models have in common: how one is planned and trained, or k at once on disjoint parts of the records.

A record is in one part only, and which one follows from the record and from what is public. So under adding or removing
a record one model changes, whichever it is, and k trainings cost what one does: they share one plan and one charge.
"""

from __future__ import annotations

import functools
import inspect
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sundog.data.schema import Schema
from sundog.errors import ArgumentError, SundogError
from sundog.models.neural.noisy_means import plan_means
from sundog.models.protocol import FitContext, Parts, Plan
from sundog.models.released_model import LARGEST_SIZE, is_size
from sundog.privacy.chacha import DeviceNormals
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.training.batches.examples import Examples
from sundog.training.batches.stacked_examples import StackedExamples, piece_for
from sundog.training.clipping import DPNORM, DPNorm, Fixed
from sundog.training.groups import flat
from sundog.training.schedules import cosine
from sundog.training.speed.cuda_graphs import GraphedStep, capacity_for
from sundog.training.stacked_modules import stack, unstack
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer
from sundog.training.training_plan import TrainingPlan, plan_training

LARGEST_LOGIT = 1e4  # from whatever weights a file brings
LARGEST_RATE = 10  # of learning
MOST_EPOCHS = 10**6
SMALLEST_BOUND, LARGEST_BOUND = 1e-6, 1e6  # of norms, whose squares are still numbers
MOST_SHARED = 0.75  # of the budget, by all shares together: the rest trains, and pays for a count or a schema
_SHARES = ("clustering", "means", "moments", "naming")  # settings
PIECE = 2**24  # numbers of a micro-batch of records
_ROWS, _NUMBERS = 10_000, 2**23  # at a time: records, and numbers where records or layers are wide
_MANY = 20_000  # steps on a GPU: fewer are taken in the time that a compiler would need
_FEWEST = 1.0  # records that a model is thought to have in a step, if there are hardly any


class Trainee(nn.Module):
    """A network that is trained on private records.

    All of its parameters are in linear layers, and what it does works on the last dimensions, so that it can be
    stacked.
    """

    has_public_loss = False
    clip: Tensor | float = math.inf  # the norm to which gradients of records are clipped; `train` keeps it up to date

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


class Adam(torch.optim.Adam):
    """Adam without what torch wraps around it for its compiler, which takes seconds to load and is not used."""

    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Adam.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Adam.load_state_dict)
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


def fastest(device: torch.device) -> dict[str, Any]:
    """The kind of Adam that is fastest there."""
    return {"capturable": True, "foreach": True} if device.type == "cuda" else {"fused": True}


N = TypeVar("N", bound=Trainee)
M = TypeVar("M", bound=nn.Module)


# --- settings and plans ---


def is_number(value: object) -> bool:
    """Whether it is a finite number, 0 or more."""
    return type(value) in (int, float) and 0 <= value < math.inf  # type: ignore[operator]


def is_positive(value: object) -> bool:
    """Whether it is a finite number above 0."""
    return is_number(value) and value != 0


def is_bound(value: object) -> bool:
    """Whether gradients can be clipped to it."""
    return is_number(value) and SMALLEST_BOUND <= value <= LARGEST_BOUND  # type: ignore[operator]


Setting = tuple[Callable[[Any], bool], str]  # whether a value is right, and what a right one is

SIZE: Setting = (is_size, f"a whole number from 1 to {LARGEST_SIZE}")
SHARE: Setting = (lambda value: is_positive(value) and value < 1, "a share of the budget, between 0 and 1")
RATE: Setting = (
    lambda value: is_positive(value) and value <= LARGEST_RATE,
    f"a number above 0 and at most {LARGEST_RATE}",
)
SETTINGS: Mapping[str, Setting] = {
    "hidden": SIZE,
    "batch": (lambda value: value is None or (type(value) is int and value > 0), "a whole number above 0"),
    "epochs": (
        lambda value: is_positive(value) and value <= MOST_EPOCHS,
        f"a number above 0 and at most {MOST_EPOCHS}",
    ),
    "clip": (
        lambda value: value == DPNORM or is_bound(value),
        f"a number from {SMALLEST_BOUND:g} to {LARGEST_BOUND:g}, or {DPNORM}",
    ),
    "learning_rate": RATE,
    "means": SHARE,
}


def refuse_people(model: str, schema: Schema) -> None:
    """Refuses people with several records."""
    if schema.unit is not None and schema.cap > 1:
        raise SundogError(
            f"model {model!r} protects single records, and people have up to {schema.cap} here; set `cap: 1` in the "
            "schema, or use the model gan or independent"
        )


def check_settings(model: str, settings: Mapping[str, Any], own: Mapping[str, Setting]) -> None:
    """Refuses settings that are none, the model's own among them."""
    for name, (is_right, what) in {**SETTINGS, **own}.items():
        if name in settings and not is_right(settings[name]):
            raise ArgumentError(f"model {model!r}: setting {name!r} must be {what}, not {settings[name]!r}")
    refuse_shares(settings)


def refuse_shares(settings: Mapping[str, Any]) -> None:
    """Refuses shares of the budget that leave too little of it, before anything is spent.

    >>> refuse_shares({"means": 0.05, "moments": 0.02, "hidden": 200})
    """
    shares = {name: settings[name] for name in _SHARES if name in settings}
    if (total := math.fsum(shares.values())) > MOST_SHARED:
        asked = ", ".join(f"{name}={share:g}" for name, share in shares.items())
        raise ArgumentError(f"settings {asked}: {total:.3g} of the budget; at most {MOST_SHARED} can be shared out so")


def plan_network(
    budget: Budget,
    *,
    already: Sequence[Charge],
    records: int | None,
    settings: Mapping[str, Any],
    after: Sequence[Charge] = (),
) -> Plan:
    """Means, steps, batches and noise, from the number of records that is public.

    Args:
        budget: for all of it.
        already: what others have of the budget.
        records: about how many there are; a noisy count may be anything.
        settings: of the model.
        after: what the model is going to measure after the training.
    """
    count = max(1, records or 0)
    means = plan_means(budget, share=settings["means"])
    training = plan_training(
        budget,
        already=[*already, *means.charges(), *after],
        records=count,
        batch=settings["batch"] or default_batch(count),
        epochs=settings["epochs"],
    )
    charges = (*means.charges(), training.charge(training.steps), *after)
    return Plan(charges, {**settings, "records": count, "means": means.to_dict(), "training": training.to_dict()})


def rows_at_a_time(*widths: int) -> int:
    """How many records to work on at a time, where a record needs so many numbers in this and that layer.

    >>> rows_at_a_time(10, 200), rows_at_a_time(10, 2**16)
    (10000, 128)
    """
    return max(1, min(_ROWS, _NUMBERS // max(widths)))


# --- training ---


def default_batch(records: int) -> int:
    """A thirty-second of the records, so that 30 epochs have about a thousand steps; 64 at least and 8,192 at most.

    On Adult fewer records in more steps, or more of them at the same number of steps, were worse or no better. Of a
    million records there is so little noise that more steps are better.

    >>> default_batch(1000), default_batch(32_000), default_batch(1_000_000)
    (64, 1000, 8192)
    """
    return min(8192, max(64, records // 32))


@functools.cache
def warm_up(device: str) -> Future[None]:
    """Loads what a training needs in the background, while records are still looked at: on a GPU that takes seconds.

    >>> warm_up("cpu").result()
    """
    background = ThreadPoolExecutor(1)
    ready = background.submit(_load, device)
    background.shutdown(wait=False)
    return ready


def _load(device: str) -> None:
    if torch.device(device).type == "cpu":
        return
    some = DeviceNormals(device, bytes(32)).fill(torch.empty(1010, device=device))  # a key of zeros: this is no noise
    cube = some[:1000].view(10, 10, 10)
    torch.bmm(cube, cube)


def initialised(new: Callable[[], M], count: int, seed: int | None) -> list[M]:
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
    context: FitContext,
    *,
    width: int = 1,
    clip: float | str,
    learning_rate: float,
) -> list[N]:
    """Trains each network on its part, all at once; their weights are averages over the last steps.

    Args:
        networks: one for each part, alike but for their weights.
        examples: all the records.
        parts: which network learns from each.
        training: steps, sampling and noise of each of them.
        ledger: is charged for one training.
        context: where, and who watches.
        width: how many numbers a record has, unfolded: wide ones are taken a few at a time.
        clip: the largest norm of a record's gradient, or `DPNORM`.
        learning_rate: of Adam, at its highest.
    """
    wait([warm_up(context.device)])  # what went wrong there goes wrong here again, where it is told
    whole: Any = (networks[0] if parts.owner is None else stack(networks)).to(context.device)
    step = _step(whole, parts, training, ledger, clip=clip, learning_rate=learning_rate)
    whole.proceed(0.0)
    trainer = Trainer(
        graphed(step, examples, parts.owner, fused=training.steps >= _MANY),
        examples if parts.owner is None else StackedExamples(examples, parts.owner, len(parts.sizes)),
        training,
        ledger,
        seed=context.seed,
        progress=context.progress,
        checkpoint=context.checkpoint,
        schedule=cosine(training.steps, last=0.1),
        average=_decay(training.steps),
        after=lambda number: whole.proceed((number + 1) / training.steps),
        largest_piece=min(piece_for(parts.sizes), max(1, PIECE // width)),
        show_loss=context.show_loss,
    )
    trainer.run()
    if trainer.average is not None:
        trainer.average.apply()
    whole.cpu()
    return [networks[0]] if parts.owner is None else unstack(whole, networks[0])  # type: ignore[return-value]


def _step(
    whole: Trainee, parts: Parts, training: TrainingPlan, ledger: Ledger, *, clip: float | str, learning_rate: float
) -> PrivateStep:
    device = next(whole.parameters()).device
    adam = torch.optim.Adam if training.steps >= _MANY else Adam  # the first where a compiler reads it
    batches = [max(_FEWEST, training.sample_rate * size) for size in parts.sizes]
    policy = (
        DPNorm(noise_multiplier=training.noise_multiplier, device=device)
        if clip == DPNORM
        else Fixed(torch.full((1,), float(clip), device=device))
    )
    whole.clip = policy.bounds
    return PrivateStep(
        module=whole,
        private_loss=whole.loss,
        groups=flat(whole),
        policy=policy,
        optimizer=adam(whole.parameters(), lr=learning_rate, **fastest(device)),
        noise=ledger.noise,
        noise_multiplier=training.noise_multiplier,
        expected_batch=training.expected_batch if parts.owner is None else torch.tensor(batches, device=device),
        public_loss=whole.public_loss if whole.has_public_loss else None,
    )


def graphed(
    step: PrivateStep, examples: Examples, owner: npt.NDArray[np.int64] | None = None, *, fused: bool = False
) -> PrivateStep | GraphedStep:
    """On a GPU a step is one graph over data that lies there."""
    if examples.device.type != "cuda" or not len(examples):
        return step
    largest = step.expected_batch
    capacity = capacity_for(float(largest.max()) if isinstance(largest, Tensor) else largest)
    data = examples.take(np.arange(len(examples)))
    return GraphedStep(step, data, capacity=capacity, owner=owner, fused=fused)


def _decay(steps: int) -> float:
    """Of the moving average: over the last tenth of the steps, or a thousand."""
    return min(0.999, 1 - 10 / (steps + 10))
