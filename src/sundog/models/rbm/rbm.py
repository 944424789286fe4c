"""A restricted Boltzmann machine, trained by persistent contrastive divergence (Tieleman 2008) under DP-SGD.

1. E(x, h) = −(x − μ)ᵀb − (h − ½)ᵀc − (x − μ)ᵀWᵀ(h − ½), centred (Montavon and Müller 2012) at public means μ; the
visible units x are those of `Features`. 2. The gradient of log p(x) has a positive phase, of the record, and a negative
one, of particles that the model generates. Only the first is private: clipped and noised. The particles are weighted as
records are clipped; otherwise clipping would bias the model. 3. After each step the particles move by a few Gibbs
steps. 4. To sample, a chain for each record starts at one of the particles, which are close to the model's
distribution; under conditions, the chain moves among vectors that satisfy them. See docs/rbm.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.models.neural.features import Features, join_codes
from sundog.models.neural.network_training import NetworkPlan, choose_chunk_size, fit_networks, plan_network
from sundog.models.neural.noisy_means import Floats
from sundog.models.protocol import Codes, FitContext, Parts, State, Where
from sundog.models.rbm.configuration import RbmConfiguration
from sundog.models.rbm.gibbs import start_chains
from sundog.models.rbm.network import RbmNetwork
from sundog.models.rbm.released import KEPT, ReleasedRbm
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.measure_once import check_unpaid
from sundog.training.speed.allocator import keep_memory
from sundog.training.speed.threads import use_one_thread

_EVIDENCE = 1024  # chains that estimate the probability of conditions
_FEWEST_CHAINS, _MOST_CHAINS = 500, 2**15
_MOST_NUMBERS, _FEWEST_WIDE = 2**25, 64  # units of all particles together, at most; and particles, at least
_MOVES, _MOVES_BETWEEN = 50, 4  # of a chain: from a particle to its first record, and to each further one
_ENOUGH_CHAINS, _MOST_EACH = 6000, 12  # for more than twice as many records a chain gives several, up to 12
_ROWS = 4096  # chains that move together: what they need fits into a processor's cache


@dataclass(frozen=True)
class RbmPlan:
    """The public numbers of a fit.

    Args:
        configuration: of the machine.
        network: means and training.
    """

    configuration: RbmConfiguration
    network: NetworkPlan

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Those of the means and of the training."""
        return self.network.charges


