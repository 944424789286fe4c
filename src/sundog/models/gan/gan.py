"""A generative adversarial network, trained by DP-SGD (Zhang et al. 2018, Frigerio et al. 2019, Bie et al. 2023).

1. The means of all features are measured, for each value of the column that the generator is told, and the generator
starts from them. 2. A critic learns to tell records from generated ones, the gradient of each record clipped and their
sum noised; now and then the generator takes a step towards what the critic takes for real (duel.py). 3. The weights of
the generator are averaged over its last steps, and made to agree with the means again. 4. The generator is released;
the critic is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from sundog.data.columns import ScalarColumn
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ReleaseError, SundogError
from sundog.models.base import Codes, Plan, State, Where, Workshop
from sundog.models.calibration import calibrating
from sundog.models.decoded import Decoded
from sundog.models.features import FeatureRows, Features
from sundog.models.gan.bounds import ALL, KINDS, PUBLIC, needs_public
from sundog.models.gan.duel import Generator
from sundog.models.gan.networks import SHAPES, best_shape, has_people, new_generator, refuse_shape
from sundog.models.gan.start import Start, measured_start, people_charge, unpaid_people
from sundog.models.gan.training import train
from sundog.models.kept import refuse_early
from sundog.models.means import unpaid_means
from sundog.models.neural import (
    SIZE,
    Setting,
    check_settings,
    is_number,
    is_positive,
    is_size,
    is_whole,
    plan_network,
    rows_at_a_time,
    unpaid_training,
    warm_up,
)
from sundog.models.people import PeopleRows
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.training.plan import TrainingPlan

OBJECTIVES = ("non-saturating", "wasserstein")
PUBLIC_RECORDS = "the records that were given as public, from which the training began or took its clipping bounds"
_WARM = 300  # steps, as in the dp-GAN text
_CERTAIN = 2.0  # a mean that is so many times its noise
_CALIBRATION = 2048  # records with which means are compared


_PAIRS = {"epochs": 30, "learning_rate": 0.04, "critic_steps": 1, "recognised": 0.0, "anchor": 1.0, "means": 0.25}
_IMAGES = {"epochs": 100, "learning_rate": 5e-4, "critic_steps": 1, "recognised": 0.6, "anchor": 0.0, "means": 0.05}
_OTHERS = {"epochs": 100, "learning_rate": 1e-3, "critic_steps": 4, "recognised": 0.0, "anchor": 0.0, "means": 0.05}


class Gan:
    """A generator of whole records."""

    name: ClassVar[str] = "gan"
    options: ClassVar[frozenset[str]] = frozenset({"device", "show_loss", "public"})
    defaults: ClassVar[Mapping[str, Any]] = {
        "shape": "auto",  # or mlp, pairs, conv, lstm
        "objective": "non-saturating",  # or wasserstein
        "hidden": 128,
        "latent": 32,
        "condition": "auto",  # a column that the generator is told; or null
        "batch": None,  # by the number of records
        "epochs": None,  # this and what else is null: by shape
        "clip": 1.0,  # or public: the mean norm of public records
        "decay": 1.0,  # to what part of itself the clipping bound falls
        "groups": ALL,  # what is clipped together; or weights and biases; or a number of clusters, by public records
        "warm": None,  # steps on public records before the first on private ones; 300, if there are any
        "learning_rate": None,
        "generator_rate": 1e-3,
        "critic_steps": None,  # for one of the generator, to begin with
        "recognised": None,  # the share of generated records below which the critic gets more steps
        "naming": 0.0,  # how much it counts that records show the value that the generator was told
        "anchor": None,  # how much it counts that generated records have the measured means
        "penalty": 10.0,  # of a slope that is not one, in the Wasserstein game
        "means": None,  # the share of the budget for the means
        "public": False,  # whether there are public records: an option of its own
    }
    counts_records: ClassVar[bool] = True
    resumes: ClassVar[bool] = True
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
        return [PUBLIC_RECORDS] if self.config["public"] else []

    # --- learning ---

    @classmethod
    def check(cls, schema: Schema, settings: Mapping[str, Any]) -> None:
        """Refuses settings that are none, and people with several records."""
        settings = _settled(schema, settings)
        check_settings(cls.name, settings, _SETTINGS)
        for name in needs_public(settings):
            if not settings["public"]:
                raise SundogError(f"model 'gan': {name} = {settings[name]} needs public records; add --public FILE")
        if settings["clip"] == PUBLIC and settings["decay"] != 1.0:
            raise SundogError("model 'gan': a bound that follows public records has no decay of its own; leave it out")
        refuse_shape(schema, _shape(schema, settings))
        told = _condition(schema, settings)
        if told is not None and not (type(told) is str and isinstance(schema.columns.get(told), ScalarColumn)):
            raise SundogError(
                f"model 'gan': setting 'condition' must be the name of a column with one value, not {told!r}"
            )
        if told is not None and has_people(schema):
            raise SundogError(
                f"model 'gan': a person has up to {schema.cap} records here, which may differ in {told!r}; leave "
                "'condition' out, or set `cap: 1` in the schema"
            )

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
        cls.check(schema, settings)
        settings = _settled(schema, settings)
        warm = _WARM * settings["public"] if settings["warm"] is None else settings["warm"]
        chosen = {"shape": _shape(schema, settings), "condition": _condition(schema, settings), "warm": warm}
        count = max(1, records or 0)
        counting = [people_charge(budget)] if has_people(schema) else []
        plan = plan_network(
            budget,
            already=[*already, *counting],
            records=math.ceil(count / schema.cap) if counting else count,
            settings={**settings, **chosen},
        )
        return Plan((*counting, *plan.charges), {**plan.settings, "records": count, "counting": counting})

    @classmethod
    def fit(cls, records: Records, plan: Plan, ledger: Ledger, workshop: Workshop) -> Self:
        """Trains one on all records."""
        refuse_early(plan.charges, ledger)
        warm_up(workshop.device)
        settings, features = plan.settings, Features(records.schema)
        begun = measured_start(features, records, settings, ledger, workshop)
        rows = PeopleRows if has_people(records.schema) else FeatureRows
        examples = rows(features, records, workshop.device)
        training = TrainingPlan(**settings["training"])
        both = train(features, examples, settings, training, begun.logits(features), begun.shares, ledger, workshop)
        config = {name: settings[name] for name in ("shape", "hidden", "latent", "condition", "records", "public")}
        critic = State(_arrays(both.critic), {name: settings[name] for name in ("shape", "hidden", "condition")})
        model = cls(records.schema, both.generator, config, begun.shares.log(), critic)
        model._calibrate(begun, workshop.seed)
        return model

    @torch.no_grad()
    def _calibrate(self, begun: Start, seed: int | None) -> None:
        """Moves what the generator starts from, for each value it is told, until it has the measured means."""
        told = self.features.schema.columns.get(self.config["condition"] or "")
        for value, (mean, scale) in enumerate(zip(begun.means, begun.scales, strict=True)):
            z = np.random.default_rng(seed).standard_normal((_CALIBRATION, self.decoded.latent), np.float32)
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
        people = unpaid_people(charges) if has_people(self.features.schema) else []
        return people + unpaid_means(charges) + unpaid_training(charges)

    def state(self) -> State:
        """The generator, and how often it is told what."""
        prior = {"prior": self.prior.numpy()} if len(self.prior) else {}
        return State({**_arrays(self.generator), **prior}, self.config)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Checks that the weights are those of a generator of this schema."""
        if not _is_config(state.config, schema):
            raise ReleaseError("the configuration is not that of a `gan` model")
        tensors = dict(state.tensors)
        with torch.device("meta"):  # so that nothing is drawn, and nothing takes memory
            generator = _new_generator(Features(schema), state.config)
        told = generator.told.stop - generator.told.start
        prior = tensors.pop("prior", None) if told else np.zeros(0, np.float32)
        shapes = {name: tuple(tensor.shape) for name, tensor in generator.state_dict().items()}
        if (
            {name: tensor.shape for name, tensor in tensors.items()} != shapes
            or prior is None
            or prior.shape != (told,)
        ):
            raise ReleaseError("the weights are not those of a `gan` model of this schema")
        if not all(tensor.dtype == np.float32 and np.isfinite(tensor).all() for tensor in state.tensors.values()):
            raise ReleaseError("the weights of the `gan` model are not all finite numbers")
        generator.load_state_dict(
            {name: torch.from_numpy(tensor.copy()) for name, tensor in tensors.items()}, assign=True
        )
        return cls(schema, generator, state.config, torch.from_numpy(prior.copy()))


