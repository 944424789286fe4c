"""A whole training of the two networks."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import wait
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sundog.models.gan.adversarial_step import MOMENTS, Duel, Generator, Networks
from sundog.models.gan.conditional_means import Start
from sundog.models.gan.critic_clipping import KeptGroups, groups_for, policy_for
from sundog.models.gan.critic_schedule import Balance
from sundog.models.gan.decaying_optimizer import Fading
from sundog.models.gan.label_classifier import Namer
from sundog.models.gan.networks import Judge, Pairs, new_critic, new_generator
from sundog.models.gan.objectives import NonSaturating, Wasserstein
from sundog.models.gan.warm_start import play, seeded
from sundog.models.neural.features import FeatureRows, Features
from sundog.models.neural.network_training import PIECE, Adam, fastest, graphed, initialised, warm_up
from sundog.models.neural.person_examples import PeopleRows
from sundog.models.protocol import FitContext
from sundog.privacy.ledger import Ledger
from sundog.training.schedules import Schedule, cosine
from sundog.training.speed.options import EXACT, Speed
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer
from sundog.training.training_plan import TrainingPlan

_LAST_RATE = 0.1  # of the first
_DECAY = 0.99  # of the average of the generator's weights
_PIECE = 4096  # records that are in memory at once
_PUBLIC = 256  # records, whose norms are bounds
_BATCH = 1024  # records that the generator makes in a step


def train(
    features: Features,
    examples: FeatureRows | PeopleRows,
    settings: Mapping[str, Any],
    begun: Start,
    namer: Namer | None,
    ledger: Ledger,
    context: FitContext,
) -> Networks:
    """Trains a generator and its critic.

    Args:
        features: of the records.
        examples: the records, or people.
        settings: of the model.
        begun: what the generator starts from.
        namer: names what the generator is told; None where nobody does.
        ledger: is charged for the critic's steps.
        context: where, and who watches.
    """
    training = TrainingPlan(**settings["training"])
    schedule = cosine(training.steps, last=_LAST_RATE)
    duel = _duel(features, settings, begun, namer, schedule, context)
    wait([warm_up(context.device)])
    public = None if context.public is None else features.examples(context.public, context.device)
    if public is not None and settings["warm"]:
        rate = settings["learning_rate"]
        play(duel, public, steps=settings["warm"], learning_rate=rate, seed=context.seed, progress=context.progress)
    with seeded(context.seed, duel.prior.device):
        step = _step(duel, training, ledger, settings, public)
    trainer = Trainer(
        graphed(step, examples),
        examples,
        training,
        ledger,
        seed=context.seed,
        progress=context.progress,
        checkpoint=context.checkpoint,
        schedule=schedule,
        after=duel.after,
        keep={**duel.kept, "groups": KeptGroups(step.groups)},
        largest_piece=max(1, min(_PIECE, PIECE // features.width) // features.schema.cap),
        show_loss=context.show_loss,
    )
    trainer.run()
    duel.average.apply()
    return Networks(duel.generator, duel.critic).cpu()


def _duel(
    features: Features,
    settings: Mapping[str, Any],
    begun: Start,
    namer: Namer | None,
    schedule: Schedule,
    context: FitContext,
) -> Duel:
    start, prior = begun.logits(features), begun.shares
    (both,) = initialised(lambda: _networks(features, settings, start, prior), 1, context.seed)
    both.to(context.device)
    return Duel(
        features,
        both.generator,
        both.critic,
        NonSaturating() if settings["objective"] == "non-saturating" else Wasserstein(settings["penalty"]),
        None if namer is None else namer.to(context.device),
        prior.to(context.device),
        Balance(settings["critic_steps"], settings["recognised"]),
        batch=_BATCH,
        learning_rate=settings["generator_rate"],
        decay=_DECAY,
        schedule=schedule,
        means=features.means(start).to(context.device) if settings["anchor"] else None,
        anchor=settings["anchor"],
    )


def _networks(features: Features, settings: Mapping[str, Any], start: Tensor, prior: Tensor) -> Networks:
    told, hidden = features.at(settings["condition"]), settings["hidden"]
    values = told.stop - told.start
    body = new_generator(features, settings["shape"], values, hidden=hidden, latent=settings["latent"])
    means = features.means(start)
    means = prior @ means if len(prior) else means[0]
    return Networks(
        Generator(body, start, told), new_critic(features, settings["shape"], told, hidden=hidden, means=means)
    )


def _step(
    duel: Duel, training: TrainingPlan, ledger: Ledger, settings: Mapping[str, Any], public: FeatureRows | None
) -> PrivateStep:
    device = duel.prior.device
    some = None if public is None else public.take(np.arange(min(_PUBLIC, len(public))))
    groups = groups_for(duel, settings, some)
    return PrivateStep(
        module=duel.critic,
        private_loss=duel.loss,
        groups=groups,
        policy=policy_for(duel, settings, some, groups, training),
        optimizer=_optimizer(duel.critic, settings, device),
        noise=ledger.noise,
        noise_multiplier=training.noise_multiplier,
        expected_batch=training.expected_batch,
        speed=Speed(precision="tf32") if device.type == "cuda" else EXACT,  # norms allow for what it rounds
    )


def _optimizer(critic: Judge, settings: Mapping[str, Any], device: torch.device) -> torch.optim.Optimizer:
    """Adam; for pairs, an average of recent gradients."""
    rate = settings["learning_rate"]
    if isinstance(critic, Pairs):
        return Fading(critic.parameters(), rate, gain=critic.gain)
    return Adam(critic.parameters(), lr=rate, betas=MOMENTS, **fastest(device))
