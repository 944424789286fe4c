"""The training of generator and critic."""

from __future__ import annotations

from concurrent.futures import wait

import numpy as np
import torch
from torch import Tensor

from sundog.models.gan.adversarial_step import MOMENTS, AdversarialGame, Generator, Networks
from sundog.models.gan.conditional_means import ConditionalMeans
from sundog.models.gan.configuration import GanSettings
from sundog.models.gan.critic_clipping import SavedGroups, choose_groups, choose_policy
from sundog.models.gan.critic_schedule import CriticSchedule
from sundog.models.gan.decaying_optimizer import DecayingOptimizer
from sundog.models.gan.gan_plan import GanPlan
from sundog.models.gan.label_classifier import LabelClassifier
from sundog.models.gan.networks import CriticNetwork, Pairs, new_critic, new_generator
from sundog.models.gan.objectives import NonSaturating, Wasserstein
from sundog.models.gan.warm_start import fix_seed, train_on_public
from sundog.models.gan.weight_normalisation import WeightNormalised
from sundog.models.neural.features import FeatureRows, Features
from sundog.models.neural.network_training import (
    PIECE,
    Adam,
    capture_step,
    choose_adam_options,
    initialise,
    run_training,
    warm_up,
)
from sundog.models.neural.person_examples import PeopleRows
from sundog.models.protocol import FitContext
from sundog.privacy.ledger import Ledger
from sundog.training.schedules import Schedule, make_cosine_schedule
from sundog.training.speed.options import EXACT, Speed
from sundog.training.step import PrivateStep
from sundog.training.training_plan import TrainingPlan

_LAST_RATE = 0.1  # the last learning rate, as a fraction of the first
_DECAY = 0.99  # of the average of the generator's weights
_PIECE = 4096  # records that are in memory at once
_PUBLIC = 256  # public records whose gradient norms set the clipping bounds
_BATCH = 1024  # records that the generator makes in a step


def train_gan(
    features: Features,
    examples: FeatureRows | PeopleRows,
    plan: GanPlan,
    measured: ConditionalMeans,
    classifier: LabelClassifier | None,
    ledger: Ledger,
    context: FitContext,
) -> Networks:
    """Train a generator and its critic.

    Args:
        features: of the records.
        examples: the records, or people.
        plan: of the model.
        measured: the means that the generator starts from.
        classifier: predicts the condition from the rest of a record; None where there is none.
        ledger: is charged for the critic's steps.
        context: the device, the seed, public records, the checkpoint and the progress callback.
    """
    settings, training = plan.settings, plan.network.training
    schedule = make_cosine_schedule(training.steps, last=_LAST_RATE)
    game = _new_game(features, settings, measured, classifier, schedule, context)
    wait([warm_up(context.device)])
    public = None if context.public is None else features.to_examples(context.public, context.device)
    if public is not None and settings.warm:
        train_on_public(
            game,
            public,
            steps=settings.warm,
            learning_rate=settings.learning_rate,
            seed=context.seed,
            progress=context.progress,
        )
    with fix_seed(context.seed, game.prior.device):
        step = _new_step(game, training, ledger, settings, public)
    run_training(
        capture_step(step, examples),
        examples,
        training,
        ledger,
        context,
        schedule=schedule,
        after=game.train_generator,
        keep={**game.stateful_parts, "groups": SavedGroups(step.groups)},
        largest_piece=max(1, min(_PIECE, PIECE // features.width) // features.schema.cap),
    )
    game.average.apply()
    return Networks(game.generator, game.critic).cpu()


def _new_game(
    features: Features,
    settings: GanSettings,
    measured: ConditionalMeans,
    classifier: LabelClassifier | None,
    schedule: Schedule,
    context: FitContext,
) -> AdversarialGame:
    start, prior = measured.logits(features), measured.shares
    (both,) = initialise(lambda: _new_networks(features, settings, start, prior), 1, context.seed)
    both.to(context.device)
    return AdversarialGame(
        features,
        both.generator,
        both.critic,
        NonSaturating() if settings.objective == "non-saturating" else Wasserstein(settings.penalty),
        None if classifier is None else classifier.to(context.device),
        prior.to(context.device),
        CriticSchedule(settings.critic_steps, settings.recognised),
        batch=_BATCH,
        learning_rate=settings.generator_rate,
        decay=_DECAY,
        schedule=schedule,
        means=features.means(start).to(context.device) if settings.anchor else None,
        anchor=settings.anchor,
    )


def _new_networks(features: Features, settings: GanSettings, start: Tensor, prior: Tensor) -> Networks:
    condition, hidden = features.at(settings.condition), settings.hidden
    values = condition.stop - condition.start
    body = new_generator(features, settings.shape, values, hidden=hidden, latent=settings.latent)
    means = features.means(start)
    means = prior @ means if len(prior) else means[0]
    critic = new_critic(features, settings.shape, condition, hidden=hidden, means=means, dropout=settings.dropout)
    return Networks(Generator(body, start, condition), critic)


def _new_step(
    game: AdversarialGame, training: TrainingPlan, ledger: Ledger, settings: GanSettings, public: FeatureRows | None
) -> PrivateStep:
    device = game.prior.device
    some = None if public is None else public.take(np.arange(min(_PUBLIC, len(public))))
    groups = choose_groups(game, settings, some)
    return PrivateStep(
        module=game.critic,
        private_loss=game.loss,
        groups=groups,
        policy=choose_policy(game, settings, some, groups, training),
        optimizer=_new_optimizer(game.critic, settings, device),
        noise=ledger.noise,
        noise_multiplier=training.noise_multiplier,
        expected_batch=training.expected_batch,
        speed=Speed(precision="tf32") if device.type == "cuda" else EXACT,  # norms are increased by its rounding
    )


def _new_optimizer(critic: CriticNetwork, settings: GanSettings, device: torch.device) -> torch.optim.Optimizer:
    """Return Adam; for pairs, an average of recent gradients."""
    rate = settings.learning_rate
    if isinstance(critic, Pairs):
        return DecayingOptimizer(critic.parameters(), rate, gain=critic.gain)
    kind = WeightNormalised if settings.weight_norm else Adam
    return kind(critic.parameters(), lr=rate, betas=MOMENTS, **choose_adam_options(device))
