"""A step on a GPU as one CUDA graph: hundreds of small kernels, launched at once.

A graph has fixed shapes, and a Poisson batch has none. So the batch is filled up to a capacity that it hardly ever
exceeds, with `present` saying which examples count; a larger batch is taken without the graph. The data is on the
device and the graph gathers the examples itself: all that travels is their places.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sundog.training.batches.examples import mapped
from sundog.training.batches.poisson import Index
from sundog.training.batches.stacked_examples import ranks
from sundog.training.per_example.engine import Padded
from sundog.training.step import PrivateStep

_FIRST_STEPS = 2  # without the graph: libraries and optimisers set themselves up in them


def capacity_for(expected_batch: float) -> int:
    """Three standard deviations above the expected batch, in whole warps: one step in a thousand has more.

    >>> capacity_for(4096)
    4288
    """
    return 32 * math.ceil((expected_batch + 3 * math.sqrt(expected_batch)) / 32)


def recorded(work: Callable[[], None], stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
    """Work as a graph, written down and not done.

    Nothing may be given back to the device meanwhile, and the graph of a training before this one is, whenever Python
    happens to collect it: so it does that first, and not again until the end.
    """
    gc.collect()
    collects = gc.isenabled()
    gc.disable()
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            work()
    finally:
        if collects:
            gc.enable()
    return graph


class GraphedStep:
    """A `PrivateStep` over data on a CUDA device.

    Args:
        step: the step, with everything it needs on the device; its optimiser must be made with `capturable=True`
            where it has that option.
        data: all the examples: a tensor, or a dict or tuple of tensors, whose first dimension is the record.
        capacity: the batch size of the graph; with several models, that of each.
        owner: which of the models in a stack learns from each record; None where there is one model.
        fused: have a compiler join the kernels, for the time of many thousand steps.
    """

    def __init__(
        self, step: PrivateStep, data: Any, *, capacity: int, owner: Index | None = None, fused: bool = True
    ) -> None:
        self.step, self.data, self.capacity, self.owner, self.fused = step, data, capacity, owner, fused
        device = step.groups.parameters[0].device
        self._models = 1 if owner is None else len(_as_stack(step.expected_batch))
        self._places = torch.zeros(self._models, capacity + 1, dtype=torch.int64, device=device)  # how many, and which
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
        owners = np.zeros_like(index) if self.owner is None else self.owner[index]
        slots = ranks(owners, self._models)
        parts = int(slots.max(initial=0)) // self.capacity + 1
        if parts > 1:
            self.step(self._gathered(index, owners, slots - part * self.capacity) for part in range(parts))
            return
        self.step.refuse_changes()
        self._send(index, owners, slots)
        if not self._draws_inside:
            self.step.draw_noise()
        if self._graph is None and self._taken == _FIRST_STEPS:
            self._graph = self._captured()
        if self._graph is not None:
            self._graph.replay()
        else:
            self._beside()
        self._taken += 1

    def _gathered(self, index: Index, owners: Index, slots: Index) -> Padded:
        here = (slots >= 0) & (slots < self.capacity)
        self._send(index[here], owners[here], slots[here])
        return self._batch()

    def _send(self, index: Index, owners: Index, slots: Index) -> None:
        host = torch.zeros(self._places.shape, dtype=torch.int64, pin_memory=True)
        table = host.numpy()
        table[:, 0] = np.bincount(owners, minlength=self._models)
        table[owners, slots + 1] = index
        self._places.copy_(host, non_blocking=True)

    def _batch(self) -> Padded:
        places = self._places[:, 1:].flatten()
        present = self._numbers < self._places[:, :1]
        if self.owner is None:
            return Padded(mapped(lambda t: t.index_select(0, places), self.data), present[0])
        shape = present.shape
        return Padded(mapped(lambda t: t.index_select(0, places).unflatten(0, shape), self.data), present)

    def _beside(self) -> None:
        """Takes a step on the stream that the graph is going to be made on."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            if self._taken == 0:
                self.step.compile(self._batch(), fixed_size=True, fused=self.fused)
            self._take()
        torch.cuda.current_stream().wait_stream(self._stream)

    def _captured(self) -> torch.cuda.CUDAGraph:
        """The step, written down and not taken."""
        return recorded(self._take, self._stream)

    def _take(self) -> None:
        if self._draws_inside:
            self.step.draw_noise()
        self.step.take_compiled(self._batch())


class Replayed:
    """Public work that is done many times, as one CUDA graph from the third time on; elsewhere, as it is.

    Args:
        work: reads and writes the same tensors each time, in place, and asks the device nothing.
        device: where those are.
    """

    def __init__(self, work: Callable[[], None], device: torch.device) -> None:
        self._work = work
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._done = 0

    def __call__(self) -> None:
        """Does it."""
        if self._stream is None:
            self._work()
            return
        if self._graph is None and self._done == _FIRST_STEPS:
            self._graph = recorded(self._work, self._stream)
        if self._graph is not None:
            self._graph.replay()
        else:
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                self._work()
            torch.cuda.current_stream().wait_stream(self._stream)
        self._done += 1


def _as_stack(expected_batch: float | Tensor) -> Tensor:
    if not isinstance(expected_batch, Tensor):
        raise ValueError("the step of a stack of models has an expected batch for each of them")
    return expected_batch
