"""A generative adversarial network, trained by DP-SGD (Zhang et al. 2018, Frigerio et al. 2019, Bie et al. 2023).

1. For images, a classifier learns to name the column that the generator is told. 2. The means of all features are
measured, for each value of that column, and the generator starts from them. 3. A critic learns to tell records from
generated ones, the gradient of each record clipped and their sum noised; after each step, or a few, the generator
takes one towards what the critic takes for real and the classifier names rightly (duel.py). 4. The weights of the
generator are averaged over its last steps, and made to agree with the means again. 5. The generator is released; the
critic and the classifier are not.
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
from sundog.models.gan.conditional_means import Start, measured_start, people_charge
from sundog.models.gan.configuration import DEFAULTS, refuse_wrong, settled
from sundog.models.gan.label_classifier import plan_naming, trained_namer
from sundog.models.gan.networks import new_generator
from sundog.models.gan.released import ReleasedGan, assumed_by_gan, unpaid_gan
from sundog.models.gan.training import train
from sundog.models.neural.decoder_sampling import Decoded
from sundog.models.neural.features import FeatureRows, Features
from sundog.models.neural.mean_matching import calibrating
from sundog.models.neural.network_training import (
    plan_network,
    rows_at_a_time,
    warm_up,
)
from sundog.models.neural.person_examples import PeopleRows
from sundog.models.protocol import Codes, FitContext, Plan, State, Where
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.measure_once import check_unpaid
from sundog.training.speed.threads import one_thread

_OF_PEOPLE = 4  # one is in a step: there are few of them
_CERTAIN = 2.0  # a mean that is so many times its noise
_CALIBRATION, _FEWEST, _ALL = 2048, 128, 2**15  # records with which means are compared: of a value, and of all


class Gan:
    """A generator of whole records."""

    name: ClassVar[str] = "gan"
    options: ClassVar[frozenset[str]] = frozenset({"device", "show_loss", "public"})
    defaults: ClassVar[Mapping[str, Any]] = DEFAULTS
    counts_records: ClassVar[bool] = True
    choices: Mapping[str, int] = {}

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
        rows = rows_at_a_time(generator.body.latent + len(prior), self.features.width, *sizes)
        self.decoded = Decoded(self.features, generator, generator.body.latent, rows, config["condition"], prior)

    @property
    def assumptions(self) -> Sequence[str]:
        """Where training began with records that were given as public, or took its bounds from them."""
        return assumed_by_gan(self.config)

    # --- learning ---

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        """Refuses settings that are none."""
        refuse_wrong(settings)

    @classmethod
    def check(cls, schema: Schema, settings: Mapping[str, Any]) -> None:
        """Refuses settings that are none."""
        settled(schema, settings)

    @classmethod
    def plan(
        cls,
        schema: Schema,
        budget: Budget,
        *,
        already: Sequence[Charge],
        records: int | None,
        settings: Mapping[str, Any],
    ) -> Plan:
        """Means, steps, batches and noise, from the number of records that is public."""
        settings = settled(schema, settings)
        count = max(1, records or 0)
        counting = [people_charge(budget)] if has_people(schema) else []
        naming = plan_naming(budget, share=settings["naming"], records=count) if settings["naming"] else None
        units = math.ceil(count / schema.cap) if counting else count
        if counting and settings["batch"] is None:
            settings["batch"] = max(1, units // _OF_PEOPLE)
        first = [*counting, *([] if naming is None else [naming.charge(naming.steps)])]
        plan = plan_network(
            budget,
            already=[*already, *first],
            records=units,
            settings=settings,
        )
        own = {"records": count, "counting": counting, "naming": None if naming is None else naming.to_dict()}
        return Plan((*first, *plan.charges), {**plan.settings, **own})

    @classmethod
    @one_thread()
    def fit(cls, records: Records, plan: Plan, ledger: Ledger, context: FitContext) -> Self:
        """Trains one on all records."""
        check_unpaid(plan.charges, ledger)
        warm_up(context.device)
        settings, features = plan.settings, Features(records.schema)
        rows = PeopleRows if has_people(records.schema) else FeatureRows
        examples = rows(features, records, context.device)
        namer = trained_namer(features, examples, settings, ledger, context) if settings["naming"] else None
        begun = measured_start(features, records, settings, ledger, context)
        both = train(features, examples, settings, begun, namer, ledger, context)
        config = {name: settings[name] for name in ("shape", "hidden", "latent", "condition", "records", "public")}
        config["named"] = settings["naming"] is not None
        critic = State(_arrays(both.critic), {name: settings[name] for name in ("shape", "hidden", "condition")})
        model = cls(records.schema, both.generator, config, begun.shares.log(), critic)
        model._calibrate(begun, context.seed)
        return model

    @torch.no_grad()
    def _calibrate(self, begun: Start, seed: int | None) -> None:
        """Moves what the generator starts from, for each value it is told, until it has the measured means."""
        told = self.features.schema.columns.get(self.config["condition"] or "")
        each = max(_FEWEST, min(_CALIBRATION, _ALL // len(begun.means)))
        for value, (mean, scale) in enumerate(zip(begun.means, begun.scales, strict=True)):
            z = np.random.default_rng(seed).standard_normal((each, self.decoded.latent), np.float32)
            given = np.zeros((len(z), len(self.prior)), np.float32)
            if told is not None:
                given[:, value] = 1.0
            logits = self.decoded.logits(np.concatenate([z, given], axis=1))
            self.generator.start[value] += calibrating(self.features, logits, mean, least=_CERTAIN * scale)

    # --- sampling ---

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draws latent variables, or those that explain the conditions, and a record from each."""
        return self.decoded.sample(n, rng, where)

    def log_evidence(self, where: Where) -> float:
        """The logarithm of the probability of the conditions."""
        return self.decoded.log_evidence(where)

    # --- the release ---

    def unexplained(self, charges: Sequence[Charge]) -> list[str]:
        """The means and the weights, unless they were paid for."""
        return unpaid_gan(self.features.schema, self.config, charges)

    def state(self) -> State:
        """The generator, and how often it is told what."""
        prior = {"prior": self.prior.numpy()} if len(self.prior) else {}
        return State({**_arrays(self.generator), **prior}, self.config)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Checks that the weights are those of a generator of this schema."""
        ReleasedGan(schema, state)
        tensors = {name: torch.from_numpy(tensor.copy()) for name, tensor in state.tensors.items()}
        prior = tensors.pop("prior", torch.zeros(0))
        with torch.device("meta"):  # so that nothing is drawn, and nothing takes memory
            generator = _new_generator(Features(schema), state.config)
        generator.load_state_dict(tensors, assign=True)
        return cls(schema, generator, state.config, prior)


def _arrays(module: nn.Module) -> dict[str, Any]:
    return {name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}


def _new_generator(features: Features, config: Mapping[str, Any]) -> Generator:
    told = features.at(config["condition"])
    values = told.stop - told.start
    body = new_generator(features, config["shape"], values, hidden=config["hidden"], latent=config["latent"])
    return Generator(body, torch.zeros(max(1, values), features.width), told)
