"""The training loop.

    load the checkpoint, if there is one
    check that the ledger covers the rest of the plan                    refused before the first step
    while steps are left:
        ledger.spend(charge of a block of steps)                         on disk before the first of them
        for each step of the block:
            batch = draw_poisson_batch(records, sample_rate)             batches/poisson.py, in the background
            step(batch)                                                  step.py: clip, sum, add noise, descend
            after(step number)                                           public work, such as the generator's step
            average.update()                                             weight_average.py
        save the checkpoint                                              atomically

A training can be interrupted at any time and resumed. A block is charged before its first step and saved after its
last, so every saved result was paid for. If the process dies in between, the result of the block is lost without having
been seen, and its steps are repeated for the same charge (privacy/measure_once.py). After any number of crashes, the
charges and the number of steps are those of an uninterrupted training.
"""

from __future__ import annotations

import hashlib
import secrets
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from sundog.errors import SundogError
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.ledger import Ledger
from sundog.privacy.measure_once import count_paid_steps, is_part_of
from sundog.privacy.noise import NoiseSource
from sundog.progress import Progress, silent
from sundog.training.batches.examples import Batch, Examples, Padded, Positions
from sundog.training.batches.poisson import Index, draw_poisson_batch
from sundog.training.batches.prefetch import Prefetch
from sundog.training.pacing import DeferredInterrupt, Pace
from sundog.training.progress_messages import ProgressMessages
from sundog.training.schedules import Schedule
from sundog.training.speed.compile import is_worth_compiling
from sundog.training.speed.cuda_graphs import GraphedStep
from sundog.training.speed.threads import ThreadChoice, count_allowed_threads, use_one_thread
from sundog.training.step import PrivateStep, can_compile
from sundog.training.training_plan import TrainingPlan
from sundog.training.training_state import TrainingState, load_state, make_damage_error, save_state
from sundog.training.weight_average import MovingAverage

_COMPILE_SECONDS = 30.0  # CPU time to compile a step
_SAVED = 0.25  # the share of the private part of a step that compiling saves
_MEASURED_STEPS = 10  # steps that are timed before it is decided whether to compile


class Stateful(Protocol):
    """A module, an optimiser, or anything else with a state dictionary."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state to save."""

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any:
        """Restore a saved state."""


