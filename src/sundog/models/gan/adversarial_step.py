"""The two networks against each other (dp-GAN, Algorithm 1): the critic alone ever sees a record, through DP-SGD.

A real record and a generated one are judged together, and their gradient is clipped as one: much of what the two have
in common cancels before the clipping, and neither side is clipped more than the other. The generator learns from the
critic, which is private by then; its turns cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from sundog.models.gan.critic_schedule import Balance
from sundog.models.gan.label_classifier import Namer
from sundog.models.gan.networks import Body, Judge
from sundog.models.gan.objectives import Objective
from sundog.models.neural.decoder_sampling import replaced
from sundog.models.neural.features import Compact, Features
from sundog.models.neural.network_training import LARGEST_LOGIT, Adam, fastest
from sundog.models.neural.person_examples import HELD, over_records
from sundog.training.speed.cuda_graphs import Replayed
from sundog.training.weight_average import MovingAverage

_RARE = 1e-3  # how much of the measured means is among those of generated records
MOMENTS = (0.0, 0.99)  # of Adam: the opponent moves, and old gradients are about another game


class Generator(nn.Module):
    """A body, and what it starts from: the logits of mean records, for each value of the column that it is told."""

    def __init__(self, body: Body, start: Tensor, told: slice) -> None:
        super().__init__()
        self.body, self.told = body, told
        self.start = nn.Parameter(start)  # (values, features); of one value where it is told nothing

    def forward(self, inputs: Tensor) -> Tensor:
        """(…, latent + told) to the logits of all features."""
        given = inputs[..., self.body.latent :]
        flat = inputs.flatten(0, -2)
        logits = self.body(flat).view(*inputs.shape[:-1], self.start.shape[1])
        start = given @ self.start if given.shape[-1] else self.start[0]
        return replaced(logits + start, (given - 1) * LARGEST_LOGIT, self.told)


class Networks(nn.Module):
    """Both."""

    def __init__(self, generator: Generator, critic: Judge) -> None:
        super().__init__()
        self.generator, self.critic = generator, critic


def straight_through(features: Features, logits: Tensor) -> Tensor:
    """Records from logits: cells and items are drawn, and pass on the gradients of their probabilities.

    So a critic sees of generated records what it sees of real ones, zeros and ones, and cannot tell them by that.
    """
    soft = features.means(logits)
    with torch.no_grad():
        hard = features.draw(logits)
        levels, gaps = features.gapped
        hard[..., features.levels] = logits[..., features.levels].sigmoid()
        hard[..., levels] *= 1 - hard[..., gaps]
    return soft + (hard - soft).detach()


@dataclass
class Duel:
    """Losses and turns.

    Args:
        features: of the records.
        generator: on the device that trains.
        critic: likewise.
        objective: what they play for.
        namer: names the values that records show; None where nobody does.
        prior: the probabilities of the values that the generator is told.
        balance: whose turn it is.
        batch: how many records the generator makes in a step of its own.
        learning_rate: of the generator.
        decay: of the average of its weights.
        schedule: of the learning rate, by the number of the critic's step.
        means: as measured, of records with each value that the generator is told: (values, features).
        anchor: how much it counts that generated records have these means.
    """

    features: Features
    generator: Generator
    critic: Judge
    objective: Objective
    namer: Namer | None
    prior: Tensor
    balance: Balance
    batch: int
    learning_rate: float
    decay: float
    schedule: Callable[[int], float]
    means: Tensor | None = None
    anchor: float = 0.0
    _recognised: Tensor = field(init=False)

    def __post_init__(self) -> None:
        device = self.prior.device
        weights = list(self.generator.parameters())
        rate: Any = torch.tensor(self.learning_rate, device=device) if device.type == "cuda" else self.learning_rate
        self.optimizer = Adam(weights, lr=rate, betas=MOMENTS, **fastest(device))
        self.average = MovingAverage(weights, self.decay)
        self._recognised = torch.zeros((), device=device)
        self._turn = Replayed(self._move, device)

    @property
    def kept(self) -> dict[str, Any]:
        """What an interrupted training needs besides the critic."""
        parts = {"generator": self.generator, "average": self.average, "balance": self.balance}
        return {**parts, "optimizer": self.optimizer}

    # --- the critic's side ---

    def loss(self, batch: Compact) -> Tensor:
        """What the critic loses on each record and one that is generated for it, with the same label.

        Where an example is a person, it is the mean over that person's records.
        """
        real = self.features.dense(batch)
        fake = self.generated(real[..., self.generator.told])
        loss = self.objective.real(self.critic(real)) + self.objective.fake(self.critic(fake))
        penalty = self.objective.penalty(self.critic, real, fake)
        loss = loss if penalty is None else loss + penalty
        return over_records(loss, batch[HELD]) if HELD in batch else loss

    @torch.no_grad()
    def generated(self, told: Tensor) -> Tensor:
        """A record for each, of those labels."""
        return straight_through(self.features, self.generator(self._inputs(told)))

    def _inputs(self, told: Tensor) -> Tensor:
        z = torch.randn(*told.shape[:-1], self.generator.body.latent, device=told.device)
        return torch.cat([z, told], dim=-1)

    # --- the generator's side: no record is in it ---

    def after(self, number: int) -> None:
        """After each step of the critic: perhaps it is the generator's turn."""
        turns = self.balance.turns()
        if not turns:
            return
        self._set_rate(self.learning_rate * self.schedule(number))
        for turn in range(turns):
            self._turn()
            self.average.update(self.balance.taken - turns + turn + 1)
        if self.balance.target:
            self.balance.saw(float(self._recognised))

    def _move(self) -> None:
        given = self._labels()
        logits = self.generator(self._inputs(given))
        x = straight_through(self.features, logits)
        scores = self.critic(x)
        loss = self.objective.generated(scores).mean()
        if self.namer is not None:
            loss = loss + self.namer.surprise(x).mean()
        if self.means is not None:
            loss = loss + self.anchor * self._adrift(logits, given, self.means)
        weights = list(self.generator.parameters())
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.grad = gradient
        self.optimizer.step()
        self._recognised.copy_((scores.detach() < 0).float().mean())

    def _adrift(self, logits: Tensor, given: Tensor, means: Tensor) -> Tensor:
        """How surprising the measured means are, for each value that was told, given those of generated records."""
        given = given if given.shape[-1] else given.new_ones(len(given), 1)
        counts = given.sum(dim=0)
        found = given.T @ self.features.means(logits) / counts.clamp_min(1.0)[:, None]
        found = torch.lerp(found, means, _RARE)  # so that what was never generated can be missed
        there = self.features.given_present(found)
        return counts @ self.features.loss(self.features.logits(there, least=0.0), means) / len(given)

    def _labels(self) -> Tensor:
        if not len(self.prior):
            return self.prior.new_zeros(self.batch, 0)
        drawn = torch.multinomial(self.prior, self.batch, replacement=True)
        return nn.functional.one_hot(drawn, len(self.prior)).to(self.prior.dtype)

    def _set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
