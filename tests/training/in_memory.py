"""Examples in memory for the tests of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sundog.errors import DataError
from sundog.training.batches.examples import Batch, Device, list_leaves, map_leaves
from sundog.training.batches.poisson import Index


class InMemory:
    """Tensors or arrays, alone or in dicts and tuples; tensors on a GPU are indexed there.

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
