"""An attack on a network that was trained for one step: the likelihood ratio of its means and of its first gradient.

The optimiser's state has the first noisy gradient. How the record moves it depends on the weights that the fit began
with, which follow from the noisy means and a public seed. So the attacker repeats the fit from the same means, on the
record alone and almost without noise, and projects the noisy gradient on what it finds. Where the loss is random, as
it is in a gan, whose critic compares each record with a generated one, the direction is found only in part.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.auditing.games.memory_checkpoint import MemoryCheckpoint
from sundog.data.records import Records
from sundog.models.neural.features import Features
from sundog.models.neural.network_training import NetworkPlan
from sundog.models.protocol import FitContext, Model
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.training.training_state import load_state

Floats = npt.NDArray[np.float64]

_LITTLE_NOISE = 1e-3  # noise multiplier of the repeated step
_MOMENT = "exp_avg"  # the average of gradients in the state of Adam


class NetworkAttack:
    """An attack on fits of one model and plan.

    Args:
        kind: the class of the model.
        plan: of its fits; it has a `network` of one step on all records.
        tables: without records, and with the one that is there or not.
        has_public_loss: whether a gradient has a public part, which the attacker subtracts.
    """

    def __init__(self, kind: type[Model], plan: Any, tables: tuple[Records, Records], *, has_public_loss: bool) -> None:
        self.kind, self.tables, self.has_public_loss = kind, tables, has_public_loss
        self.network: NetworkPlan = plan.network
        training = self.network.training
        if training.steps != 1 or training.sample_rate != 1:
            raise ValueError("the attack is on fits of one step, on all records")
        quiet = replace(training, noise_multiplier=_LITTLE_NOISE)
        self.quiet_plan = replace(plan, network=replace(self.network, training=quiet))
        features = Features(tables[1].schema)
        self.vector = features.to_examples(tables[1]).take_vectors(np.arange(1))[0].double().numpy()

    def score(self, measured: MemoryCheckpoint) -> list[float]:
        """Return the log-likelihood ratio of means and gradient, and the length of the gradient.

        The length is a weak statistic, but it shows noise that is missing, whatever the direction of the gradient.
        """
        found, shift = self._find_gradient(measured)
        length = float(np.linalg.norm(shift))
        ratio = 0.0
        if length > 0:
            # the gradient of the record was clipped, so that the noise is its length times the noise multiplier
            ratio = float(shift @ (found - shift / 2)) / (length * self.network.training.noise_multiplier) ** 2
        return [self._score_means(measured) + ratio, float(np.linalg.norm(found))]

    def _score_means(self, measured: MemoryCheckpoint) -> float:
        means = measured.tensors["means"]
        scale = float(means["scale"][0])
        norm = scale / self.network.means.noise_multiplier
        shift = self.vector * min(1.0, norm / float(np.linalg.norm(self.vector)))
        return float(shift @ (means["sums"][0] - shift / 2)) / scale**2

    def _find_gradient(self, measured: MemoryCheckpoint) -> tuple[Floats, Floats]:
        """Return the private part of the noisy gradient, and how the record moves it."""
        found, shift = self._read_gradient(measured), self._repeat(measured, self.tables[1])
        if not self.has_public_loss:
            return found, shift
        public = self._repeat(measured, self.tables[0])
        return found - public, shift - public

    def _repeat(self, measured: MemoryCheckpoint, table: Records) -> Floats:
        """Return the first gradient of a fit from the same means, almost without noise."""
        ledger = Ledger(epsilon=1e9, delta=0.5, noise=NoiseSource.seeded(0))
        ledger.spend(*self.network.means.charges)
        repeated = MemoryCheckpoint()
        repeated.tensors["means"] = measured.tensors["means"]
        self.kind.fit(table, self.quiet_plan, ledger, FitContext(seed=0, checkpoint=repeated))
        return self._read_gradient(repeated)

    def _read_gradient(self, measured: MemoryCheckpoint) -> Floats:
        purpose = self.network.training.purpose
        state = load_state(measured, purpose)
        assert state is not None  # noqa: S101  the fit was trained
        moments = state.parts["optimizer"]["state"].values()
        return np.concatenate([each[_MOMENT].double().flatten().numpy() for each in moments])