def _arrays(module: nn.Module) -> dict[str, Any]:
    return {name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}


def _settled(schema: Schema, settings: Mapping[str, Any]) -> dict[str, Any]:
    """With what is right for the shape, where nothing is asked for."""
    own = {"pairs": _PAIRS, "conv": _IMAGES}.get(_shape(schema, settings), _OTHERS)
    return {**settings, **{name: value for name, value in own.items() if settings[name] is None}}


def _shape(schema: Schema, settings: Mapping[str, Any]) -> str:
    return best_shape(schema) if settings["shape"] == "auto" else str(settings["shape"])


def _condition(schema: Schema, settings: Mapping[str, Any]) -> str | None:
    """The label of images and series, where there is one; None for tables."""
    if settings["condition"] != "auto":
        return settings["condition"]  # type: ignore[no-any-return]
    scalars = [name for name, column in schema.columns.items() if isinstance(column, ScalarColumn)]
    is_label = len(scalars) == 1 and len(schema.columns) > 1 and not has_people(schema)
    return scalars[0] if is_label else None


def _new_generator(features: Features, config: Mapping[str, Any]) -> Generator:
    told = features.at(config["condition"])
    values = told.stop - told.start
    body = new_generator(features, config["shape"], values, hidden=config["hidden"], latent=config["latent"])
    return Generator(body, torch.zeros(max(1, values), features.width), told)


