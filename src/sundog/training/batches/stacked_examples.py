"""The examples of several models that are trained as one: each example is one model's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sundog.training.batches.examples import Examples, mapped
from sundog.training.batches.poisson import Index
from sundog.training.per_example.engine import Padded

_USUAL, _WORST = 2**13, 2**16  # places of all models in a piece: as it is on average, and if one model has all of it
_LEAST, _MOST = 64, 4096  # examples in a piece


def piece_for(sizes: Sequence[float]) -> int:
    """How many examples of a stack may be in memory at once: all models have as many places as the fullest one needs.

    >>> piece_for([100.0] * 10), piece_for([900.0] + [10.0] * 9), piece_for([100.0] * 500)
    (4096, 901, 131)

    Args:
        sizes: about how many examples each model has, as far as it is public.
    """
    fullest = max(sizes) / max(1e-9, sum(sizes))
    return max(_LEAST, min(_MOST, _WORST // len(sizes), round(_USUAL / max(1.0, len(sizes) * fullest))))


class StackedExamples:
    """Examples for a stack: each goes to the model that owns it, in a batch of (k, B, …) with places left free.

    >>> from sundog.training.batches.examples import InMemory
    >>> examples = StackedExamples(InMemory(torch.arange(4.0)), np.array([0, 1, 1, 1]), 2)
    >>> batch = examples.take(np.array([0, 2, 3]))
    >>> batch.present.tolist()
    [[True, False], [True, True]]

    Args:
        examples: of all models.
        owner: which model learns from each of them.
        models: how many models there are.
    """

    def __init__(self, examples: Examples, owner: Index, models: int) -> None:
        self._examples, self._owner, self._models = examples, owner, models
        self.device = examples.device

    def __len__(self) -> int:
        return len(self._examples)

    def take(self, index: Index) -> Padded:
        """The rows at these places, by their owners."""
        owners = self._owner[index]
        slots = ranks(owners, self._models)
        capacity = int(slots.max(initial=0)) + 1
        places = torch.from_numpy(owners * capacity + slots).to(self.device)

        def spread(values: Tensor) -> Tensor:
            room = values.new_zeros(self._models * capacity, *values.shape[1:])
            return room.index_copy_(0, places, values).view(self._models, capacity, *values.shape[1:])

        rows = mapped(spread, self._examples.take(index))
        return Padded(rows, spread(torch.ones(len(index), dtype=torch.bool, device=self.device)))


def ranks(owners: Index, models: int) -> Index:
    """How many before it have the same owner, for each.

    >>> ranks(np.array([0, 1, 0, 0, 1]), 2)
    array([0, 0, 1, 2, 1])
    """
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=models)
    found = np.empty_like(owners)
    found[order] = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return found
