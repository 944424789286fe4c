"""How networks are planned and trained: one, or k at once on disjoint parts of the records.

A record is in one part only, which follows from the record and from public values. So adding or removing a record
changes one model, and k trainings cost as much as one: they share one plan and one charge.
"""

from __future__ import annotations

import functools
import inspect
import math
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sundog.data.records import Records
from sundog.models.neural.features import FeatureRows, Features
from sundog.models.neural.noisy_means import Floats, MeansPlan, measure_means, plan_means
from sundog.models.protocol import FitContext, Parts
from sundog.privacy.chacha import DeviceNormals
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.training.batches.examples import Examples
from sundog.training.batches.stacked_examples import StackedExamples, choose_piece_size
from sundog.training.clipping import DPNORM, DPNorm, Fixed
from sundog.training.groups import group_all
from sundog.training.schedules import make_cosine_schedule
from sundog.training.speed.cuda_graphs import GraphedStep, choose_capacity
from sundog.training.stacked_modules import stack, unstack
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer
from sundog.training.training_plan import TrainingPlan, plan_training

LARGEST_LOGIT = 1e4  # whatever the weights in a file are
PIECE = 2**24  # numbers of a micro-batch of records
_ROWS, _NUMBERS = 10_000, 2**23  # at a time: records, and numbers where records or layers are wide
_MANY = 20_000  # steps on a GPU: fewer take less time than compiling
_FEWEST = 1.0  # records that a model has in a step, at least, when sums are divided


class TrainableNetwork(nn.Module):
    """A network that is trained on private records.

    All of its parameters are in linear layers, and its operations work on the last dimensions, so that it can be
    stacked.
    """

    has_public_loss = False
    clip: Tensor | float = math.inf  # the norm to which gradients of records are clipped; `train` keeps it up to date

    def loss(self, batch: Any) -> Tensor:
        """Return the loss of each record."""
        raise NotImplementedError

    def public_loss(self) -> Tensor:
        """Return a loss that depends on no record; of a stack, the sum over its models."""
        raise NotImplementedError

    def update_buffers(self, done: float) -> None:
        """Do public work before the first step and after each; `done` is the fraction of all steps.

        It changes buffers in place, which are saved in checkpoints.
        """


class Adam(torch.optim.Adam):
    """Adam without the wrappers for torch's compiler, which take seconds to load and are not used."""

    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Adam.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Adam.load_state_dict)
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


def choose_adam_options(device: torch.device) -> dict[str, Any]:
    """Return the options with which Adam is fastest on the device."""
    return {"capturable": True, "foreach": True} if device.type == "cuda" else {"fused": True}


N = TypeVar("N", bound=TrainableNetwork)
M = TypeVar("M", bound=nn.Module)


# --- plans ---


@dataclass(frozen=True)
class NetworkPlan:
    """The public numbers of a network that starts from noisy means and is trained once.

    Args:
        records: about how many there are.
        means: what the means cost.
        training: steps, batches and noise.
    """

    records: int
    means: MeansPlan
    training: TrainingPlan

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Those of the means, then those of the training."""
        return (*self.means.charges, self.training.make_charge(self.training.steps))


def plan_network(
    budget: Budget,
    *,
    already: Sequence[Charge],
    records: int | None,
    share: float,
    batch: int | None,
    epochs: float,
    after: Sequence[Charge] = (),
) -> NetworkPlan:
    """Plan means, steps, batches and noise from the public number of records.

    Args:
        budget: for everything together.
        already: what was charged before.
        records: about how many there are; a noisy count may be anything.
        share: of the budget, for the means.
        batch: expected records in a batch; None for a default.
        epochs: passes over the records.
        after: what the model is going to measure after the training.
    """
    count = max(1, records or 0)
    means = plan_means(budget, share=share)
    training = plan_training(
        budget,
        already=[*already, *means.charges, *after],
        records=count,
        batch=batch or choose_batch(count),
        epochs=epochs,
    )
    return NetworkPlan(count, means, training)


def choose_chunk_size(*widths: int) -> int:
    """Return the number of records in a chunk, given how many numbers a record needs in each layer.

    >>> choose_chunk_size(10, 200), choose_chunk_size(10, 2**16)
    (10000, 128)
    """
    return max(1, min(_ROWS, _NUMBERS // max(widths)))


# --- training ---


def choose_batch(records: int) -> int:
    """Return the default batch size: a 32nd of the records, 64 at least and 8,192 at most.

    On Adult, smaller batches in more steps, or larger ones in as many, were no better. With a million records there is
    so little noise that more steps are better.

    >>> choose_batch(1000), choose_batch(32_000), choose_batch(1_000_000)
    (64, 1000, 8192)
    """
    return min(8192, max(64, records // 32))


@functools.cache
def warm_up(device: str) -> Future[None]:
    """Load the kernels of a training in the background: on a GPU that takes seconds.

    >>> warm_up("cpu").result()
    """
    background = ThreadPoolExecutor(1)
    ready = background.submit(_load_kernels, device)
    background.shutdown(wait=False)
    return ready


def _load_kernels(device: str) -> None:
    if torch.device(device).type == "cpu":
        return
    # with a key of zeros: these numbers are not used as noise
    some = DeviceNormals(device, bytes(32)).fill(torch.empty(1010, device=device))
    cube = some[:1000].view(10, 10, 10)
    torch.bmm(cube, cube)


def initialise(new: Callable[[], M], count: int, seed: int | None) -> list[M]:
    """Return new networks, with weights drawn from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(secrets.randbits(62) if seed is None else seed)
        return [new() for _ in range(count)]


