"""The critic that the curator keeps: it scores how much a record looks like those of the training."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError, SundogError
from sundog.models.gan.architectures import SHAPES, refuse_shape
from sundog.models.gan.networks import CriticNetwork, new_critic
from sundog.models.neural.features import Features
from sundog.models.neural.network_training import choose_chunk_size
from sundog.models.protocol import State
from sundog.models.released import is_size


class Critic:
    """A critic, to score records.

    Args:
        schema: of the records.
        state: that of `Gan.private`.
    """

    def __init__(self, schema: Schema, state: State) -> None:
        try:
            self.features = Features(schema)
            self.network = self._build_network(schema, state)
        except (SundogError, KeyError, ValueError, TypeError, RuntimeError):
            raise DataError("the weights are not those of a critic of this schema") from None

    @torch.no_grad()
    def score(self, records: Records) -> npt.NDArray[np.float64]:
        """Return the score of each record: the higher, the more it looks like a training record."""
        examples = self.features.to_examples(records)
        rows = choose_chunk_size(self.features.width)
        parts = [
            self.network(self.features.to_dense(examples.take(np.arange(start, min(start + rows, len(records))))))
            for start in range(0, len(records), rows)
        ]
        return np.concatenate([np.zeros(0), *(part.double().numpy() for part in parts)])

    def _build_network(self, schema: Schema, state: State) -> CriticNetwork:
        config = state.config
        if config["shape"] not in SHAPES or not is_size(config["hidden"]):
            raise ValueError("not the state of a critic")
        if not all(tensor.dtype == np.float32 and np.isfinite(tensor).all() for tensor in state.tensors.values()):
            raise ValueError("not the state of a critic")
        refuse_shape(schema, config["shape"])
        with torch.device("meta"):
            condition = self.features.at(config["condition"])
            network = new_critic(self.features, config["shape"], condition, hidden=config["hidden"])
        weights = {name: torch.from_numpy(np.array(tensor)) for name, tensor in state.tensors.items()}
        network.load_state_dict(weights, assign=True)
        return network
