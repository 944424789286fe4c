"""Examples for a stack of models: each example belongs to one model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sundog.training.batches.examples import Examples, Padded, map_leaves
from sundog.training.batches.poisson import Index

_USUAL, _WORST = 2**13, 2**16  # slots of all models in a piece: on average, and if one model has all of its examples
_LEAST, _MOST = 64, 4096  # examples in a piece


def choose_piece_size(sizes: Sequence[float]) -> int:
    """Return how many examples of a stack fit into memory: every model has as many slots as the fullest one.

    >>> choose_piece_size([100.0] * 10), choose_piece_size([900.0] + [10.0] * 9), choose_piece_size([100.0] * 500)
    (4096, 901, 131)

    Args:
        sizes: the public estimate of how many examples each model has.
    """
    fullest = max(sizes) / max(1e-9, sum(sizes))
    return max(_LEAST, min(_MOST, _WORST // len(sizes), round(_USUAL / max(1.0, len(sizes) * fullest))))


class StackedExamples:
    """Examples for a stack: each goes to the model that owns it, in a padded batch of (k, B, …).

    Args:
        examples: of all models.
        owner: which model learns from each of them.
        models: the number of models.
    """

    def __init__(self, examples: Examples, owner: Index, models: int) -> None:
        self._examples, self._owner, self._models = examples, owner, models
        self.device = examples.device

    def __len__(self) -> int:
        return len(self._examples)

    def take(self, index: Index) -> Padded:
        """Return the rows at these positions, by owner."""
        owners = self._owner[index]
        slots = rank_by_owner(owners, self._models)
        capacity = int(slots.max(initial=0)) + 1
        places = torch.from_numpy(owners * capacity + slots).to(self.device)

        def spread(values: Tensor) -> Tensor:
            room = values.new_zeros(self._models * capacity, *values.shape[1:])
            return room.index_copy_(0, places, values).view(self._models, capacity, *values.shape[1:])

        rows = map_leaves(spread, self._examples.take(index))
        return Padded(rows, spread(torch.ones(len(index), dtype=torch.bool, device=self.device)))


def rank_by_owner(owners: Index, models: int) -> Index:
    """Count, for each element, how many before it have the same owner.

    >>> rank_by_owner(np.array([0, 1, 0, 0, 1]), 2)
    array([0, 0, 1, 2, 1])
    """
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=models)
    found = np.empty_like(owners)
    found[order] = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return found