@dataclass(frozen=True)
class FittedNetworks(Generic[N]):
    """Networks after their training, and the means that they started from.

    Args:
        networks: one for each part.
        features: of the records.
        examples: the records.
        means: of the features in each part, noisy: (parts, width).
        scales: of the noise in the means of each part, (parts,).
    """

    networks: list[N]
    features: Features
    examples: FeatureRows
    means: Floats
    scales: Floats


def fit_networks(
    records: Records,
    parts: Parts,
    plan: NetworkPlan,
    ledger: Ledger,
    context: FitContext,
    new: Callable[[Features, Floats, float], N],
    *,
    clip: float | str,
    learning_rate: float,
) -> FittedNetworks[N]:
    """Measure the means of each part, start a network from them, and train all networks at once.

    Args:
        records: the private records.
        parts: which network learns from each.
        plan: what the means cost, and the training.
        ledger: is charged for both.
        context: the device, the seed, the checkpoint and the progress callback.
        new: returns a network, given the features, the means of its part and the scale of their noise.
        clip: the largest norm of a record's gradient, or `DPNORM`.
        learning_rate: of Adam, at its highest.
    """
    warm_up(context.device)
    features = Features(records.schema)
    examples = features.to_examples(records, context.device)
    means, scales = measure_means(features, examples, parts, plan.means, ledger, context)
    starts = iter(zip(means, scales.tolist(), strict=True))
    networks = train_networks(
        initialise(lambda: new(features, *next(starts)), len(parts.sizes), context.seed),
        examples,
        parts,
        plan.training,
        ledger,
        context,
        width=features.width,
        clip=clip,
        learning_rate=learning_rate,
    )
    return FittedNetworks(networks, features, examples, means, scales)


def train_networks(
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
    """Train each network on its part, all at once; the weights are averages over the last steps.

    Args:
        networks: one for each part, with the same layers.
        examples: all the records.
        parts: which network learns from each.
        training: steps, sampling and noise of each of them.
        ledger: is charged for one training.
        context: the device, the seed, the checkpoint and the progress callback.
        width: the numbers in an unfolded record: wide records are taken a few at a time.
        clip: the largest norm of a record's gradient, or `DPNORM`.
        learning_rate: of Adam, at its highest.
    """
    wait([warm_up(context.device)])  # what failed there fails here again, and is reported
    whole: Any = (networks[0] if parts.owner is None else stack(networks)).to(context.device)
    step = _new_step(whole, parts, training, ledger, clip=clip, learning_rate=learning_rate)
    whole.update_buffers(0.0)
    trainer = run_training(
        capture_step(step, examples, parts.owner, fused=training.steps >= _MANY),
        examples if parts.owner is None else StackedExamples(examples, parts.owner, len(parts.sizes)),
        training,
        ledger,
        context,
        schedule=make_cosine_schedule(training.steps, last=0.1),
        average=_choose_decay(training.steps),
        after=lambda number: whole.update_buffers((number + 1) / training.steps),
        largest_piece=min(choose_piece_size(parts.sizes), max(1, PIECE // width)),
    )
    if trainer.average is not None:
        trainer.average.apply()
    whole.cpu()
    return [networks[0]] if parts.owner is None else unstack(whole, networks[0])  # type: ignore[return-value]


def run_training(
    step: PrivateStep | GraphedStep,
    examples: Examples,
    training: TrainingPlan,
    ledger: Ledger,
    context: FitContext,
    **options: Any,
) -> Trainer:
    """Take all steps of a training, and return its trainer; `options` are further ones of `Trainer`."""
    if context.canaries is not None:
        step, examples = context.canaries.install(step, examples, training)
    trainer = Trainer(
        step,
        examples,
        training,
        ledger,
        seed=context.seed,
        progress=context.progress,
        checkpoint=context.checkpoint,
        show_loss=context.show_loss,
        **options,
    )
    trainer.run()
    return trainer


def _new_step(
    whole: TrainableNetwork,
    parts: Parts,
    training: TrainingPlan,
    ledger: Ledger,
    *,
    clip: float | str,
    learning_rate: float,
) -> PrivateStep:
    device = next(whole.parameters()).device
    adam = torch.optim.Adam if training.steps >= _MANY else Adam  # torch's own where the step is compiled
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
        groups=group_all(whole),
        policy=policy,
        optimizer=adam(whole.parameters(), lr=learning_rate, **choose_adam_options(device)),
        noise=ledger.noise,
        noise_multiplier=training.noise_multiplier,
        expected_batch=training.expected_batch if parts.owner is None else torch.tensor(batches, device=device),
        public_loss=whole.public_loss if whole.has_public_loss else None,
    )


def capture_step(
    step: PrivateStep, examples: Examples, owner: npt.NDArray[np.int64] | None = None, *, fused: bool = False
) -> PrivateStep | GraphedStep:
    """Return the step as one CUDA graph over data on the GPU; on a CPU, the step itself."""
    if examples.device.type != "cuda" or not len(examples):
        return step
    largest = step.expected_batch
    capacity = choose_capacity(float(largest.max()) if isinstance(largest, Tensor) else largest)
    data = examples.take(np.arange(len(examples)))
    return GraphedStep(step, data, capacity=capacity, owner=owner, fused=fused)


def _choose_decay(steps: int) -> float:
    """Return the decay of the moving average: over the last tenth of the steps, or a thousand."""
    return min(0.999, 1 - 10 / (steps + 10))
