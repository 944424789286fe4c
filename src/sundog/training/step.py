"""One step of DP-SGD.

for piece in the Poisson batch:                     in pieces that fit into memory
sums, norms += clip_and_sum(loss, piece)        per_example/engine.py: exact per-example clipping
measured += policy.measure(norms)               clipping.py: DPNorm counts the norms, other policies nothing
gradient = (sums + noise) / expected batch size     noise_addition.py: drawn once per step
gradient += gradient of the public loss             it contains no record: neither clipped nor noised
optimizer.step()
policy.update(measured + noise)                     the bounds of the next step
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sundog.errors import SundogError
from sundog.privacy.draws import GaussianDraw
from sundog.privacy.noise import NoiseSource
from sundog.training.batches.examples import Padded, list_leaves
from sundog.training.clipping import ClipPolicy
from sundog.training.groups import Groups
from sundog.training.noise_addition import StepNoise, compute_gradient_multiplier, compute_noise_scales
from sundog.training.per_example.engine import Loss, Masks, clip_and_sum
from sundog.training.speed.allocator import keep_memory
from sundog.training.speed.compile import Program, compile_program
from sundog.training.speed.options import EXACT, Speed


@dataclass
class PrivateStep:
    """A step of DP-SGD; call it with the pieces of one Poisson batch.

    The caller has charged it: a Gaussian with `noise_multiplier`, subsampled at the rate of the batch.

    Args:
        module: the model.
        private_loss: the loss of each example of a batch.
        groups: the parameters that are trained, and which are clipped together.
        policy: the clipping bounds.
        optimizer: receives the noisy gradient.
        noise: where the noise is drawn from.
        noise_multiplier: of everything that the step measures, together.
        expected_batch: the expected batch size, by which sums are divided; of each model of a stack, (k,).
        public_loss: a loss without private examples, whose gradient is added.
        speed: precision, and whether to compile.
    """

    module: nn.Module
    private_loss: Loss
    groups: Groups
    policy: ClipPolicy
    optimizer: torch.optim.Optimizer
    noise: NoiseSource
    noise_multiplier: float
    expected_batch: float | Tensor
    public_loss: Callable[[], Tensor] | None = None
    speed: Speed = EXACT

    def __post_init__(self) -> None:
        parameters = self.groups.parameters
        self._device = parameters[0].device
        sizes = [*(parameter.numel() for parameter in parameters), self.policy.measurements]
        self._noise = StepNoise(sizes, self._device)
        self._program: Program | None = None
        self._compiled_for: tuple[Any, ...] = ()
        if {parameter.dtype for parameter in parameters} != {torch.float32}:
            raise SundogError("private training needs float32 parameters; see Speed for faster products")
        if self._device.type == "cpu":
            keep_memory()
        self.taken, self.seconds = 0, 0.0  # steps that were not compiled, and the CPU time of their private parts
        self._update: Callable[[], object] = self.optimizer.step
        self._has_fixed_size = False

    def __call__(self, pieces: Iterable[Any]) -> None:
        """Take the step."""
        self.draw_noise()
        pieces = iter(pieces)
        first = next(pieces, None)
        second = next(pieces, None) if self.speed.compiled else None
        if not self.speed.compiled or second is not None or not can_compile(first):
            ahead = [piece for piece in (first, second) if piece is not None]
            self.take(itertools.chain(ahead, pieces))  # one at a time: all of them may not fit into memory
            return
        if not self.is_compiled:
            self.compile(first)
        self.take_compiled(first)

    def compile(self, piece: Any, *, fixed_size: bool = False, fused: bool = True) -> None:
        """Compile the private part of steps that have one piece.

        Args:
            piece: an example of such a piece, with at least two examples in it.
            fixed_size: all pieces have this size, and steps must not wait for the device.
            fused: use torch.compile, which takes a while; otherwise the step is only prepared for a CUDA graph.
        """
        self._has_fixed_size = fixed_size
        self._compiled_for = self._constants
        masks: Masks = "always" if fixed_size else "never"

        def measure_piece(piece: Any) -> list[Tensor]:
            return self._measure([piece], masks)

        self._program = (
            compile_program(measure_piece, piece, self.speed, fixed_size=fixed_size) if fused else measure_piece
        )
        if fixed_size and fused:
            self._update = torch.compile(self.optimizer.step)

    @property
    def is_compiled(self) -> bool:
        """Whether the step is compiled for its current settings."""
        return self._program is not None and self._compiled_for == self._constants

    def refuse_changes(self) -> None:
        """Raise if the step was compiled for other settings."""
        if self._program is not None and not self.is_compiled:
            raise RuntimeError("the step was compiled for another noise, batch, policy or mode; compile it again")

    @property
    def _constants(self) -> tuple[Any, ...]:
        """What a compiled program contains as constants."""
        batch = self.expected_batch
        return (
            self.noise_multiplier,
            id(batch) if isinstance(batch, Tensor) else batch,
            id(self.policy),
            self.module.training,
        )

    def draw_noise(self) -> None:
        """Draw all the noise of the next step."""
        self._noise.draw(self.noise)

    def take(self, pieces: Iterable[Any]) -> None:
        """Take the step with the noise that was drawn; each call needs fresh noise."""
        started = time.thread_time()
        sums, measured, _ = self._clip_and_sum(pieces, "when needed")
        exact = sums if measured is None else [*sums, measured]
        deviations = self._compute_deviations()
        noisy = self.noise.release(GaussianDraw(exact, deviations), lambda: self._add_noise(exact, deviations))
        private = self._average(noisy)
        self.seconds += time.thread_time() - started
        self.taken += 1
        self._apply_gradients(private, self.optimizer.step)

    def take_compiled(self, piece: Any) -> None:
        """Take the step with the compiled program."""
        if self._program is None:
            raise RuntimeError("compile() must be called before take_compiled()")
        self.refuse_changes()
        *private, usable = self._program(piece)
        if not self._has_fixed_size and not usable:  # a gradient was not finite: discard the sums
            self.take([piece])
        else:
            self._apply_gradients(private, self._update)

    def _apply_gradients(self, private: list[Tensor], update: Callable[[], object]) -> None:
        self._noise.use_up()
        gradients, measured = private[: len(self.groups.parameters)], private[len(self.groups.parameters) :]
        self.optimizer.zero_grad(set_to_none=True)
        if self.public_loss is not None:
            self.public_loss().backward()  # type: ignore[no-untyped-call]
        for parameter, gradient in zip(self.groups.parameters, gradients, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        update()
        self.policy.update(measured[0] if measured else None)

    def _measure(self, pieces: Iterable[Any], masks: Masks) -> list[Tensor]:
        """Measure everything that the step learns from private examples.

        Returns a noisy gradient for each parameter, the policy's noisy measurement if there is one, and last, for
        internal use only, whether the sums are finite.
        """
        sums, measured, usable = self._clip_and_sum(pieces, masks)
        exact = sums if measured is None else [*sums, measured]
        return [*self._average(self._add_noise(exact, self._compute_deviations())), usable]

    def _compute_deviations(self) -> list[Any]:
        """Return the standard deviation of the noise in each parameter's sum, and in the policy's measurement."""
        multiplier = compute_gradient_multiplier(self.noise_multiplier, self.policy.measurement_noise)
        scales = compute_noise_scales(self.groups, self.policy.bounds, multiplier)
        found: list[Any] = [scales[group] for group in self.groups.of]
        return found if self.policy.measurement_noise is None else [*found, self.policy.measurement_noise]

    def _add_noise(self, exact: list[Tensor], deviations: list[Any]) -> list[Tensor]:
        """Return what was measured, with the noise that was drawn."""
        parts = zip(exact, self._noise.split(), deviations, strict=False)  # noise may have an empty part at the end
        return [(part.view_as(total) * deviation).add_(total) for total, part, deviation in parts]

    def _clip_and_sum(self, pieces: Iterable[Any], masks: Masks) -> tuple[list[Tensor], Tensor | None, Tensor]:
        sums: list[Tensor] = []
        measured: Tensor | None = None
        usable = torch.ones((), dtype=torch.bool, device=self._device)
        for piece in pieces:
            part = clip_and_sum(
                self.module, self.private_loss, piece, self.groups, self.policy.weigh, speed=self.speed, masks=masks
            )
            if sums:
                torch._foreach_add_(sums, part.sums)
            sums = sums or part.sums
            more = self.policy.measure(part.norms, part.present)
            measured = more if measured is None or more is None else measured + more
            usable = usable & part.usable
        if not sums:
            raise ValueError("a step needs at least one piece; an empty batch is one empty piece")
        return sums, measured, usable

    def _average(self, noisy: list[Tensor]) -> list[Tensor]:
        """Divide the noisy gradients, which come first, by the expected batch size."""
        batch = self.expected_batch
        for total in noisy[: len(self.groups.parameters)]:
            total.div_(batch.view(-1, *[1] * (total.dim() - 1)) if isinstance(batch, Tensor) else batch)
        return noisy


def can_compile(piece: Any) -> bool:
    """Return whether a step on this piece can be compiled: it needs two examples, and two models in a stack."""
    if piece is None:
        return False
    return (min(piece.present.shape) if isinstance(piece, Padded) else int(list_leaves(piece)[0].shape[0])) >= 2
