"""Gibbs chains of a Boltzmann machine: the same moves on whole vectors, or on the places of their ones.

In a record of scalar columns one feature in each column is 1 and all others are 0. The input of the hidden units is
then a sum of a few rows of the weights, which is ten times faster than a product with all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sundog.models.protocol import Where

if TYPE_CHECKING:
    from sundog.models.rbm.network import RbmNetwork


class Chains(Protocol):
    """Gibbs chains and their state."""

    def move(self) -> None:
        """Take a Gibbs step: all hidden units given the visible ones, then all visible ones."""

    def draw_hidden(self) -> Tensor:
        """Draw the hidden units of each chain: (chains, hidden)."""

    def to_vectors(self) -> Tensor:
        """Return the visible units of each chain: (chains, width)."""


def start_chains(vectors: Tensor, network: RbmNetwork, where: Where, rng: np.random.Generator) -> Chains:
    """Return chains that start at these vectors, of the fastest kind for the columns of the machine.

    Args:
        vectors: visible units, (chains, width) or of a stack (machines, chains, width).
        network: the machine, or a stack of them.
        where: what scalar columns may be.
        rng: what they draw from.
    """
    on_processor = vectors.device.type == "cpu"  # on a GPU, asking for the largest weight takes longer
    if on_processor and vectors.dim() == 2 and network.features.are_scalars and network.has_small_logits():
        return _PlaceChains(vectors, network, where, rng)
    return _VectorChains(vectors, network, where, rng)


class _VectorChains:
    """Chains that store every unit."""

    def __init__(self, vectors: Tensor, network: RbmNetwork, where: Where, rng: np.random.Generator) -> None:
        self._x, self._network, self._where = vectors, network, where
        self._generator = torch.Generator(vectors.device).manual_seed(int(rng.integers(2**62)))

    def move(self) -> None:
        self._x = self._network.move(self._x, self._generator, self._where)

    def draw_hidden(self) -> Tensor:
        return self._network.draw_hidden(self._x, self._generator)

    def to_vectors(self) -> Tensor:
        return self._x


class _PlaceChains:
    """Chains that store the feature that is 1 in each scalar column; they need logits whose exponentials are finite."""

    def __init__(self, vectors: Tensor, network: RbmNetwork, where: Where, rng: np.random.Generator) -> None:
        self._features, self._rng = network.features, rng
        self._places = self._features.read_places(vectors)  # (chains, scalars)
        self._weight = network.hidden.weight.detach()
        self._rows = self._weight.T.contiguous()  # what each feature adds to the hidden units
        self._offset = network.hidden.bias.detach() - network.centre[0] @ self._rows
        self._bias = network.visible.weight.detach()[0] - self._weight.sum(dim=0) / 2
        for name in where:
            shares = self._features.log_shares(name, where)
            self._bias[self._features.at(name)] += shares - shares.max()
        self._shares = torch.empty(vectors.shape)

    def move(self) -> None:
        torch.addmm(self._bias, self.draw_hidden(), self._weight, out=self._shares)
        shares = self._shares.numpy()
        np.exp(shares, out=shares)  # twice as fast as torch's
        self._places = self._features.find_places(self._shares, self._draw_points(self._places.shape[1]))

    def draw_hidden(self) -> Tensor:
        p = functional.embedding_bag(self._places, self._rows, mode="sum").add_(self._offset).sigmoid_()
        return (self._draw_points(p.shape[1]) < p).to(p.dtype)

    def to_vectors(self) -> Tensor:
        return torch.zeros_like(self._shares).scatter_(1, self._places, 1.0)

    def _draw_points(self, count: int) -> Tensor:
        return torch.from_numpy(self._rng.random((len(self._places), count), np.float32))
