"""A variational autoencoder (Kingma and Welling 2014), trained by DP-SGD: the dependences between all columns at once.

1. An encoder turns a record x into a normal distribution of latent variables z, a decoder turns z into a distribution
of records. 2. Both minimise −log p(x | z) + β · KL(q(z | x) ‖ N(0, I)); the gradient of each record is clipped and the
sum is noised (docs/training.md). 3. The weights are averaged over the last steps, which costs nothing. 4. To sample,
draw z from N(0, I) and a record from the decoder; under conditions, draw many z and take those that explain them.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ReleaseError, SundogError
from sundog.models.base import Codes, Plan, State, Where, Workshop
from sundog.models.features import Compact, FeatureRows, Features, joined
from sundog.privacy.events import Charge, SampledGaussian
from sundog.privacy.ledger import Budget, Ledger
from sundog.training.clipping import Fixed
from sundog.training.graphs import GraphedStep, capacity_for
from sundog.training.groups import flat
from sundog.training.plan import TrainingPlan, plan_training
from sundog.training.schedules import cosine, warmed_up
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer

_PURPOSE = "training"
_LARGEST_SIZE = 2**16  # of a layer
_LARGEST_LOGIT = 1e4  # from whatever weights a file brings
_ROWS = 10_000  # drawn at a time
_NUMBERS = 2**23  # logits at a time, where records are wide
_CANDIDATES, _FEWEST_CANDIDATES = 16, 4096  # for each conditioned record, and for all of them


class Network(nn.Module):
    """Encoder and decoder; everything works on the last dimension."""

    beta: Tensor

    def __init__(self, features: Features, *, hidden: int, latent: int) -> None:
        super().__init__()
        self.features = features
        self.encoder = nn.Sequential(nn.Linear(features.width, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = _decoder(features.width, hidden=hidden, latent=latent)
        self.register_buffer("beta", torch.zeros(1))  # the weight of the divergence in the next step

    def loss(self, batch: Compact) -> Tensor:
        """The negative evidence lower bound of each record, with one draw of z."""
        x = self.features.dense(batch)
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        z = mean + (log_variance / 2).exp() * torch.randn_like(mean)
        divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=-1) / 2
        loss: Tensor = self.features.loss(self.decoder(z), x) + self.beta * divergence
        return loss


class Vae:
    """A variational autoencoder of whole records."""

    name: ClassVar[str] = "vae"
    options: ClassVar[frozenset[str]] = frozenset({"device", "show_loss"})
    defaults: ClassVar[Mapping[str, Any]] = {
        "hidden": 200,
        "latent": 8,
        "batch": None,  # by the number of records
        "epochs": 30,
        "clip": 1.0,
        "learning_rate": 1e-2,
        "beta": 1.0,
        "warmup": 0.0,  # the part of all steps in which β rises from 0
    }
    counts_records: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    def __init__(self, schema: Schema, decoder: nn.Sequential, records: int) -> None:
        self.features = Features(schema)
        self.decoder = decoder
        self.records = records
        first: Any = decoder[0]
        self.hidden, self.latent = int(first.out_features), int(first.in_features)

    # --- learning ---

    @classmethod
    def check(cls, schema: Schema, settings: Mapping[str, Any]) -> None:
        """Refuses settings that are none, and people with several records."""
        if schema.unit is not None and schema.cap > 1:
            raise SundogError(
                f"model 'vae' protects single records, and people have up to {schema.cap} here; set `cap: 1` in the "
                "schema, or use the model independent"
            )
        for name, (is_right, what) in _SETTINGS.items():
            if not is_right(settings[name]):
                raise SundogError(f"model 'vae': setting {name!r} must be {what}, not {settings[name]!r}")

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
        """Steps, batches and noise, from the number of records that is public."""
        cls.check(schema, settings)
        count = max(1, records or 0)  # a noisy count may be anything
        batch = settings["batch"] or default_batch(count)
        training = plan_training(budget, already=already, records=count, batch=batch, epochs=settings["epochs"])
        charges = (training.charge(training.steps),)
        return Plan(charges, {**settings, "records": count, "training": training.to_dict()})

    @classmethod
    def fit(cls, records: Records, plan: Plan, ledger: Ledger, workshop: Workshop) -> Self:
        """Trains, and takes the average of the weights in the last steps."""
        settings = plan.settings
        training = TrainingPlan(**settings["training"])
        features = Features(records.schema)
        network = _new_network(features, settings, workshop.seed).to(workshop.device)
        examples = features.examples(records, workshop.device)
        rise = warmed_up(round(settings["warmup"] * training.steps))

        def set_beta(step: int) -> None:
            network.beta.fill_(settings["beta"] * rise(step))

        set_beta(0)
        trainer = Trainer(
            _new_step(network, examples, training, settings, ledger),
            examples,
            training,
            ledger,
            seed=workshop.seed,
            progress=workshop.progress,
            checkpoint=workshop.checkpoint,
            schedule=cosine(training.steps, last=0.1),
            average=_decay(training.steps),
            after=lambda step: set_beta(step + 1),  # where it is kept, together with the weights
            show_loss=workshop.show_loss,
        )
        trainer.run()
        if trainer.average is not None:
            trainer.average.apply()
        return cls(records.schema, network.decoder.cpu(), settings["records"])

    # --- sampling ---

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draws z from the prior, or from those that explain the conditions, and a record from each."""
        rows = max(1, min(_ROWS, _NUMBERS // self.features.width))
        return joined([self._draw(min(rows, n - start), rng, where) for start in range(0, max(1, n), rows)])

    def _draw(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        z = self._explaining(n, rng, where) if where and n else self._latents(n, rng)
        codes = self.features.sample(self._logits(z), rng)
        for name, code in where.items():
            codes[name] = np.full(n, code, self.features.schema.columns[name].dtype)
        return codes

    def _explaining(self, n: int, rng: np.random.Generator, where: Where) -> npt.NDArray[np.float32]:
        """Importance resampling: z in proportion to the likelihood of the conditions, out of many drawn freely."""
        count = max(_FEWEST_CANDIDATES, _CANDIDATES * n)
        z = self._latents(count, rng)
        rows = max(1, min(_ROWS, _NUMBERS // self.features.width))
        parts = [self._logits(z[start : start + rows]) for start in range(0, count, rows)]
        fit = torch.cat([self.features.log_likelihood(part, where) for part in parts]).double().softmax(dim=0)
        weights = fit.numpy()
        return z[rng.choice(count, n, p=weights / weights.sum())]

    def _latents(self, n: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
        return rng.standard_normal((n, self.latent), np.float32)

    @torch.no_grad()
    def _logits(self, z: npt.NDArray[np.float32]) -> Tensor:
        logits: Tensor = self.decoder(torch.from_numpy(z))
        return logits.nan_to_num(0.0).clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT)

    # --- the release ---

    def unexplained(self, charges: Sequence[Charge]) -> list[str]:
        """The weights, unless a training was paid for."""
        paid = any(isinstance(charge.event, SampledGaussian) and charge.purpose == _PURPOSE for charge in charges)
        return [] if paid else ["training of the weights"]

    def state(self) -> State:
        """The decoder: the encoder has done its work."""
        weights = {name: tensor.detach().numpy() for name, tensor in self.decoder.state_dict().items()}
        return State(weights, {"hidden": self.hidden, "latent": self.latent, "records": self.records})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Checks that the weights are those of a decoder of this schema."""
        sizes = {"hidden": _LARGEST_SIZE, "latent": _LARGEST_SIZE, "records": 10**12}
        if set(state.config) != set(sizes) or any(
            type(state.config[name]) is not int or not 0 < state.config[name] <= most for name, most in sizes.items()
        ):
            raise ReleaseError("the configuration is not that of a `vae` model")
        hidden, latent = state.config["hidden"], state.config["latent"]
        width = Features(schema).width
        shapes = {"0.weight": (hidden, latent), "0.bias": (hidden,), "2.weight": (width, hidden), "2.bias": (width,)}
        if {name: tensor.shape for name, tensor in state.tensors.items()} != shapes:
            raise ReleaseError("the weights are not those of a `vae` model of this schema")
        if not all(tensor.dtype == np.float32 and np.isfinite(tensor).all() for tensor in state.tensors.values()):
            raise ReleaseError("the weights of the `vae` model are not all finite numbers")
        decoder = _decoder(width, hidden=hidden, latent=latent)
        decoder.load_state_dict({name: torch.from_numpy(tensor.copy()) for name, tensor in state.tensors.items()})
        return cls(schema, decoder, state.config["records"])


def default_batch(records: int) -> int:
    """A thirty-second of the records, and 64 at least: with 30 epochs about a thousand steps, however many there are.

    On Adult fewer records in more steps, or more of them at the same number of steps, were worse or no better.

    >>> default_batch(1000), default_batch(32_000)
    (64, 1000)
    """
    return max(64, records // 32)


def _decay(steps: int) -> float:
    """Of the moving average: over the last tenth of the steps, or a thousand."""
    return min(0.999, 1 - 10 / (steps + 10))


def _decoder(width: int, *, hidden: int, latent: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, width))


def _new_network(features: Features, settings: Mapping[str, Any], seed: int | None) -> Network:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(secrets.randbits(62) if seed is None else seed)
        return Network(features, hidden=settings["hidden"], latent=settings["latent"])


def _new_step(
    network: Network, examples: FeatureRows, training: TrainingPlan, settings: Mapping[str, Any], ledger: Ledger
) -> PrivateStep | GraphedStep:
    """What a step does; on a GPU as one graph over data that lies there."""
    on_gpu = examples.device.type == "cuda"
    kind: dict[str, Any] = {"capturable": True, "foreach": True} if on_gpu else {"fused": True}
    step = PrivateStep(
        module=network,
        private_loss=network.loss,
        groups=flat(network),
        policy=Fixed(torch.full((1,), float(settings["clip"]), device=examples.device)),
        optimizer=torch.optim.Adam(network.parameters(), lr=settings["learning_rate"], **kind),
        noise=ledger.noise,
        noise_multiplier=training.noise_multiplier,
        expected_batch=training.expected_batch,
    )
    if not on_gpu or not len(examples):
        return step
    data = examples.take(np.arange(len(examples)))
    return GraphedStep(step, data, capacity=capacity_for(training.expected_batch))


def _is_size(value: object) -> bool:
    return type(value) is int and 0 < value <= _LARGEST_SIZE


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf  # type: ignore[operator]


def _is_positive(value: object) -> bool:
    return _is_number(value) and value != 0


_SETTINGS: dict[str, tuple[Any, str]] = {
    "hidden": (_is_size, f"a whole number from 1 to {_LARGEST_SIZE}"),
    "latent": (_is_size, f"a whole number from 1 to {_LARGEST_SIZE}"),
    "batch": (lambda value: value is None or (type(value) is int and value > 0), "a whole number above 0"),
    "epochs": (_is_positive, "a number above 0"),
    "clip": (_is_positive, "a number above 0"),
    "learning_rate": (_is_positive, "a number above 0"),
    "beta": (_is_number, "a number, 0 or more"),
    "warmup": (lambda value: _is_number(value) and value <= 1, "a number from 0 to 1"),
}
