"""A variational autoencoder (Kingma and Welling 2014), trained by DP-SGD: the dependences between all columns at once.

1. The means of all features are measured, and the decoder starts from them. 2. An encoder turns a record x into a
normal distribution of latent variables z, a decoder turns z into a distribution of records. 3. Both minimise −log p(x |
z) + β · KL(q(z | x) ‖ N(0, I)); the gradient of each record is clipped and the sum is noised (docs/training.md). 4. The
weights are averaged over the last steps, which costs nothing. 5. What distribution z has by then is measured, and the
decoder made to fit it (latent_moments.py). 6. To sample, draw z from N(0, I) and a record from the decoder; under
conditions, draw many z and take those that explain them.

With `condition`, the decoder is given the value of one column and z describes the rest; that column's own distribution
is among the means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.models.neural.decoder_sampling import DecoderSampler, replace_features
from sundog.models.neural.features import Compact, Features
from sundog.models.neural.mean_matching import match_means
from sundog.models.neural.network_training import (
    NetworkPlan,
    TrainableNetwork,
    choose_chunk_size,
    fit_networks,
    plan_network,
)
from sundog.models.neural.noisy_means import Floats, calibrate_share
from sundog.models.protocol import Codes, FitContext, Parts, State, Where
from sundog.models.vae.configuration import VaeConfiguration
from sundog.models.vae.latent_moments import fit_decoders_to_latents, make_latent_charge
from sundog.models.vae.released import MOST_MEASURED, ReleasedVae
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.measure_once import check_unpaid
from sundog.training.speed.threads import use_one_thread

_SMALL = 0.1  # what an untrained decoder may add to the means
_CERTAIN = 2.0  # means are matched if they are this many times their noise


class VaeNetwork(TrainableNetwork):
    """Encoder and decoder; everything works on the last dimension."""

    beta: Tensor
    prior: Tensor

    def __init__(self, features: Features, configuration: VaeConfiguration) -> None:
        super().__init__()
        self.features = features
        self.condition_at = features.at(configuration.condition)
        self.full_beta, self.warmup = configuration.beta, configuration.warmup
        hidden = [configuration.hidden] * configuration.layers
        latent = configuration.latent
        self.encoder = new_perceptron([features.width, *hidden, 2 * latent])
        self.decoder = new_perceptron([latent + _count(self.condition_at), *hidden, features.width])
        self.register_buffer("beta", torch.zeros(1))  # the weight of the divergence in the next step
        self.register_buffer("prior", torch.zeros(1, _count(self.condition_at)))  # logits of the condition

    def start_from(self, logits: Tensor) -> None:
        """Start with these logits for every z, apart from small weights."""
        last: Any = self.decoder[-1]
        with torch.no_grad():
            last.weight.mul_(_SMALL)
            last.bias.copy_(logits)
            self.prior.copy_(logits[self.condition_at])

    def loss(self, batch: Compact) -> Tensor:
        """Return the negative evidence lower bound of each record, with one draw of z."""
        x = self.features.to_dense(batch)
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        z = mean + (log_variance / 2).exp() * torch.randn_like(mean)
        divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=-1) / 2
        given = x[..., self.condition_at]
        logits = replace_features(
            self.decoder(torch.cat([z, given], dim=-1)), self.prior.expand_as(given), self.condition_at
        )
        loss: Tensor = self.features.loss(logits, x) + self.beta * divergence
        return loss

    def update_buffers(self, done: float) -> None:
        """Raise β to its value after this fraction of the steps."""
        self.beta.fill_(self.full_beta * min(1.0, done / self.warmup if self.warmup else 1.0))


@dataclass(frozen=True)
class VaePlan:
    """The public numbers of a fit.

    Args:
        configuration: of the autoencoder.
        network: means and training.
        moments_noise: noise multiplier of the moments of latent variables; None if there are too many to measure.
    """

    configuration: VaeConfiguration
    network: NetworkPlan
    moments_noise: float | None

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Those of the means, of the training, and of the moments."""
        moments = () if self.moments_noise is None else (make_latent_charge(self.moments_noise),)
        return (*self.network.charges, *moments)


