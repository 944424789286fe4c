"""A whole training: draw a batch, pay, step, keep the state, repeat. It can be stopped at any moment and resumed.

Steps are paid for in blocks. A block is charged, and the charge is on the disk, before its first step; its result is
kept, whole or not at all, after its last. If a process dies in between, the block's steps are run again for the same
charge (`privacy/measure_once.py`). So after any number of crashes the ledger and the number of steps are those of a
training that was never interrupted.
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
from sundog.training.batches.examples import Batch, Examples, Places
from sundog.training.batches.poisson import Index, poisson_batch
from sundog.training.batches.prefetch import Prefetch
from sundog.training.pacing import Pace, Patience
from sundog.training.per_example.engine import Padded
from sundog.training.schedules import Schedule
from sundog.training.speed.compile import helps_on_a_processor
from sundog.training.speed.cuda_graphs import GraphedStep
from sundog.training.speed.threads import ThreadChoice, allowed_threads, one_thread
from sundog.training.step import PrivateStep, can_compile
from sundog.training.telemetry import Telemetry
from sundog.training.training_plan import TrainingPlan
from sundog.training.training_state import TrainingState, damaged, load_state, save_state
from sundog.training.weight_average import MovingAverage

_COMPILING = 30.0  # seconds of a processor that it takes to compile a step
_SAVED = 0.25  # of the private part of a step, where it is compiled
_KNOWN = 10  # steps, after which it is known how long they take


class Stateful(Protocol):
    """A module, an optimiser, or anything else that torch would keep."""

    def state_dict(self) -> dict[str, Any]:
        """What to keep."""

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any:
        """Goes on from what was kept."""


class Trainer:
    """Runs the steps of a plan, and charges a ledger for them.

    Args:
        step: what a step does; its noise is drawn from the source of the ledger.
        examples: the private examples; a `GraphedStep` has them already, and is only told their places.
        plan: how many steps, with which sampling and noise: what is charged.
        ledger: who pays. To go on after an interruption it must be the same run of the same ledger.
        seed: of public work after a step, never of the noise nor of what the loss draws; drawn if there is none.
        progress: is told how far it is and what was spent.
        checkpoint: where the state is kept; without one an interrupted training is lost.
        schedule: the learning rate in each step, as a factor of where it began.
        average: the decay of a moving average of the weights.
        after: public work after each step, such as a generator's; it is told the number of the step.
        keep: what else has a state, by name, such as the generator and its optimiser.
        largest_piece: how many examples are in memory at once.
        show_loss: tell `progress` the loss of private examples. That is NOT PRIVATE: for the curator's eyes only.
        block: how many steps are paid for at once; about a second's by default.
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
        if self.step.speed.compiled is None and not helps_on_a_processor(self.step.module):
            self.step.speed = replace(self.step.speed, compiled=False)
        self.seed = secrets.randbits(62) if seed is None else seed
        self.progress, self.checkpoint, self.schedule = progress, checkpoint, schedule
        self.average = None if average is None else MovingAverage(self.step.groups.parameters, average)
        self.after, self.keep = after, dict(keep or {})
        self.largest_piece, self.show_loss = largest_piece, show_loss
        self.done = 0
        self._paid = 0
        self._is_broken = False  # in the middle of a block
        self._pace = Pace(block)
        self._rates = [float(group["lr"]) for group in self.step.optimizer.param_groups]

    def run(self) -> None:
        """Trains to the end of the plan, from wherever it was left."""
        if self._is_broken:
            raise RuntimeError("a step failed half-way, and the weights may hold what no charge stands for; begin anew")
        self._resume()
        if self._paid < self.plan.steps:  # a refusal comes before the first step
            self.ledger.check(self.plan.charge(self.plan.steps - self._paid))
        if self.done == self.plan.steps:
            return
        threads = self._threads()
        with ExitStack() as stack:
            stack.enter_context(torch.random.fork_rng(self._gpus()))
            stack.enter_context(one_thread())
            patience = stack.enter_context(Patience())
            batches = stack.enter_context(self._prefetch(range(self.done, self.plan.steps)))
            telemetry = self._telemetry()
            while self.done < self.plan.steps:
                with patience.paused():
                    self._compile_if_it_pays(batches)
                self._run_block(batches, telemetry, patience, threads)
                if patience.asked:
                    raise KeyboardInterrupt
            telemetry.say(self.done)

    # --- paying and keeping ---

    def _run_block(self, batches: Prefetch, telemetry: Telemetry, patience: Patience, threads: ThreadChoice) -> None:
        started = time.perf_counter()
        steps = threads.limit(self._pace.steps)
        if self._paid == self.done:
            block = min(steps, self.plan.steps - self.done)
            self.ledger.spend(self.plan.charge(block))
            self._paid += block
        block = min(steps, self._paid - self.done)  # steps of an earlier charge are not charged again
        telemetry.spent(self._paid)
        paid, used = time.perf_counter(), time.thread_time()
        self._is_broken = True
        torch.set_num_threads(threads.count)
        for _ in range(block):
            self._take_step(batches.pieces(), telemetry, patience)
        self._finish_work()
        self._is_broken = False
        worked, used = time.perf_counter(), time.thread_time() - used
        self._save()
        overhead = (paid - started) + (time.perf_counter() - worked)
        if not threads.is_trial:
            self._pace.learn(steps=block, working=worked - paid, overhead=overhead)
        threads.learn(steps=block, seconds=worked - paid, used=used)

    def _threads(self) -> ThreadChoice:
        """One thread, where blocks are to have a fixed length or a GPU does the work: there is nothing to try."""
        return ThreadChoice(1 if self._pace.fixed is not None or self._gpus() else allowed_threads())

    def _compile_if_it_pays(self, batches: Prefetch) -> None:
        """Compiles the step, between two blocks, once it is known that the rest of them takes long enough without.

        A processor's time tells, and not that of the clock: another process would slow the compiler down as well.
        """
        step, is_asked_for = self.step, self.step.speed.compiled
        if self._graphed is not None or is_asked_for is False or step.is_compiled:
            return
        if is_asked_for is None:
            if step.taken < _KNOWN or not can_compile(batches.peek()):
                return
            saved = (self.plan.steps - self.done) * _SAVED * step.seconds / step.taken
            step.speed = replace(step.speed, compiled=saved > _COMPILING)
        if step.speed.compiled and can_compile(batches.peek()):
            self.progress("compiling", 0.0)
            try:
                step.compile(batches.peek())  # what comes of it is thrown away
            except SundogError as error:
                if is_asked_for:
                    raise
                step.speed = replace(step.speed, compiled=False)
                warnings.warn(f"training goes on, slower: {error}", stacklevel=2)

    def _resume(self) -> None:
        """Loads the kept state, and counts the steps that are paid for: those in it, and a block that was lost."""
        if self.checkpoint is None:
            return
        state = load_state(self.checkpoint, self.plan.purpose)
        if state is not None:
            self._load(self.checkpoint, state)
        self._paid = count_paid_steps(self.plan.charge(self.plan.steps), self.done, self.ledger, self.checkpoint)

    def _save(self) -> None:
        if self.checkpoint is not None:
            state = TrainingState(self.plan.to_dict(), self.done, self.seed, self._parts())
            save_state(self.checkpoint, self.plan.purpose, state)

    def _parts(self) -> dict[str, Any]:
        return {
            "module": self.step.module.state_dict(),
            "optimizer": self.step.optimizer.state_dict(),
            "bounds": self.step.policy.bounds,  # all that a policy remembers
            "average": None if self.average is None else self.average.values,
            "kept": {name: part.state_dict() for name, part in self.keep.items()},
        }

    def _load(self, checkpoint: Checkpoint, state: TrainingState) -> None:
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
                self.average.load(state.parts["average"])
            for name, part in self.keep.items():
                part.load_state_dict(state.parts["kept"][name])
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError, IndexError):
            raise damaged(checkpoint, self.plan.purpose) from None
        self.done, self.seed = state.done, state.seed

    # --- one step ---

    def _take_step(self, pieces: Iterator[Batch], telemetry: Telemetry, patience: Patience) -> None:
        number = self.done
        # Which draw an example gets depends on who else is in the batch: the draws must be as secret as the noise.
        noise = self._noise("loss", number)
        for generator in self._generators():
            noise.seed_(generator)
        if self.schedule is not None:
            self._set_rates(self.schedule(number))
        self.step.noise = self._noise("gradient", number)
        seen: list[Batch] = []
        self._call(_noting(pieces, seen) if self.show_loss else pieces)
        self._fix_public_randomness(number)  # how far the draws of a batch went tells how large it was
        if self.after is not None:
            self.after(number)
        self.done += 1
        if self.average is not None:
            self.average.update(self.done)
        if telemetry.due():
            note = "; stopping" if patience.asked else ""
            telemetry.say(self.done, note + (self._loss(seen[-1]) if self.show_loss else ""))

    def _call(self, pieces: Iterator[Batch]) -> None:
        if self._graphed is None:
            self.step(pieces)
        else:
            for places in pieces:  # all of them at once
                self._graphed(places)

    def _prefetch(self, steps: range) -> Prefetch:
        if self._graphed is None:
            return Prefetch(self.examples, self._draw, steps, largest=self.largest_piece)
        places = Places(len(self.examples))
        return Prefetch(places, self._draw, steps, largest=max(1, len(places)))

    def _draw(self, number: int) -> Index:
        return poisson_batch(len(self.examples), self.plan.sample_rate, self._noise("batch", number))

    def _noise(self, name: str, number: int) -> NoiseSource:
        """Test noise is another in each training of a run."""
        return self.ledger.noise.stream(self.plan.purpose, name, number)

    def _fix_public_randomness(self, number: int) -> None:
        """Seeds torch for the public work of this step alone, so that no state of a generator has to be kept."""
        digest = hashlib.sha256(f"{self.seed}/{number}".encode()).digest()
        for generator in self._generators():  # a hundred times as fast as torch.manual_seed
            generator.manual_seed(int.from_bytes(digest[:7], "little"))

    def _set_rates(self, factor: float) -> None:
        for group, rate in zip(self.step.optimizer.param_groups, self._rates, strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate * factor)
            else:
                group["lr"] = rate * factor

    def _loss(self, piece: Batch) -> str:
        """Only ever called for `show_loss`: it tells about private examples."""
        batch = piece if self._graphed is None else self.examples.take(piece[: self.largest_piece])
        if isinstance(batch, Padded):
            loss = self.step.private_loss(batch.examples).detach()[batch.present]
        else:
            loss = self.step.private_loss(batch).detach()
        return f", loss {float(loss.mean()):.4g} (NOT PRIVATE)" if len(loss) else ""

    def _gpus(self) -> list[int]:
        device = self.step.groups.parameters[0].device
        return [device.index or 0] if device.type == "cuda" else []

    def _generators(self) -> list[torch.Generator]:
        """What losses draw from."""
        return [torch.default_generator, *(torch.cuda.default_generators[gpu] for gpu in self._gpus())]

    def _finish_work(self) -> None:
        for gpu in self._gpus():
            torch.cuda.synchronize(gpu)

    def _telemetry(self) -> Telemetry:
        whole = self.plan.charge(self.plan.steps)
        before = [charge for charge in self.ledger.charges if not is_part_of(charge, whole)]
        delta = self.ledger.budget.delta
        return Telemetry(self.progress, self.plan, before=before, delta=delta, done=self.done)


def _refuse_another_step(step: PrivateStep, plan: TrainingPlan) -> None:
    """What is charged is the plan, so the step must add the plan's noise."""
    if step.noise_multiplier != plan.noise_multiplier:
        raise ValueError(f"the step adds noise {step.noise_multiplier}, but the plan pays for {plan.noise_multiplier}")
    batch = step.expected_batch
    if not isinstance(batch, Tensor) and batch != plan.expected_batch:
        raise ValueError(f"the step divides by {batch}, but the plan expects {plan.expected_batch} records in it")


def _noting(pieces: Iterator[Batch], seen: list[Batch]) -> Iterator[Batch]:
    """The same pieces, remembering the last one."""
    for piece in pieces:
        seen[:] = [piece]
        yield piece
