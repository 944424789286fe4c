"""The examples that a training draws from, in memory or on a GPU.

`take` returns the rows of a step as tensors on the device that trains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from sundog.errors import DataError
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


class InMemory:
    """Tensors or arrays, alone or in dicts and tuples; tensors on a GPU are indexed there.

    >>> examples = InMemory({"x": torch.arange(10.0), "y": np.arange(10)})
    >>> {name: values.tolist() for name, values in examples.take(np.array([2, 5])).items()}
    {'x': [2.0, 5.0], 'y': [2, 5]}

    Args:
        data: the examples, along the first dimension.
        device: where batches are needed; by default where the data is.
    """

    def __init__(self, data: Any, device: Device = None) -> None:
        self._data = map_leaves(_to_tensor, data)
        tensors = list_leaves(self._data)
        self._length = _find_common_length(tensors)
        self.device = tensors[0].device if device is None else torch.device(device)

    def __len__(self) -> int:
        return self._length

    def take(self, index: Index) -> Batch:
        """Select the rows where the data is, then send them to the device."""
        places = torch.from_numpy(index)
        return map_leaves(lambda values: _send(self._select(values, places), self.device), self._data)

    def _select(self, values: Tensor, places: Tensor) -> Tensor:
        if values.device.type != "cpu":
            return values.index_select(0, places.to(values.device, non_blocking=True))
        out = _allocate((len(places), *values.shape[1:]), values.dtype, self.device)
        return torch.index_select(values, 0, places, out=out)


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


def _find_common_length(parts: Sequence[Any]) -> int:
    lengths = {len(part) for part in parts}
    if len(lengths) != 1:
        raise DataError(f"the parts of the examples have different lengths: {sorted(lengths)}")
    return lengths.pop()


def _to_tensor(values: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values
    array = np.asarray(values)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _allocate(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Allocate on the host; pinned for a GPU, which can then copy it asynchronously."""
    return torch.empty(shape, dtype=dtype, pin_memory=device.type == "cuda")


def _send(values: Tensor, device: torch.device) -> Tensor:
    return values if values.device == device else values.to(device, non_blocking=True)
