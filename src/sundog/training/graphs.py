"""A step on a GPU as one CUDA graph: hundreds of small kernels, launched at once.

A graph has fixed shapes, and a Poisson batch has none. So the batch is filled up to a capacity that it hardly ever
exceeds, with `present` saying which examples count; a larger batch is taken without the graph. The data is on the
device and the graph gathers the examples itself: all that travels is their places.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from sundog.training.data import mapped
from sundog.training.gradients import Padded
from sundog.training.sampler import Index, pieces
from sundog.training.step import PrivateStep

_FIRST_STEPS = 2  # without the graph: libraries and optimisers set themselves up in them


def capacity_for(expected_batch: float) -> int:
    """Three standard deviations above the expected batch, in whole warps: one step in a thousand has more.

    >>> capacity_for(4096)
    4288
    """
    return 32 * math.ceil((expected_batch + 3 * math.sqrt(expected_batch)) / 32)


class GraphedStep:
    """A `PrivateStep` over data on a CUDA device.

    Args:
        step: the step, with everything it needs on the device; its optimiser must be made with `capturable=True`
            where it has that option.
        data: all the examples: a tensor, or a dict or tuple of tensors, whose first dimension is the record.
        capacity: the batch size of the graph.
    """

    def __init__(self, step: PrivateStep, data: Any, *, capacity: int) -> None:
        self.step, self.data, self.capacity = step, data, capacity
        device = step.groups.parameters[0].device
        self._places = torch.zeros(capacity + 1, dtype=torch.int64, device=device)  # how many, and which
        self._numbers = torch.arange(capacity, device=device)
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._taken = 0
        self._draws_inside = not step.noise.fast_gradients  # torch's generators may be used in their own graphs only
        for group in step.optimizer.param_groups:
            if group.get("capturable"):  # a schedule changes it in place
                group["lr"] = torch.as_tensor(group["lr"], device=device)

    def __call__(self, index: Index) -> None:
        """Takes a step on the examples at these places."""
        if len(index) > self.capacity:
            self.step(self._gathered(part) for part in pieces(index, self.capacity))
            return
        self.step.refuse_changes()
        self._send(index)
        if not self._draws_inside:
            self.step.draw_noise()
        if self._graph is None and self._taken == _FIRST_STEPS:
            self._graph = self._captured()
        if self._graph is not None:
            self._graph.replay()
        else:
            self._beside()
        self._taken += 1

    def _gathered(self, index: Index) -> Padded:
        self._send(index)
        return self._batch()

    def _send(self, index: Index) -> None:
        host = torch.zeros(self.capacity + 1, dtype=torch.int64, pin_memory=True)
        host[0] = len(index)
        host[1 : len(index) + 1] = torch.from_numpy(index)
        self._places.copy_(host, non_blocking=True)

    def _batch(self) -> Padded:
        present = self._numbers < self._places[0]
        return Padded(mapped(lambda t: t.index_select(0, self._places[1:]), self.data), present)

    def _beside(self) -> None:
        """Takes a step on the stream that the graph is going to be made on."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            if self._taken == 0:
                self.step.compile(self._batch(), fixed_size=True)
            self._take()
        torch.cuda.current_stream().wait_stream(self._stream)

    def _captured(self) -> torch.cuda.CUDAGraph:
        """The step, written down and not taken."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream):
            self._take()
        return graph

    def _take(self) -> None:
        if self._draws_inside:
            self.step.draw_noise()
        self.step.take_compiled(self._batch())
