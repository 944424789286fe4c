"""A generative adversarial network, trained by DP-SGD (Zhang et al. 2018, Frigerio et al. 2019, Bie et al. 2023).

1. For images, a classifier learns to predict the column on which the generator is conditioned. 2. The means of all
features are measured, for each value of that column, and the generator starts from them. 3. A critic learns to
distinguish records from generated ones, the gradient of each record clipped and their sum noised; after each step, or a
few, the generator takes one towards what the critic takes for real and the classifier predicts correctly
(adversarial_step.py). 4. The weights of the generator are averaged over its last steps, and made to agree with the
means again. 5. The generator is released; the critic and the classifier are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.models.gan.adversarial_step import Generator
from sundog.models.gan.architectures import has_people
from sundog.models.gan.conditional_means import ConditionalMeans, make_people_charge, measure_conditional_means
from sundog.models.gan.configuration import GanConfiguration, resolve
from sundog.models.gan.gan_plan import GanPlan, list_first_charges
from sundog.models.gan.gan_training import train_gan
from sundog.models.gan.label_classifier import plan_label_classifier, train_label_classifier
from sundog.models.gan.networks import new_generator
from sundog.models.gan.released import HAS_CLASSIFIER, ReleasedGan
from sundog.models.neural.decoder_sampling import DecoderSampler
from sundog.models.neural.features import FeatureRows, Features
from sundog.models.neural.mean_matching import match_means
from sundog.models.neural.network_training import (
    choose_chunk_size,
    plan_network,
    warm_up,
)
from sundog.models.neural.person_examples import PeopleRows
from sundog.models.protocol import Codes, FitContext, State, Where
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.measure_once import check_unpaid
from sundog.training.speed.threads import use_one_thread

_OF_PEOPLE = 4  # one person in four is in a step: there are few people
_CERTAIN = 2.0  # means are matched if they are this many times their noise
_CALIBRATION, _FEWEST, _ALL = 2048, 128, 2**15  # records with which means are compared, for a value and for all values


class Gan:
    """A generator of whole records."""

    name: ClassVar[str] = "gan"

    def __init__(
        self,
        schema: Schema,
        generator: Generator,
        config: Mapping[str, Any],
        prior: Tensor,
        private: State | None = None,
    ) -> None:
        self.features = Features(schema)
        self.generator = generator
        self.config = dict(config)
        self.records = config["records"]
        self.prior = prior
        self.private = private
        sizes = [tensor.shape[0] for tensor in generator.parameters()]
        rows = choose_chunk_size(generator.body.latent + len(prior), self.features.width, *sizes)
        self.sampler = DecoderSampler(self.features, generator, generator.body.latent, rows, config["condition"], prior)

    # --- learning ---

    @classmethod
    def plan(
        cls,
        schema: Schema,
        budget: Budget,
        configuration: GanConfiguration,
        *,
        already: Sequence[Charge],
        records: int | None,
    ) -> GanPlan:
        """Plan means, steps, batches and noise from the public number of records."""
        settings = resolve(configuration, schema)
        count = max(1, records or 0)
        people = make_people_charge(budget) if has_people(schema) else None
        units = count if people is None else math.ceil(count / schema.cap)
        share = settings.classifier
        classifier = plan_label_classifier(budget, share=share, records=count) if share else None
        network = plan_network(
            budget,
            already=[*already, *list_first_charges(people, classifier)],
            records=units,
            share=settings.means,
            batch=max(1, units // _OF_PEOPLE) if people is not None and settings.batch is None else settings.batch,
            epochs=settings.epochs,
        )
        return GanPlan(settings, count, network, people, classifier)

    @classmethod
    @use_one_thread()
    def fit(cls, records: Records, plan: GanPlan, ledger: Ledger, context: FitContext) -> Self:
        """Train a generator on all records."""
        check_unpaid(plan.charges, ledger)
        warm_up(context.device)
        settings, features = plan.settings, Features(records.schema)
        rows = PeopleRows if has_people(records.schema) else FeatureRows
        examples = rows(features, records, context.device)
        classifier = None
        if plan.classifier is not None:
            classifier = train_label_classifier(
                features, examples, settings, plan.classifier, ledger, context, records=plan.records
            )
        measured = measure_conditional_means(
            features,
            records,
            plan.network.means,
            ledger,
            context,
            condition=settings.condition,
            count=float(plan.records),
            people_charge=plan.people,
        )
        both = train_gan(features, examples, plan, measured, classifier, ledger, context)
        config = {name: getattr(settings, name) for name in ("shape", "hidden", "latent", "condition", "public")}
        config |= {"records": plan.records, HAS_CLASSIFIER: plan.classifier is not None}
        critic = State(_to_arrays(both.critic), {name: config[name] for name in ("shape", "hidden", "condition")})
        model = cls(records.schema, both.generator, config, measured.shares.log(), critic)
        model._calibrate(measured, context.seed)
        return model

    @torch.no_grad()
    def _calibrate(self, measured: ConditionalMeans, seed: int | None) -> None:
        """Shift the logits that the generator starts from until its records have the measured means."""
        condition = self.features.schema.columns.get(self.config["condition"] or "")
        each = max(_FEWEST, min(_CALIBRATION, _ALL // len(measured.means)))
        for value, (mean, scale) in enumerate(zip(measured.means, measured.scales, strict=True)):
            z = np.random.default_rng(seed).standard_normal((each, self.sampler.latent), np.float32)
            given = np.zeros((len(z), len(self.prior)), np.float32)
            if condition is not None:
                given[:, value] = 1.0
            logits = self.sampler.logits(np.concatenate([z, given], axis=1))
            self.generator.start[value] += match_means(self.features, logits, mean, least=_CERTAIN * scale)

    # --- sampling ---

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draw latent variables, given the conditions, and one record from each."""
        return self.sampler.sample(n, rng, where)

    def log_evidence(self, where: Where) -> float:
        """Return the logarithm of the probability of the conditions."""
        return self.sampler.log_evidence(where)

    # --- the release ---

    def state(self) -> State:
        """Return the generator, and the logits of the condition."""
        prior = {"prior": self.prior.numpy()} if len(self.prior) else {}
        return State({**_to_arrays(self.generator), **prior}, self.config)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Return the model of a state; raise ReleaseError if it is not that of a generator of this schema."""
        ReleasedGan(schema, state)
        tensors = {name: torch.from_numpy(tensor.copy()) for name, tensor in state.tensors.items()}
        prior = tensors.pop("prior", torch.zeros(0))
        with torch.device("meta"):  # no random numbers are drawn and no memory is allocated
            generator = _new_generator(Features(schema), state.config)
        generator.load_state_dict(tensors, assign=True)
        return cls(schema, generator, state.config, prior)


def _to_arrays(module: nn.Module) -> dict[str, Any]:
    return {name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}


def _new_generator(features: Features, config: Mapping[str, Any]) -> Generator:
    condition = features.at(config["condition"])
    values = condition.stop - condition.start
    body = new_generator(features, config["shape"], values, hidden=config["hidden"], latent=config["latent"])
    return Generator(body, torch.zeros(max(1, values), features.width), condition)
