"""Trainings with one fault each, which a game must find."""

from __future__ import annotations

from typing import Any

import torch
from tests.training.broken import Epochs, never_empty
from torch import Tensor

from sundog.training.batches.poisson import Index, draw_poisson_batch
from sundog.training.clipping import ClipPolicy, Fixed
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer


class Unclipped(Fixed):
    """A policy that plans with a bound, and sums the raw gradients."""

    def weigh(self, norms: Tensor) -> Tensor:
        return torch.ones_like(norms)


def sum_raw_gradients(groups: int, noise_multiplier: float) -> ClipPolicy:
    return Unclipped(torch.linspace(0.5, 1.0, groups))


class WeakStep(PrivateStep):
    """A step that charges for its noise, and then multiplies it by a factor."""

    factor = 2 / 3

    def draw_noise(self) -> None:
        super().draw_noise()
        self._noise.normals.mul_(self.factor)


class SilentStep(WeakStep):
    """A step that scales its noise by a sensitivity of 0."""

    factor = 0.0


class NoiseByBatch(WeakStep):
    """A step whose noise is divided by the batch size once more than its sum."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.factor = 1 / settings["expected_batch"]


class ForwardNoise(SilentStep):
    """Noise of the same multiplier on the activations instead of the gradients (Figure 6.18 of the text)."""

    def __init__(self, **settings: Any) -> None:
        sigma, module = settings["noise_multiplier"], settings["module"]
        generator = torch.Generator().manual_seed(settings["noise"].draw_seed())

        def loss(x: Tensor) -> Tensor:
            found: Tensor = module(x + sigma * torch.randn(x.shape, generator=generator))
            return found

        super().__init__(**settings | {"private_loss": loss})


class SameNoise(PrivateStep):
    """The noise of the first step in all steps."""

    _first: Tensor | None = None

    def draw_noise(self) -> None:
        super().draw_noise()
        if self._first is None:
            self._first = self._noise.normals.clone()
        self._noise.normals.copy_(self._first)


class ShuffledBatches(Trainer):
    """Batches cut from a shuffled order, each record once in an epoch, charged as Poisson samples."""

    def _draw(self, number: int) -> Index:
        epochs: Epochs = self.__dict__.setdefault("epochs", Epochs())
        return epochs(len(self.examples), self.plan.sample_rate, self._derive_noise("batch", number))


class TwiceAsOften(Trainer):
    """Samples at twice the rate that is charged."""

    def _draw(self, number: int) -> Index:
        rate = 2 * self.plan.sample_rate
        return draw_poisson_batch(len(self.examples), rate, self._derive_noise("batch", number))


class NoEmptyBatches(Trainer):
    """Empty batches are drawn again."""

    def _draw(self, number: int) -> Index:
        return never_empty(len(self.examples), self.plan.sample_rate, self._derive_noise("batch", number))
