"""The examples that a training draws from, in memory or on a GPU.

`take` returns the rows of a step as tensors on the device that trains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from sundog.training.batches.poisson import Index

Batch = Any  # a tensor, or a dict or tuple of them
Device = torch.device | str | None


class Examples(Protocol):
    """Rows by their positions."""

    @property
    def device(self) -> torch.device:
        """Where batches are."""

    def __len__(self) -> int: ...

    def take(self, index: Index) -> Batch:
        """Return the rows at these positions. It is called from one background thread."""


@dataclass(frozen=True)
class Padded:
    """A batch padded to a fixed size; `present` is false for padding."""

    examples: Any
    present: Tensor


pytree.register_dataclass(Padded)


class Positions:
    """The positions themselves, for a step that holds the data.

    Args:
        length: how many examples there are.
    """

    device = torch.device("cpu")

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    def take(self, index: Index) -> Index:
        """Return the positions unchanged."""
        return index


def map_leaves(function: Callable[[Any], Any], data: Any) -> Any:
    """Apply a function to every leaf of a structure of dicts and tuples."""
    if isinstance(data, Mapping):
        return {key: map_leaves(function, value) for key, value in data.items()}
    if isinstance(data, tuple | list):
        return tuple(map_leaves(function, value) for value in data)
    return function(data)


def list_leaves(data: Any) -> list[Any]:
    """List the leaves of a structure of dicts and tuples."""
    found: list[Any] = []
    map_leaves(found.append, data)
    return found