def _is_config(config: Mapping[str, Any], schema: Schema) -> bool:
    if set(config) != {"shape", "hidden", "latent", "condition", "records", "public"}:
        return False
    condition = config["condition"]
    try:
        refuse_shape(schema, config["shape"])
    except SundogError:
        return False
    return (
        config["shape"] in SHAPES
        and is_size(config["hidden"])
        and is_size(config["latent"])
        and is_whole(config["records"], 10**12)
        and type(config["public"]) is bool
        and (condition is None or (type(condition) is str and isinstance(schema.columns.get(condition), ScalarColumn)))
    )


_SETTINGS: Mapping[str, Setting] = {
    "shape": (lambda value: value in ("auto", *SHAPES), f"auto, {', '.join(SHAPES[:-1])} or {SHAPES[-1]}"),
    "objective": (lambda value: value in OBJECTIVES, " or ".join(OBJECTIVES)),
    "latent": SIZE,
    "clip": (lambda value: value == PUBLIC or is_positive(value), "a number above 0, or public"),
    "decay": (lambda value: is_positive(value) and value <= 1, "a number above 0 and at most 1"),
    "groups": (lambda value: value in (ALL, KINDS) or is_whole(value, 1000), f"{ALL}, {KINDS}, or a number of groups"),
    "warm": (lambda value: value in (None, 0) or is_whole(value, 10**6), "a whole number, 0 or more"),
    "generator_rate": (is_positive, "a number above 0"),
    "critic_steps": (lambda value: is_whole(value, 10**6), "a whole number above 0"),
    "recognised": (lambda value: is_number(value) and value < 1, "a share, 0 or more and below 1"),
    "naming": (is_number, "a number, 0 or more"),
    "anchor": (is_number, "a number, 0 or more"),
    "penalty": (is_number, "a number, 0 or more"),
}
