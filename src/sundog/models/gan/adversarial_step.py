"""The adversarial step (dp-GAN, Algorithm 1): the critic is trained on records by DP-SGD, the generator on the critic.

A real record and a generated one are scored together, and their gradient is clipped as one: what the two have in common
cancels before the clipping, and neither is clipped more than the other. The generator sees no record, only the critic,
which is differentially private; its steps cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from sundog.models.gan.critic_schedule import CriticSchedule
from sundog.models.gan.label_classifier import LabelClassifier
from sundog.models.gan.networks import CriticNetwork, GeneratorNetwork
from sundog.models.gan.objectives import Objective
from sundog.models.neural.decoder_sampling import replace_features
from sundog.models.neural.features import Compact, Features
from sundog.models.neural.network_training import LARGEST_LOGIT, Adam, choose_adam_options
from sundog.models.neural.person_examples import HELD, average_over_records
from sundog.training.speed.cuda_graphs import ReplayedWork
from sundog.training.weight_average import MovingAverage

_RARE = 1e-3  # how much of the measured means is among those of generated records
MOMENTS = (0.0, 0.99)  # of Adam: the critic changes, so old gradients are not used


class Generator(nn.Module):
    """A network, and the logits that it starts from: those of the mean record, for each value of the condition."""

    def __init__(self, body: GeneratorNetwork, start: Tensor, condition: slice) -> None:
        super().__init__()
        self.body, self.condition = body, condition
        self.start = nn.Parameter(start)  # (values, features); one row without a condition

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of all features: (…, latent + condition) to (…, features)."""
        given = inputs[..., self.body.latent :]
        flat = inputs.flatten(0, -2)
        logits = self.body(flat).view(*inputs.shape[:-1], self.start.shape[1])
        start = given @ self.start if given.shape[-1] else self.start[0]
        return replace_features(logits + start, (given - 1) * LARGEST_LOGIT, self.condition)


class Networks(nn.Module):
    """The generator and its critic."""

    def __init__(self, generator: Generator, critic: CriticNetwork) -> None:
        super().__init__()
        self.generator, self.critic = generator, critic


def draw_straight_through(features: Features, logits: Tensor) -> Tensor:
    """Draw records from logits; cells and items pass on the gradients of their probabilities (straight-through).

    A critic then sees zeros and ones in generated records as in real ones, and cannot tell them apart by that.
    """
    soft = features.means(logits)
    with torch.no_grad():
        hard = features.draw(logits)
        levels, gaps = features.gapped
        hard[..., features.levels] = logits[..., features.levels].sigmoid()
        hard[..., levels] *= 1 - hard[..., gaps]
    return soft + (hard - soft).detach()


@dataclass
class AdversarialGame:
    """The losses of both networks, and the steps of the generator.

    Args:
        features: of the records.
        generator: on the device that trains.
        critic: likewise.
        objective: the loss functions.
        classifier: predicts the condition from the rest of a record; None where there is none.
        prior: the probabilities of the values of the condition.
        critic_schedule: when the generator takes a step.
        batch: how many records the generator makes in a step of its own.
        learning_rate: of the generator.
        decay: of the average of its weights.
        schedule: of the learning rate, by the number of the critic's step.
        means: as measured, of records with each value of the condition: (values, features).
        anchor: how much it counts that generated records have these means.
    """

    features: Features
    generator: Generator
    critic: CriticNetwork
    objective: Objective
    classifier: LabelClassifier | None
    prior: Tensor
    critic_schedule: CriticSchedule
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
        self.optimizer = Adam(weights, lr=rate, betas=MOMENTS, **choose_adam_options(device))
        self.average = MovingAverage(weights, self.decay)
        self._recognised = torch.zeros((), device=device)
        self._take_step = ReplayedWork(self._take_generator_step, device)

    @property
    def stateful_parts(self) -> dict[str, Any]:
        """The state, besides the critic's, that an interrupted training needs."""
        parts = {"generator": self.generator, "average": self.average, "critic_schedule": self.critic_schedule}
        return {**parts, "optimizer": self.optimizer}

    # --- the critic's side ---

    def loss(self, batch: Compact) -> Tensor:
        """Return the critic's loss on each record and on one that is generated with the same label.

        Where an example is a person, it is the mean over that person's records.
        """
        real = self.features.to_dense(batch)
        fake = self.generate(real[..., self.generator.condition])
        loss = self.objective.critic_loss_real(self.critic(real)) + self.objective.critic_loss_fake(self.critic(fake))
        penalty = self.objective.penalty(self.critic, real, fake)
        loss = loss if penalty is None else loss + penalty
        return average_over_records(loss, batch[HELD]) if HELD in batch else loss

    @torch.no_grad()
    def generate(self, condition: Tensor) -> Tensor:
        """Return a record for each of these conditions."""
        return draw_straight_through(self.features, self.generator(self._draw_inputs(condition)))

    def _draw_inputs(self, condition: Tensor) -> Tensor:
        z = torch.randn(*condition.shape[:-1], self.generator.body.latent, device=condition.device)
        return torch.cat([z, condition], dim=-1)

    # --- the generator's side: no record is in it ---

    def train_generator(self, number: int) -> None:
        """Take the generator's steps that are due after a step of the critic."""
        steps = self.critic_schedule.advance()
        if not steps:
            return
        self._set_rate(self.learning_rate * self.schedule(number))
        for step in range(steps):
            self._take_step()
            self.average.update(self.critic_schedule.taken - steps + step + 1)
        if self.critic_schedule.target:
            self.critic_schedule.observe(float(self._recognised))

    def _take_generator_step(self) -> None:
        given = self._draw_conditions()
        logits = self.generator(self._draw_inputs(given))
        x = draw_straight_through(self.features, logits)
        scores = self.critic(x)
        loss = self.objective.generator_loss(scores).mean()
        if self.classifier is not None:
            loss = loss + self.classifier.cross_entropy(x).mean()
        if self.means is not None:
            loss = loss + self.anchor * self._compute_mean_mismatch(logits, given, self.means)
        weights = list(self.generator.parameters())
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.grad = gradient
        self.optimizer.step()
        self._recognised.copy_((scores.detach() < 0).float().mean())

    def _compute_mean_mismatch(self, logits: Tensor, given: Tensor, means: Tensor) -> Tensor:
        """Return the cross-entropy of the measured means and those of generated records, for each condition."""
        given = given if given.shape[-1] else given.new_ones(len(given), 1)
        counts = given.sum(dim=0)
        found = given.T @ self.features.means(logits) / counts.clamp_min(1.0)[:, None]
        found = torch.lerp(found, means, _RARE)  # so that the loss of features that were never generated is finite
        there = self.features.condition_on_presence(found)
        return counts @ self.features.loss(self.features.logits(there, least=0.0), means) / len(given)

    def _draw_conditions(self) -> Tensor:
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