class Trainer:
    """Runs the steps of a plan, and charges a ledger for them.

    Args:
        step: the step; its noise is drawn from the noise source of the ledger.
        examples: the private examples; a `GraphedStep` holds them already, and receives their positions.
        plan: the number of steps, the sampling rate and the noise: what is charged.
        ledger: is charged. A resumed training needs the same run of the same ledger.
        seed: of public work after a step, never of the noise or of what the loss draws; random by default.
        progress: the callback for progress messages.
        checkpoint: where the state is saved; without one, an interrupted training is lost.
        schedule: the learning rate in each step, as a factor of the initial one.
        average: the decay of a moving average of the weights.
        after: public work after each step, such as a generator's; called with the step number.
        keep: further objects with a state, by name, such as the generator and its optimiser.
        largest_piece: the maximum number of examples in memory at once.
        show_loss: show the loss of private examples in progress messages. NOT PRIVATE: for the curator only.
        block: the number of steps that are charged at once; by default, as many as take about a second.
    """

    def __init__(
        self,
        step: PrivateStep | GraphedStep,
        examples: Examples,
        plan: TrainingPlan,
        ledger: Ledger,
        *,
        seed: int | None = None,
        progress: Progress = silent,
        checkpoint: Checkpoint | None = None,
        schedule: Schedule | None = None,
        average: float | None = None,
        after: Callable[[int], None] | None = None,
        keep: Mapping[str, Stateful] | None = None,
        largest_piece: int = 4096,
        show_loss: bool = False,
        block: int | None = None,
    ) -> None:
        self._graphed = step if isinstance(step, GraphedStep) else None
        self.step = step.step if isinstance(step, GraphedStep) else step
        self.examples, self.plan, self.ledger = examples, plan, ledger
        _refuse_another_step(self.step, plan)
        if self.step.speed.compiled is None and not is_worth_compiling(self.step.module):
            self.step.speed = replace(self.step.speed, compiled=False)
        self.seed = secrets.randbits(62) if seed is None else seed
        self.progress, self.checkpoint, self.schedule = progress, checkpoint, schedule
        self.average = None if average is None else MovingAverage(self.step.groups.parameters, average)
        self.after, self.keep = after, dict(keep or {})
        self.largest_piece, self.show_loss = largest_piece, show_loss
        self.done = 0
        self._paid = 0
        self._is_broken = False  # true in the middle of a block
        self._pace = Pace(block)
        self._rates = [float(group["lr"]) for group in self.step.optimizer.param_groups]

    def run(self) -> None:
        """Train to the end of the plan, from the last checkpoint on."""
        if self._is_broken:
            raise RuntimeError(
                "a step failed in the middle of a block: the weights do not match the charges; create a new trainer"
            )
        self._resume()
        if self._paid < self.plan.steps:  # refuse before the first step
            self.ledger.check(self.plan.make_charge(self.plan.steps - self._paid))
        if self.done == self.plan.steps:
            return
        threads = self._choose_threads()
        with ExitStack() as stack:
            stack.enter_context(torch.random.fork_rng(self._list_gpus()))
            stack.enter_context(use_one_thread())
            interrupt = stack.enter_context(DeferredInterrupt())
            batches = stack.enter_context(self._prefetch(range(self.done, self.plan.steps)))
            messages = self._start_messages()
            while self.done < self.plan.steps:
                with interrupt.suspend():
                    self._consider_compiling(batches)
                self._run_block(batches, messages, interrupt, threads)
                if interrupt.requested:
                    raise KeyboardInterrupt
            messages.send(self.done)

    # --- charging and saving ---

    def _run_block(
        self, batches: Prefetch, messages: ProgressMessages, interrupt: DeferredInterrupt, threads: ThreadChoice
    ) -> None:
        started = time.perf_counter()
        steps = threads.limit(self._pace.steps)
        if self._paid == self.done:
            block = min(steps, self.plan.steps - self.done)
            self.ledger.spend(self.plan.make_charge(block))
            self._paid += block
        block = min(steps, self._paid - self.done)  # steps of an earlier charge are not charged again
        messages.update_spent(self._paid)
        paid, used = time.perf_counter(), time.thread_time()
        self._is_broken = True
        torch.set_num_threads(threads.count)
        for _ in range(block):
            self._take_step(batches.take_pieces(), messages, interrupt)
        self._finish_work()
        self._is_broken = False
        worked, used = time.perf_counter(), time.thread_time() - used
        self._save()
        overhead = (paid - started) + (time.perf_counter() - worked)
        if not threads.is_trial:
            self._pace.learn(steps=block, working=worked - paid, overhead=overhead)
        threads.learn(steps=block, seconds=worked - paid, used=used)

    def _choose_threads(self) -> ThreadChoice:
        """Choose one thread if blocks have a fixed length or a GPU does the work; otherwise, try more."""
        return ThreadChoice(1 if self._pace.fixed is not None or self._list_gpus() else count_allowed_threads())

    def _consider_compiling(self, batches: Prefetch) -> None:
        """Compile the step between two blocks, once the remaining steps are known to take long enough.

        It compares CPU times: other processes slow down steps and compiler alike.
        """
        step, is_asked_for = self.step, self.step.speed.compiled
        if self._graphed is not None or is_asked_for is False or step.is_compiled:
            return
        if is_asked_for is None:
            if step.taken < _MEASURED_STEPS or not can_compile(batches.peek()):
                return
            saved = (self.plan.steps - self.done) * _SAVED * step.seconds / step.taken
            step.speed = replace(step.speed, compiled=saved > _COMPILE_SECONDS)
        if step.speed.compiled and can_compile(batches.peek()):
            self.progress("compiling", 0.0)
            try:
                step.compile(batches.peek())  # the result of this piece is discarded
            except SundogError as error:
                if is_asked_for:
                    raise
                step.speed = replace(step.speed, compiled=False)
                warnings.warn(f"training continues without compiling: {error}", stacklevel=2)

    def _resume(self) -> None:
        """Load the checkpoint, and count the steps that are charged: those in it, and a block that was lost."""
        if self.checkpoint is None:
            return
        state = load_state(self.checkpoint, self.plan.purpose)
        if state is not None:
            self._restore(self.checkpoint, state)
        self._paid = count_paid_steps(self.plan.make_charge(self.plan.steps), self.done, self.ledger, self.checkpoint)

    def _save(self) -> None:
        if self.checkpoint is not None:
            state = TrainingState(self.plan.to_dict(), self.done, self.seed, self._collect_parts())
            save_state(self.checkpoint, self.plan.purpose, state)

    def _collect_parts(self) -> dict[str, Any]:
        return {
            "module": self.step.module.state_dict(),
            "optimizer": self.step.optimizer.state_dict(),
            "bounds": self.step.policy.bounds,  # the whole state of a policy
            "average": None if self.average is None else self.average.values,
            "kept": {name: part.state_dict() for name, part in self.keep.items()},
        }

    def _restore(self, checkpoint: Checkpoint, state: TrainingState) -> None:
        if state.plan != self.plan.to_dict() or state.done > self.plan.steps:
            raise SundogError(
                f"{checkpoint.folder}: the interrupted fit had another plan; use the same settings and version, or "
                "delete the folder (what it spent stays spent)"
            )
        try:
            self.step.module.load_state_dict(state.parts["module"])
            self.step.optimizer.load_state_dict(state.parts["optimizer"])
            self.step.policy.bounds.copy_(state.parts["bounds"])
            if self.average is not None:
                self.average.restore(state.parts["average"])
            for name, part in self.keep.items():
                part.load_state_dict(state.parts["kept"][name])
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError, IndexError):
            raise make_damage_error(checkpoint, self.plan.purpose) from None
        self.done, self.seed = state.done, state.seed

    # --- one step ---

    def _take_step(self, pieces: Iterator[Batch], messages: ProgressMessages, interrupt: DeferredInterrupt) -> None:
        number = self.done
        # Which random numbers an example gets depends on the rest of the batch: they must be as secret as the noise.
        noise = self._derive_noise("loss", number)
        for generator in self._list_generators():
            noise.seed_(generator)
        if self.schedule is not None:
            self._set_rates(self.schedule(number))
        self.step.noise = self._derive_noise("gradient", number)
        seen: list[Batch] = []
        self._call(_remember_last(pieces, seen) if self.show_loss else pieces)
        self._fix_public_randomness(number)  # the generator's position would reveal the batch size
        if self.after is not None:
            self.after(number)
        self.done += 1
        if self.average is not None:
            self.average.update(self.done)
        if messages.is_due():
            note = "; stopping" if interrupt.requested else ""
            messages.send(self.done, note + (self._format_loss(seen[-1]) if self.show_loss else ""))

    def _call(self, pieces: Iterator[Batch]) -> None:
        if self._graphed is None:
            self.step(pieces)
        else:
            for positions in pieces:  # all of them at once
                self._graphed(positions)

    def _prefetch(self, steps: range) -> Prefetch:
        if self._graphed is None:
            return Prefetch(self.examples, self._draw, steps, largest=self.largest_piece)
        positions = Positions(len(self.examples))
        return Prefetch(positions, self._draw, steps, largest=max(1, len(positions)))

    def _draw(self, number: int) -> Index:
        return draw_poisson_batch(len(self.examples), self.plan.sample_rate, self._derive_noise("batch", number))

    def _derive_noise(self, name: str, number: int) -> NoiseSource:
        """Return a stream of its own for each training, use and step, so that test noise does not repeat."""
        return self.ledger.noise.derive_stream(self.plan.purpose, name, number)

    def _fix_public_randomness(self, number: int) -> None:
        """Seed torch for the public work of this step, so that checkpoints need no generator state."""
        digest = hashlib.sha256(f"{self.seed}/{number}".encode()).digest()
        for generator in self._list_generators():  # a hundred times faster than torch.manual_seed
            generator.manual_seed(int.from_bytes(digest[:7], "little"))

    def _set_rates(self, factor: float) -> None:
        for group, rate in zip(self.step.optimizer.param_groups, self._rates, strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate * factor)
            else:
                group["lr"] = rate * factor

    def _format_loss(self, piece: Batch) -> str:
        """Format the loss of private examples; only called for `show_loss`."""
        batch = piece if self._graphed is None else self.examples.take(piece[: self.largest_piece])
        if isinstance(batch, Padded):
            loss = self.step.private_loss(batch.examples).detach()[batch.present]
        else:
            loss = self.step.private_loss(batch).detach()
        return f", loss {float(loss.mean()):.4g} (NOT PRIVATE)" if len(loss) else ""

    def _list_gpus(self) -> list[int]:
        device = self.step.groups.parameters[0].device
        return [device.index or 0] if device.type == "cuda" else []

    def _list_generators(self) -> list[torch.Generator]:
        """Return the torch generators that losses draw from."""
        return [torch.default_generator, *(torch.cuda.default_generators[gpu] for gpu in self._list_gpus())]

    def _finish_work(self) -> None:
        for gpu in self._list_gpus():
            torch.cuda.synchronize(gpu)

    def _start_messages(self) -> ProgressMessages:
        whole = self.plan.make_charge(self.plan.steps)
        before = [charge for charge in self.ledger.charges if not is_part_of(charge, whole)]
        delta = self.ledger.budget.delta
        return ProgressMessages(self.progress, self.plan, before=before, delta=delta, done=self.done)


def _refuse_another_step(step: PrivateStep, plan: TrainingPlan) -> None:
    """Raise if the step does not add the noise of the plan, which is what is charged."""
    if step.noise_multiplier != plan.noise_multiplier:
        raise ValueError(
            f"the step has noise multiplier {step.noise_multiplier}, but the plan charges {plan.noise_multiplier}"
        )
    batch = step.expected_batch
    if not isinstance(batch, Tensor) and batch != plan.expected_batch:
        raise ValueError(f"the step divides by {batch}, but the plan expects {plan.expected_batch} records in a batch")


def _remember_last(pieces: Iterator[Batch], seen: list[Batch]) -> Iterator[Batch]:
    """Yield the pieces, and keep the last one in `seen`."""
    for piece in pieces:
        seen[:] = [piece]
        yield piece
