"""An attack on a network that was trained for one step: the likelihood ratio of its means and of its first gradient.

The optimiser's state has the first noisy gradient. How the record moves it depends on the weights that the fit began
with, which follow from the noisy means and a public seed. So the attacker repeats the fit from the same means, on the
record alone and almost without noise, and projects the noisy gradient on what it finds. Where the loss is random, as
it is in a vae and a gan, the direction is found only in part.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.audit.games.transcript import Transcript
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
        record: the record that is there or not, alone.
    """

    def __init__(self, kind: type[Model], plan: Any, record: Records) -> None:
        self.kind, self.record = kind, record
        self.network: NetworkPlan = plan.network
        training = self.network.training
        if training.steps != 1 or training.sample_rate != 1:
            raise ValueError("the attack is on fits of one step, on all records")
        quiet = replace(training, noise_multiplier=_LITTLE_NOISE)
        self.quiet_plan = replace(plan, network=replace(self.network, training=quiet))
        features = Features(record.schema)
        self.vector = features.to_examples(record).take_vectors(np.arange(1))[0].double().numpy()

    def score(self, transcript: Transcript) -> float:
        """Return the log-likelihood ratio of the means and of the gradient."""
        return self._score_means(transcript) + self._score_gradient(transcript)

    def _score_means(self, transcript: Transcript) -> float:
        means = transcript.tensors["means"]
        scale = float(means["scale"][0])
        norm = scale / self.network.means.noise_multiplier
        shift = self.vector * min(1.0, norm / float(np.linalg.norm(self.vector)))
        return float(shift @ (means["sums"][0] - shift / 2)) / scale**2

    def _score_gradient(self, transcript: Transcript) -> float:
        ledger = Ledger(epsilon=1e9, delta=0.5, noise=NoiseSource.seeded(0))
        ledger.spend(*self.network.means.charges)
        repeated = Transcript()
        repeated.tensors["means"] = transcript.tensors["means"]
        self.kind.fit(self.record, self.quiet_plan, ledger, FitContext(seed=0, checkpoint=repeated))
        shift, found = self._read_gradient(repeated), self._read_gradient(transcript)
        length = float(np.linalg.norm(shift))
        if length == 0:
            return 0.0
        # The noise has standard deviation σ·C, and the clipped gradient a length of C at most, which it reaches if
        # it was clipped; the unit is the length that was found.
        return float(shift @ (found - shift / 2)) / (length * self.network.training.noise_multiplier) ** 2

    def _read_gradient(self, transcript: Transcript) -> Floats:
        purpose = self.network.training.purpose
        state = load_state(transcript, purpose)
        assert state is not None  # noqa: S101  the fit was trained
        moments = state.parts["optimizer"]["state"].values()
        return np.concatenate([each[_MOMENT].double().flatten().numpy() for each in moments])