class Vae:
    """A variational autoencoder of whole records."""

    name: ClassVar[str] = "vae"

    def __init__(
        self,
        schema: Schema,
        decoder: nn.Sequential,
        records: int,
        condition: str | None = None,
        prior: Tensor | None = None,
    ) -> None:
        self.features = Features(schema)
        self.decoder = decoder
        self.records = records
        self.condition = condition
        self.condition_at = self.features.at(condition)
        self.prior = torch.zeros(_count(self.condition_at)) if prior is None else prior
        self.sizes = [int(layer.out_features) for layer in decoder if isinstance(layer, nn.Linear)]
        first: Any = decoder[0]
        self.latent = int(first.in_features) - _count(self.condition_at)
        rows = choose_chunk_size(int(first.in_features), *self.sizes)
        self.sampler = DecoderSampler(self.features, decoder, self.latent, rows, condition, self.prior)

    # --- learning ---

    @classmethod
    def plan(
        cls,
        schema: Schema,
        budget: Budget,
        configuration: VaeConfiguration,
        *,
        already: Sequence[Charge],
        records: int | None,
    ) -> VaePlan:
        """Plan means, steps, batches, noise and latent moments from the public number of records."""
        configuration.check(schema)
        measured = configuration.latent <= MOST_MEASURED
        moments_noise = calibrate_share(budget, configuration.moments) if measured else None
        network = plan_network(
            budget,
            already=already,
            records=records,
            share=configuration.means,
            batch=configuration.batch,
            epochs=configuration.epochs,
            after=[] if moments_noise is None else [make_latent_charge(moments_noise)],
        )
        return VaePlan(configuration, network, moments_noise)

    @classmethod
    def fit(cls, records: Records, plan: VaePlan, ledger: Ledger, context: FitContext) -> Self:
        """Train an autoencoder on all records."""
        return cls.fit_parts(records, Parts.whole(plan.network.records), plan, ledger, context)[0]

    @classmethod
    @use_one_thread()
    def fit_parts(
        cls, records: Records, parts: Parts, plan: VaePlan, ledger: Ledger, context: FitContext
    ) -> list[Self]:
        """Train an autoencoder on each part; all parts cost as much as one."""
        check_unpaid(plan.charges, ledger)
        configuration = plan.configuration

        def new(features: Features, mean: Floats, scale: float) -> VaeNetwork:
            network = VaeNetwork(features, configuration)
            present = features.condition_on_presence(torch.from_numpy(mean))
            network.start_from(features.logits(present, least=scale))
            return network

        clip, learning_rate = configuration.clip, configuration.learning_rate
        fitted = fit_networks(
            records, parts, plan.network, ledger, context, new, clip=clip, learning_rate=learning_rate
        )
        if plan.moments_noise is not None:
            fit_decoders_to_latents(
                [network.encoder for network in fitted.networks],
                [network.decoder for network in fitted.networks],
                fitted.features,
                fitted.examples,
                parts,
                noise_multiplier=plan.moments_noise,
                ledger=ledger,
                context=context,
            )
        models = [
            cls(records.schema, network.decoder, count, configuration.condition, network.prior[0])
            for network, count in zip(fitted.networks, parts.counts, strict=True)
        ]
        for model, mean, scale in zip(models, fitted.means, fitted.scales, strict=True):
            model._calibrate(torch.from_numpy(mean).float(), least=_CERTAIN * float(scale), seed=context.seed)
        return models

    @torch.no_grad()
    def _calibrate(self, means: Tensor, *, least: float, seed: int | None) -> None:
        """Shift the bias of the decoder until samples have the measured means."""
        logits = self.sampler.draw_logits(np.random.default_rng(seed), {})
        last: Any = self.decoder[-1]
        last.bias += match_means(self.features, logits, means, least=least)

    # --- sampling ---

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draw z from the prior, or from the posterior under conditions, and a record from each."""
        return self.sampler.sample(n, rng, where)

    def log_evidence(self, where: Where) -> float:
        """Return the logarithm of the probability of the conditions."""
        return self.sampler.log_evidence(where)

    def log_density(self, records: Records) -> npt.NDArray[np.float64]:
        """Return an estimate of the log-density of each record; intensities count as probabilities."""
        return self.sampler.log_density(records)

    # --- the release ---

    def state(self) -> State:
        """Return the decoder; the encoder is not released."""
        weights = {name: tensor.detach().numpy() for name, tensor in self.decoder.state_dict().items()}
        config = {
            "hidden": self.sizes[:-1],
            "latent": self.latent,
            "condition": self.condition,
            "records": self.records,
        }
        return State(weights if self.condition is None else {**weights, "prior": self.prior.numpy()}, config)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Return the model of a state; raise ReleaseError if it is not that of a decoder of this schema."""
        ReleasedVae(schema, state)
        config, features = state.config, Features(schema)
        sizes = [config["latent"] + _count(features.at(config["condition"])), *config["hidden"], features.width]
        weights = {name: torch.from_numpy(tensor.copy()) for name, tensor in state.tensors.items()}
        prior = weights.pop("prior", None)
        with torch.device("meta"):  # no random numbers are drawn and no memory is allocated
            decoder = new_perceptron(sizes)
        decoder.load_state_dict(weights, assign=True)
        return cls(schema, decoder, config["records"], config["condition"], prior)


def new_perceptron(sizes: Sequence[int]) -> nn.Sequential:
    """Return linear layers of these sizes with ReLUs between them."""
    layers: list[nn.Module] = []
    for size, after in pairwise(sizes):
        layers += [nn.Linear(size, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _count(at: slice) -> int:
    return at.stop - at.start  # type: ignore[no-any-return]
