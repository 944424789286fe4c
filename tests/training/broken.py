"""Engines with one fault each, made out of the real one.

The gradient is altered on its way from the engine to the optimiser, where the interface is public: however the engine
comes to its noisy sum, the fault is in what it hands over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sundog.privacy.noise import NoiseSource
from sundog.training.batches.poisson import Index
from sundog.training.clipping import ClipPolicy
from sundog.training.groups import Groups
from sundog.training.per_example.engine import Loss, Weigh, clip_and_sum
from sundog.training.step import PrivateStep

Engine = Callable[..., PrivateStep]
Summed = Callable[[nn.Module, Loss, Any, Groups, Weigh], list[Tensor]]
Sampler = Callable[[int, float, NoiseSource], Index]


class Tampered(PrivateStep):
    """The real step, but for what happens to its gradient just before the optimiser sees it."""

    def __call__(self, pieces: Iterable[Any]) -> None:
        batch = list(pieces)
        hook = self.optimizer.register_step_pre_hook(lambda *_: self.tamper(batch))
        try:
            super().__call__(batch)
        finally:
            hook.remove()

    def tamper(self, batch: list[Any]) -> None:
        raise NotImplementedError

    def noiseless(self, batch: list[Any], summed: Summed) -> list[Tensor]:
        """What the gradient would be without noise, by one way to sum or another."""
        parts = [summed(self.module, self.private_loss, piece, self.groups, self.policy.weigh) for piece in batch]
        return [torch.stack(sums).sum(dim=0) / self.expected_batch for sums in zip(*parts, strict=True)]


class SilentLayer(Tampered):
    """No noise in the last parameter."""

    def tamper(self, batch: list[Any]) -> None:
        self.groups.parameters[-1].grad = self.noiseless(batch, right_sum)[-1]


class ForgottenNorm(Tampered):
    """The norm of the last parameter is left out when examples are clipped."""

    def tamper(self, batch: list[Any]) -> None:
        wrong, right = self.noiseless(batch, forgetful_sum), self.noiseless(batch, right_sum)
        for parameter, more, less in zip(self.groups.parameters, wrong, right, strict=True):
            _gradient(parameter).add_(more - less)


class ActualSize(Tampered):
    """The sum is divided by the size of the batch that was drawn."""

    def tamper(self, batch: list[Any]) -> None:
        for parameter in self.groups.parameters:
            _gradient(parameter).mul_(self.expected_batch / max(1, sum(map(len, batch))))


class SharedNoise(Tampered):
    """The last parameter has the noise of the first, as far as that goes."""

    def tamper(self, batch: list[Any]) -> None:
        clean = self.noiseless(batch, right_sum)
        first, last = (_gradient(self.groups.parameters[i]).flatten() for i in (0, -1))
        shared = min(len(first), len(last))
        last[:shared] = clean[-1].flatten()[:shared] + first[:shared] - clean[0].flatten()[:shared]


class RepeatedNoise(Tampered):
    """The noise of the first step again in every step."""

    _first: list[Tensor] | None = None

    def tamper(self, batch: list[Any]) -> None:
        clean = self.noiseless(batch, right_sum)
        gradients = [_gradient(parameter) for parameter in self.groups.parameters]
        if self._first is None:
            self._first = [noisy - exact for noisy, exact in zip(gradients, clean, strict=True)]
        for gradient, exact, noise in zip(gradients, clean, self._first, strict=True):
            gradient.copy_(exact + noise)


class NoiseForEachPiece(PrivateStep):
    """Every micro-batch is a step of its own, with noise of its own."""

    def __call__(self, pieces: Iterable[Any]) -> None:
        for piece in pieces:
            super().__call__([piece])


class Remembering:
    """A policy that remembers what it measured."""

    def __init__(self, policy: ClipPolicy) -> None:
        self._policy = policy
        self._measured = torch.zeros(())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def measure(self, *seen: Any) -> Tensor | None:
        more = self._policy.measure(*seen)
        if more is not None:
            self._measured = self._measured + more
        return more


class Overheard(Remembering):
    """A policy that follows an answer with less noise than the one it is given."""

    def __init__(self, policy: ClipPolicy, noise_kept: float) -> None:
        super().__init__(policy)
        self._noise_kept = noise_kept

    def update(self, noisy: Tensor | None) -> None:
        exact, self._measured = self._measured, torch.zeros(())
        if noisy is not None:
            noisy = exact + self._noise_kept * (noisy - exact)
        self._policy.update(noisy)


def with_noise(factor: float) -> Engine:
    """An engine that adds another amount of noise than was planned."""
    return lambda **settings: PrivateStep(**settings | {"noise_multiplier": factor * settings["noise_multiplier"]})


def with_side_noise(factor: float) -> Engine:
    """An engine that adds another amount of noise to what its policy measures."""
    return lambda **settings: PrivateStep(**settings | {"policy": Overheard(settings["policy"], factor)})


def right_sum(module: nn.Module, loss: Loss, batch: Any, groups: Groups, weigh: Weigh) -> list[Tensor]:
    """The clipped sum."""
    return clip_and_sum(module, loss, batch, groups, weigh).sums


def forgetful_sum(module: nn.Module, loss: Loss, batch: Any, groups: Groups, weigh: Weigh) -> list[Tensor]:
    """The clipped sum, but for the norm of the last parameter: it has the weight of its group, and no say in it."""
    apart = Groups(groups.parameters, [*groups.of[:-1], groups.count])

    def blind(norms: Tensor) -> Tensor:
        weights = weigh(norms[:-1])
        return torch.cat([weights, weights[groups.of[-1]][None]])

    return right_sum(module, loss, batch, apart, blind)


def fixed_size(records: int, sample_rate: float, noise: NoiseSource) -> Index:
    """As many records as are expected, in every batch."""
    return np.sort(noise.permutation(records)[: round(records * sample_rate)])


def never_empty(records: int, sample_rate: float, noise: NoiseSource) -> Index:
    """A Poisson batch, drawn again when nobody is in it."""
    while not (drawn := noise.uniform(records) < sample_rate).any():
        pass
    return np.flatnonzero(drawn)


def in_pairs(records: int, sample_rate: float, noise: NoiseSource) -> Index:
    """Neighbours are in together, or not at all."""
    return np.flatnonzero(np.repeat(noise.uniform(records // 2) < sample_rate, 2))


def the_first_more_often(records: int, sample_rate: float, noise: NoiseSource) -> Index:
    """The first half of the records is drawn half as often again as it should be, the other half as much less often."""
    rates = sample_rate * np.where(np.arange(records) < records // 2, 1.5, 0.5)
    return np.flatnonzero(noise.uniform(records) < rates)


def everybody(records: int, sample_rate: float, noise: NoiseSource) -> Index:
    """No sampling at all."""
    return np.arange(records)


class Epochs:
    """Batches cut from one shuffled order after another, as most training loops do."""

    def __init__(self) -> None:
        self._waiting: Index = np.empty(0, dtype=np.int64)

    def __call__(self, records: int, sample_rate: float, noise: NoiseSource) -> Index:
        size = round(records * sample_rate)
        if len(self._waiting) < size:
            self._waiting = noise.permutation(records)
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        return np.sort(batch)


def _gradient(parameter: nn.Parameter) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad
