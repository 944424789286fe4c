"""One step of DP-SGD: clip, sum, noise once, divide by the expected batch size, and hand the gradient to any optimiser.

A trainee's loss has a private part, whose per-example gradients are clipped and noised, and may have a public part, in
which no record is: that one is neither.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sundog.errors import SundogError
from sundog.privacy.noise import NoiseSource
from sundog.training.batches.examples import leaves
from sundog.training.clipping import ClipPolicy
from sundog.training.groups import noise_scales
from sundog.training.per_example.engine import Groups, Loss, Masks, Padded, clipped_sum
from sundog.training.speed.allocator import keep_memory
from sundog.training.speed.compile import Program, compiled
from sundog.training.speed.options import EXACT, Speed


def gradient_noise(noise_multiplier: float, side_noise: float | None) -> float:
    """The multiplier left for the gradient when a policy's measurement takes its part of one joint Gaussian.

    Gradient (σ_G) and measurement (σ_C) are coordinates of one vector: together they cost (σ_G⁻² + σ_C⁻²)^(−1/2).

    >>> round(gradient_noise(1.0, 4.0), 4)
    1.0328
    """
    if side_noise is None:
        return noise_multiplier
    if side_noise <= noise_multiplier:
        raise ValueError(f"a side measurement with multiplier {side_noise} costs more than the whole step")
    return 1 / math.sqrt(noise_multiplier**-2 - side_noise**-2)


@dataclass
class PrivateStep:
    """Everything a step needs; call it with the micro-batches of one Poisson batch.

    The caller has paid for it: a Gaussian of `noise_multiplier`, sampled at its rate.
    """

    module: nn.Module
    private_loss: Loss
    groups: Groups
    policy: ClipPolicy
    optimizer: torch.optim.Optimizer
    noise: NoiseSource
    noise_multiplier: float
    expected_batch: float | Tensor  # for models that are stacked, of each: (k,)
    public_loss: Callable[[], Tensor] | None = None
    speed: Speed = EXACT

    def __post_init__(self) -> None:
        parameters = self.groups.parameters
        self._sizes = [*(parameter.numel() for parameter in parameters), self.policy.measures]
        self._normals = torch.empty(sum(self._sizes), device=parameters[0].device)
        self._is_fresh = False
        self._program: Program | None = None
        self._compiled_for: tuple[Any, ...] = ()
        if {parameter.dtype for parameter in parameters} != {torch.float32}:
            raise SundogError("private training needs float32 parameters; see Speed for faster products")
        if self._normals.device.type == "cpu":
            keep_memory()
        self.taken, self.seconds = 0, 0.0  # steps that were not compiled, and how long their private parts took
        self._update: Callable[[], object] = self.optimizer.step
        self._has_fixed_size = False

    def __call__(self, pieces: Iterable[Any]) -> None:
        """Takes the step."""
        self.draw_noise()
        pieces = iter(pieces)
        first = next(pieces, None)
        second = next(pieces, None) if self.speed.compiled else None
        if not self.speed.compiled or second is not None or not can_compile(first):
            ahead = [piece for piece in (first, second) if piece is not None]
            self.take(itertools.chain(ahead, pieces))  # one at a time: all together they may not fit into memory
            return
        if not self.is_compiled:
            self.compile(first)
        self.take_compiled(first)

    def compile(self, piece: Any, *, fixed_size: bool = False, fused: bool = True) -> None:
        """Makes steps faster that have one piece.

        Args:
            piece: some examples, at least two of them.
            fixed_size: all pieces will have as many, and no step may ask a device how it went.
            fused: by a compiler, which takes its time; otherwise it is only made fit for a graph.
        """
        self._has_fixed_size = fixed_size
        self._compiled_for = self._constants
        masks: Masks = "always" if fixed_size else "never"

        def private(piece: Any) -> list[Tensor]:
            return self._private([piece], masks)

        self._program = compiled(private, piece, self.speed, fixed_size=fixed_size) if fused else private
        if fixed_size and fused:
            self._update = torch.compile(self.optimizer.step)

    @property
    def is_compiled(self) -> bool:
        """Whether there is a program for the step as it is now."""
        return self._program is not None and self._compiled_for == self._constants

    def refuse_changes(self) -> None:
        """Raises if the step is compiled, and no longer what it was compiled for."""
        if self._program is not None and not self.is_compiled:
            raise RuntimeError("the step was compiled for another noise, batch, policy or mode; compile it again")

    @property
    def _constants(self) -> tuple[Any, ...]:
        """What a program was made for, and does not look at again."""
        batch = self.expected_batch
        return (
            self.noise_multiplier,
            id(batch) if isinstance(batch, Tensor) else batch,
            id(self.policy),
            self.module.training,
        )

    def draw_noise(self) -> None:
        """Draws all the noise of the next step."""
        self.noise.standard_normal_(self._normals)
        self._is_fresh = True

    def take(self, pieces: Iterable[Any]) -> None:
        """Takes the step with the noise that was drawn; each call needs noise of its own."""
        started = time.thread_time()
        *private, _ = self._private(pieces, "when needed")
        self.seconds += time.thread_time() - started
        self.taken += 1
        self._descend(private, self.optimizer.step)

    def take_compiled(self, piece: Any) -> None:
        """The same, after `compile`."""
        if self._program is None:
            raise RuntimeError("take_compiled before compile")
        self.refuse_changes()
        *private, usable = self._program(piece)
        if not self._has_fixed_size and not usable:  # an example has spoilt the sums, which nobody has seen
            self.take([piece])
        else:
            self._descend(private, self._update)

    def _descend(self, private: list[Tensor], update: Callable[[], object]) -> None:
        if not self._is_fresh:
            raise RuntimeError(
                "a step without noise of its own: two answers with the same noise have none between them"
            )
        self._is_fresh = False
        gradients, measured = private[: len(self.groups.parameters)], private[len(self.groups.parameters) :]
        self.optimizer.zero_grad(set_to_none=True)
        if self.public_loss is not None:
            self.public_loss().backward()  # type: ignore[no-untyped-call]
        for parameter, gradient in zip(self.groups.parameters, gradients, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        update()
        self.policy.follow(measured[0] if measured else None)

    def _private(self, pieces: Iterable[Any], masks: Masks) -> list[Tensor]:
        """All that the step learns of records: a noisy gradient for each parameter, and the noisy measurement.

        And last, for the program's own use, whether the sums in them are good.
        """
        sums, measured, usable = self._clipped(pieces, masks)
        *normals, side = torch.split(self._normals, self._sizes)
        multiplier = gradient_noise(self.noise_multiplier, self.policy.side_noise)
        scales = noise_scales(self.groups, self.policy.bounds, multiplier)
        noisy = [
            self._averaged(total, part.view_as(total) * scales[group])
            for total, part, group in zip(sums, normals, self.groups.of, strict=True)
        ]
        if measured is not None and self.policy.side_noise is not None:
            noisy.append(measured + self.policy.side_noise * side)
        return [*noisy, usable]

    def _clipped(self, pieces: Iterable[Any], masks: Masks) -> tuple[list[Tensor], Tensor | None, Tensor]:
        sums: list[Tensor] = []
        measured: Tensor | None = None
        usable = torch.ones((), dtype=torch.bool, device=self._normals.device)
        for piece in pieces:
            part = clipped_sum(
                self.module, self.private_loss, piece, self.groups, self.policy.weigh, speed=self.speed, masks=masks
            )
            if sums:
                torch._foreach_add_(sums, part.sums)
            sums = sums or part.sums
            more = self.policy.measure(part.norms, part.present)
            measured = more if measured is None or more is None else measured + more
            usable = usable & part.usable
        if not sums:
            raise ValueError("a step needs a piece; that of an empty batch is empty")
        return sums, measured, usable

    def _averaged(self, total: Tensor, noise: Tensor) -> Tensor:
        batch = self.expected_batch
        return noise.add_(total).div_(batch.view(-1, *[1] * (total.dim() - 1)) if isinstance(batch, Tensor) else batch)


def can_compile(piece: Any) -> bool:
    """Whether a step on this piece can be compiled: it takes two examples, and two models if there are several."""
    if piece is None:
        return False
    return (min(piece.present.shape) if isinstance(piece, Padded) else int(leaves(piece)[0].shape[0])) >= 2
