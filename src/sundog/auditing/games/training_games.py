"""Games for DP-SGD: who sees the weights after each step guesses whether one record was there.

The loss is linear, so that the gradient of an example is the example itself. The record is longer than the clipping
norm, in a direction of its own; the others add nothing to it. With Poisson sampling, the likelihood ratio of all steps
is a product: step t moves along the record by sₜ, and has the ratio 1 − q + q·exp((sₜ − ½)/σ²).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from sundog.auditing.games.game import Game
from sundog.privacy.ledger import Ledger
from sundog.training.batches.poisson import Index
from sundog.training.clipping import ClipPolicy, DPNorm, Fixed
from sundog.training.groups import Groups, group_all
from sundog.training.noise_addition import compute_gradient_multiplier, compute_noise_scales
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer
from sundog.training.training_plan import TrainingPlan

_WIDTH = 4  # parameters of each of two layers
_OTHERS = torch.tensor([[0.0, 2.0, -1.0, 0.0, 0.0, 0.1, 0.0, 0.3], [0.0, 0.0, 3.0, 0.0, 0.0, 0.0, -0.5, 0.0]])
_RECORD = torch.tensor([[3.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0]])  # in both layers, and at right angles to the others
_FIRST = torch.cat([_RECORD[0, :_WIDTH], torch.zeros(_WIDTH)])  # the part of the record in the first layer


class Rows:
    """Rows of a tensor, as examples."""

    device = torch.device("cpu")

    def __init__(self, rows: Tensor) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, index: Index) -> Tensor:
        """Return the rows at these places."""
        return self._rows[torch.from_numpy(index)]


class TwoLayers(nn.Module):
    """The sum of two linear layers side by side: the gradient of its output is the example."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(_WIDTH, 1, bias=False)
        self.second = nn.Linear(_WIDTH, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number for each example."""
        found: Tensor = self.first(x[:, :_WIDTH]) + self.second(x[:, _WIDTH:])
        return found[:, 0]


def group_layers(module: nn.Module) -> Groups:
    """Return each parameter in a group of its own."""
    parameters = list(module.parameters())
    return Groups(parameters, list(range(len(parameters))))


def clip_to_bounds(groups: int, noise_multiplier: float) -> ClipPolicy:  # noqa: ARG001
    """Return fixed bounds, different in each group."""
    return Fixed(torch.linspace(0.5, 1.0, groups))


@dataclass(frozen=True)
class TrainingGame:
    """A training, and attacks on it; `play` runs it once.

    Args:
        plan: steps, sampling and noise.
        grouping: which parameters are clipped together.
        policy: of the clipping, given the number of groups and the noise multiplier.
        step: makes the step.
        trainer: the class of the trainer.
        others: the examples that are always there.
    """

    plan: TrainingPlan
    grouping: Callable[[nn.Module], Groups] = group_all
    policy: Callable[[int, float], ClipPolicy] = clip_to_bounds
    step: Callable[..., PrivateStep] = PrivateStep
    trainer: type[Trainer] = Trainer
    others: Tensor = field(default=_OTHERS)

    def play(self, present: bool, ledger: Ledger) -> Sequence[float]:
        """Train with or without the record, and return the scores of all attacks.

        The first is the log-likelihood ratio of all steps. The next look at each layer alone, where noise might be
        missing: how far it moved along the record, and how much the steps differ in that, as they would if all had
        the same noise.
        """
        module = TwoLayers()
        for parameter in module.parameters():
            nn.init.zeros_(parameter)
        groups = self.grouping(module)
        policy = self.policy(groups.count, self.plan.noise_multiplier)
        step = self.step(
            module=module,
            private_loss=module,
            groups=groups,
            policy=policy,
            optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
            noise=ledger.noise,
            noise_multiplier=self.plan.noise_multiplier,
            expected_batch=self.plan.expected_batch,
        )
        weights, bounds = [_flatten(module)], [policy.bounds.clone()]

        def look(number: int) -> None:  # noqa: ARG001
            weights.append(_flatten(module))
            bounds.append(policy.bounds.clone())

        rows = torch.cat([self.others, _RECORD[: int(present)]])
        self.trainer(step, Rows(rows), self.plan, ledger, seed=0, after=look, block=self.plan.steps).run()
        moves = [(before - after) * self.plan.expected_batch for before, after in pairwise(weights)]
        ratios = [self._compare(move, groups, bound, policy) for move, bound in zip(moves, bounds, strict=False)]
        layers = [[float(move @ part) for move in moves] for part in (_FIRST, _RECORD[0] - _FIRST)]
        scores = [sum(ratios), *(sum(layer) for layer in layers)]
        if len(moves) > 1:
            scores += [max(layer) - min(layer) for layer in layers]
        return scores

    def _compare(self, move: Tensor, groups: Groups, bounds: Tensor, policy: ClipPolicy) -> float:
        """Return the log-likelihood ratio of one noisy sum."""
        multiplier = compute_gradient_multiplier(self.plan.noise_multiplier, policy.measurement_noise)
        scales = compute_noise_scales(groups, bounds, multiplier)
        ratio = 0.0
        for group in range(groups.count):
            inside = torch.cat([torch.full((_WIDTH,), float(own == group)) for own in groups.of])
            shift = _RECORD[0] * inside
            shift = shift * min(1.0, float(bounds[group] / shift.norm()))
            ratio += float(shift @ (move - shift / 2) / scales[group] ** 2)
        rate = self.plan.sample_rate
        return ratio if rate == 1 else float(np.logaddexp(math.log1p(-rate), math.log(rate) + ratio))


def _flatten(module: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def make_training_games(*, noise_multiplier: float) -> list[Game]:
    """Return games for a step on all records, for groups and DPNorm, and for several steps on Poisson samples.

    >>> [game.name for game in make_training_games(noise_multiplier=1.0)]
    ['DP-SGD step', 'DP-SGD step, two groups', 'DP-SGD step, DPNorm', 'DP-SGD, Poisson samples']

    Args:
        noise_multiplier: of each step.
    """
    whole = TrainingPlan(sample_rate=1.0, steps=1, noise_multiplier=noise_multiplier, expected_batch=2.0)
    sampled = TrainingPlan(sample_rate=0.5, steps=4, noise_multiplier=noise_multiplier, expected_batch=1.0)
    return [
        Game("DP-SGD step", TrainingGame(whole).play),
        Game("DP-SGD step, two groups", TrainingGame(whole, grouping=group_layers).play),
        Game("DP-SGD step, DPNorm", TrainingGame(whole, policy=_measure_norms).play),
        Game("DP-SGD, Poisson samples", TrainingGame(sampled).play),
    ]


def _measure_norms(groups: int, noise_multiplier: float) -> ClipPolicy:  # noqa: ARG001  one group
    return DPNorm(noise_multiplier=noise_multiplier, largest=1.0)
