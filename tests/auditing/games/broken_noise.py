"""Ledgers and noise with one fault each, for games that must find it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sundog.auditing.games.game import Game
from sundog.auditing.tradeoff_curve import scale_charges
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource

Integers = npt.NDArray[np.int64]


class Discount(Ledger):
    """A ledger that is charged for three halves of the noise that is drawn, whatever the mechanism."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(epsilon=ledger.budget.epsilon, delta=ledger.budget.delta, noise=ledger.noise)
        self._behind = ledger

    def spend(self, *charges: Charge) -> None:
        self._behind.spend(*scale_charges(charges, 2 / 3))


class WeakNoise(NoiseSource):
    """Test noise times a factor."""

    factor: float

    @classmethod
    def weaken(cls, source: NoiseSource, factor: float) -> Self:
        seed = source._seed
        assert seed is not None
        weak = cls.seeded(seed)
        assert isinstance(weak, cls)
        weak.factor = factor
        return weak

    def derive_stream(self, *names: str | int) -> NoiseSource:
        return WeakNoise.weaken(super().derive_stream(*names), self.factor)

    def discrete_gaussian(self, *, sigma: float, size: int | tuple[int, ...]) -> Integers:
        if self.factor == 0:
            return np.zeros(size, np.int64)
        return super().discrete_gaussian(sigma=self.factor * sigma, size=size)

    def standard_normal_(self, out: Tensor) -> Tensor:
        return super().standard_normal_(out).mul_(self.factor)


def charge_less(game: Game) -> Game:
    """The same game, with two thirds of the noise that is charged."""
    return replace(game, play=lambda present, ledger: game.play(present, Discount(ledger)))


def weaken(game: Game, factor: float) -> Game:
    """The same game, with Gaussian noise times a factor."""

    def play(present: bool, ledger: Ledger) -> Sequence[float]:
        ledger.noise = WeakNoise.weaken(ledger.noise, factor)
        return game.play(present, ledger)

    return replace(game, play=play)


def paid_once(measure: Callable[[Ledger], Any]) -> Callable[[Ledger], list[Any]]:
    """Measure twice, and charge once."""

    class Forgetful(Ledger):
        def spend(self, *charges: Charge) -> None:
            pass

    def measure_twice(ledger: Ledger) -> list[Any]:
        free = Forgetful(epsilon=ledger.budget.epsilon, delta=ledger.budget.delta, noise=ledger.noise)
        return [measure(ledger), measure(free)]

    return measure_twice
