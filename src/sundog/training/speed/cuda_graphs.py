"""A step on a GPU as one CUDA graph, which launches hundreds of small kernels at once.

A graph has fixed shapes, and a Poisson batch does not. So the batch is padded to a capacity that it rarely exceeds,
with a mask of the examples that are present; a larger batch is taken without the graph. The data is on the device and
the graph gathers the examples itself: only their positions are transferred.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sundog.training.batches.examples import Padded, map_leaves
from sundog.training.batches.poisson import Index
from sundog.training.batches.stacked_examples import rank_by_owner
from sundog.training.step import PrivateStep

_FIRST_STEPS = 2  # without the graph: libraries and optimisers initialise themselves


def choose_capacity(expected_batch: float) -> int:
    """Return the expected batch size plus three standard deviations, in whole warps, which few batches exceed.

    >>> choose_capacity(4096)
    4288
    """
    return 32 * math.ceil((expected_batch + 3 * math.sqrt(expected_batch)) / 32)


def capture_graph(work: Callable[[], None], stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
    """Capture work as a graph, without running it.

    Freeing device memory during a capture fails, and the garbage collector would free graphs of earlier trainings: so
    it runs before, and is disabled meanwhile.
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
        step: the step, on the device; its optimiser must be capturable.
        data: all examples: a tensor, or a dict or tuple of tensors, whose first dimension is the record.
        capacity: the batch size of the graph; of each model in a stack.
        owner: which model of a stack learns from each record; None for a single model.
        fused: fuse kernels by torch.compile, which takes as long as many thousand steps.
    """

    def __init__(
        self, step: PrivateStep, data: Any, *, capacity: int, owner: Index | None = None, fused: bool = True
    ) -> None:
        self.step, self.data, self.capacity, self.owner, self.fused = step, data, capacity, owner, fused
        device = step.groups.parameters[0].device
        self._models = 1 if owner is None else len(_check_stack(step.expected_batch))
        self._places = torch.zeros(self._models, capacity + 1, dtype=torch.int64, device=device)  # count, positions
        self._numbers = torch.arange(capacity, device=device)
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._taken = 0
        # A graph goes on drawing from the source it was captured with. Test noise has another source in each step, and
        # torch's generators need graphs of their own: such noise is drawn before each replay.
        self._source = step.noise if step.noise.private and not step.noise.fast_gradients else None
        for group in step.optimizer.param_groups:
            if group.get("capturable"):  # schedules change it in place
                group["lr"] = torch.as_tensor(group["lr"], device=device)

    def __call__(self, index: Index) -> None:
        """Take a step on the examples at these positions."""
        owners = np.zeros_like(index) if self.owner is None else self.owner[index]
        slots = rank_by_owner(owners, self._models)
        parts = int(slots.max(initial=0)) // self.capacity + 1
        if parts > 1:
            self.step(self._gather(index, owners, slots - part * self.capacity) for part in range(parts))
            return
        self.step.refuse_changes()
        self._send(index, owners, slots)
        if self._source is None:
            self.step.draw_noise()
        elif self.step.noise is not self._source:
            raise RuntimeError("a graph draws from the noise source that it began with; create a new GraphedStep")
        if self._graph is None and self._taken == _FIRST_STEPS:
            self._graph = self._capture()
        if self._graph is not None:
            self._graph.replay()
        else:
            self._take_without_graph()
        self._taken += 1

    def _gather(self, index: Index, owners: Index, slots: Index) -> Padded:
        here = (slots >= 0) & (slots < self.capacity)
        self._send(index[here], owners[here], slots[here])
        return self._gather_batch()

    def _send(self, index: Index, owners: Index, slots: Index) -> None:
        host = torch.zeros(self._places.shape, dtype=torch.int64, pin_memory=True)
        table = host.numpy()
        table[:, 0] = np.bincount(owners, minlength=self._models)
        table[owners, slots + 1] = index
        self._places.copy_(host, non_blocking=True)

    def _gather_batch(self) -> Padded:
        places = self._places[:, 1:].flatten()
        present = self._numbers < self._places[:, :1]
        if self.owner is None:
            return Padded(map_leaves(lambda t: t.index_select(0, places), self.data), present[0])
        shape = present.shape
        return Padded(map_leaves(lambda t: t.index_select(0, places).unflatten(0, shape), self.data), present)

    def _take_without_graph(self) -> None:
        """Take a step without the graph, on the stream on which it will be captured."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            if self._taken == 0:
                self.step.compile(self._gather_batch(), fixed_size=True, fused=self.fused)
            self._take()
        torch.cuda.current_stream().wait_stream(self._stream)

    def _capture(self) -> torch.cuda.CUDAGraph:
        return capture_graph(self._take, self._stream)

    def _take(self) -> None:
        if self._source is not None:
            self.step.draw_noise()
        self.step.take_compiled(self._gather_batch())


class ReplayedWork:
    """Public work that is repeated, as one CUDA graph from the third call on; on a processor, a plain call.

    Args:
        work: reads and writes the same tensors in place each time, and does not wait for the device.
        device: of the tensors.
    """

    def __init__(self, work: Callable[[], None], device: torch.device) -> None:
        self._work = work
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._done = 0

    def __call__(self) -> None:
        """Run the work: directly on a CPU and in the first steps, then from the captured graph."""
        if self._stream is None:
            self._work()
            return
        if self._graph is None and self._done == _FIRST_STEPS:
            self._graph = capture_graph(self._work, self._stream)
        if self._graph is not None:
            self._graph.replay()
        else:
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                self._work()
            torch.cuda.current_stream().wait_stream(self._stream)
        self._done += 1


def _check_stack(expected_batch: float | Tensor) -> Tensor:
    if not isinstance(expected_batch, Tensor):
        raise ValueError("the step of a stack of models needs an expected batch size for each of them")
    return expected_batch