class Rbm:
    """A restricted Boltzmann machine of whole records."""

    name: ClassVar[str] = "rbm"

    def __init__(self, schema: Schema, network: RbmNetwork, records: int) -> None:
        self.schema, self.network, self.records = schema, network, records
        self.features = network.features
        starts = network.particles[:KEPT].clamp(0.0, 1.0)
        self.starts = (255 * starts).round().to(torch.uint8)  # exact, except for intensities

    # --- learning ---

    @classmethod
    def plan(
        cls,
        schema: Schema,
        budget: Budget,
        configuration: RbmConfiguration,
        *,
        already: Sequence[Charge],
        records: int | None,
    ) -> RbmPlan:
        """Plan means, steps, batches and noise from the public number of records."""
        configuration.check(schema)
        network = plan_network(
            budget,
            already=already,
            records=records,
            share=configuration.means,
            batch=configuration.batch,
            epochs=configuration.epochs,
        )
        return RbmPlan(configuration, network)

    @classmethod
    def fit(cls, records: Records, plan: RbmPlan, ledger: Ledger, context: FitContext) -> Self:
        """Train a machine on all records."""
        return cls.fit_parts(records, Parts.whole(plan.network.records), plan, ledger, context)[0]

    @classmethod
    @use_one_thread()
    def fit_parts(
        cls, records: Records, parts: Parts, plan: RbmPlan, ledger: Ledger, context: FitContext
    ) -> list[Self]:
        """Train a machine on each part; all parts cost as much as one."""
        check_unpaid(plan.charges, ledger)
        configuration = plan.configuration
        batch = plan.network.training.expected_batch / len(parts.sizes)

        def new(features: Features, means: Floats, scale: float) -> RbmNetwork:
            return RbmNetwork(
                features,
                torch.from_numpy(means).float(),
                least=scale,
                hidden=configuration.hidden,
                chains=configuration.chains or choose_chain_count(batch, features.width),
                moves=configuration.moves,
                deviation=configuration.deviation if configuration.visible == "gaussian" else None,
            )

        clip, learning_rate = configuration.clip, configuration.learning_rate
        fitted = fit_networks(
            records, parts, plan.network, ledger, context, new, clip=clip, learning_rate=learning_rate
        )
        pairs = zip(fitted.networks, parts.counts, strict=True)
        return [cls(records.schema, network, count) for network, count in pairs]

    # --- sampling ---

    @use_one_thread()
    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Run chains, each for one record or a few; they move among vectors that satisfy the conditions."""
        keep_memory()
        each = max(1, min(_MOST_EACH, n // _ENOUGH_CHAINS))
        size = each * self._rows
        return join_codes([self._draw(min(size, n - start), each, rng, where) for start in range(0, max(1, n), size)])

    @use_one_thread()
    @torch.no_grad()
    def log_evidence(self, where: Where) -> float:
        """Return the logarithm of the probability of the conditions: their mean likelihood over free chains."""
        logits = (self.network.logits(hidden.float()) for hidden in torch.split(self._free, self._rows))
        fit = torch.cat([self.features.log_likelihood(part, where) for part in logits]).double()
        return float(fit.logsumexp(dim=0)) - math.log(_EVIDENCE)

    @use_one_thread()
    @torch.no_grad()
    def log_density(self, records: Records) -> npt.NDArray[np.float64]:
        """Return minus the free energy of each record: its log-density up to a constant."""
        examples, rows = self.features.to_examples(records), self._rows
        parts = (np.arange(start, min(start + rows, len(records))) for start in range(0, len(records), rows))
        energies = [self.network.free_energy(examples.take_vectors(part)).double().numpy() for part in parts]
        return -np.concatenate([np.zeros(0), *energies])

    @cached_property
    def _free(self) -> Tensor:
        """The hidden units of chains without conditions, from a fixed seed."""
        rng, rows = np.random.default_rng(0), self._rows
        counts = [min(rows, _EVIDENCE - start) for start in range(0, _EVIDENCE, rows)]
        with torch.no_grad():
            return torch.cat([next(self._draw_hidden(count, rng, {})).bool() for count in counts])

    @property
    def _rows(self) -> int:
        """The number of chains that move together."""
        return min(_ROWS, choose_chunk_size(self.features.width, self.network.hidden.out_features))

    @torch.no_grad()
    def _draw(self, n: int, each: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draw n records, `each` of them from one chain."""
        chains = -(-n // each)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        counts = [min(chains, n - start) for start in range(0, max(1, n), max(1, chains))]
        parts = zip(counts, self._draw_hidden(chains, rng, where), strict=False)
        answers = ((self.network.compute_sampling_logits(h[:count], generator), rng, where) for count, h in parts)
        return join_codes([self.features.sample(*answer) for answer in answers])

    def _draw_hidden(self, n: int, rng: np.random.Generator, where: Where) -> Iterator[Tensor]:
        """Yield the hidden units of n chains after enough moves, then again and again after a few more."""
        order = torch.from_numpy(rng.permutation(len(self.starts)))
        chains = start_chains(self.starts[order[torch.arange(n) % len(order)]] / 255, self.network, where, rng)
        moves = _MOVES
        while True:
            for _ in range(moves):
                chains.move()
            yield chains.draw_hidden()
            moves = _MOVES_BETWEEN

    # --- the release ---

    def state(self) -> State:
        """Return the weights, the centre, and the particles where chains start."""
        tensors = {name: tensor.detach().numpy() for name, tensor in self.network.state_dict().items()}
        config = {
            "hidden": self.network.hidden.out_features,
            "chains": len(self.starts),
            "deviation": self.network.deviation,
            "records": self.records,
        }
        return State({**tensors, "particles": self.starts.numpy()}, config)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Return the model of a state; raise ReleaseError if it is not that of a machine of this schema."""
        ReleasedRbm(schema, state)
        features, hidden, chains = Features(schema), state.config["hidden"], state.config["chains"]
        weights = {name: torch.from_numpy(tensor.copy()) for name, tensor in state.tensors.items()}
        particles = weights.pop("particles")
        with torch.device("meta"):  # no random numbers are drawn and no memory is allocated
            network = RbmNetwork(features, None, hidden=hidden, chains=chains, deviation=state.config["deviation"])
        network.load_state_dict({**weights, "particles": particles / 255}, assign=True)
        return cls(schema, network, state.config["records"])


def choose_chain_count(batch: float, width: int) -> int:
    """Return the default number of chains: that of records in a batch, within limits, and fewer for wide vectors.

    >>> choose_chain_count(1000.0, 340), choose_chain_count(64.0, 340), choose_chain_count(1000.0, 100_000)
    (1000, 500, 335)
    """
    return max(_FEWEST_WIDE, min(_MOST_CHAINS, max(_FEWEST_CHAINS, round(batch)), _MOST_NUMBERS // width))
