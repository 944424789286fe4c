"""Draw and gather the batches of the next steps in the background.

A batch that was drawn but not used costs no budget: nothing about it is released.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import NamedTuple, Self

import torch
from torch.utils import _pytree as pytree

from sundog.training.batches.examples import Batch, Examples
from sundog.training.batches.poisson import Index, split_batch


class _Piece(NamedTuple):
    batch: Batch
    is_last: bool  # of its step
    ready: torch.cuda.Event | None  # recorded when the device has it


class Prefetch:
    """A thread that stays a few pieces ahead; its errors are raised where the pieces are requested.

    Args:
        examples: where rows come from.
        draw: returns the positions of the rows in a step.
        steps: the numbers of the steps.
        largest: the maximum number of rows in a piece.
        ahead: the maximum number of pieces that wait.
    """

    def __init__(
        self, examples: Examples, draw: Callable[[int], Index], steps: range, *, largest: int, ahead: int = 4
    ) -> None:
        self.examples, self.draw, self.steps, self.largest = examples, draw, steps, largest
        self._queue: queue.Queue[_Piece | BaseException] = queue.Queue(maxsize=ahead)
        self._next: _Piece | BaseException | None = None  # returned by `peek`, and not taken yet
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="prefetch", daemon=True)
        self._stream: torch.cuda.Stream | None = None
        if examples.device.type == "cuda":
            self._stream = torch.cuda.Stream(examples.device)  # type: ignore[no-untyped-call]
            self._stream.wait_stream(torch.cuda.current_stream(examples.device))  # the data may still be in transfer

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        with contextlib.suppress(queue.Empty):
            while True:  # wakes a thread that waits for room in the queue
                self._queue.get_nowait()
        self._thread.join()

    def take_pieces(self) -> Iterator[Batch]:
        """Yield the pieces of the next step, in order; all of them must be taken."""
        while True:
            piece, self._next = self._next or self._queue.get(), None
            if isinstance(piece, BaseException):
                raise piece
            if piece.ready is not None:
                self._hand_over(piece.batch, piece.ready)
            yield piece.batch
            if piece.is_last:
                return

    def peek(self) -> Batch | None:
        """Return the next piece without taking it, if it is the only one of its step."""
        if self._next is None:
            self._next = self._queue.get()
        return self._next.batch if isinstance(self._next, _Piece) and self._next.is_last else None

    def _hand_over(self, batch: Batch, ready: torch.cuda.Event) -> None:
        current = torch.cuda.current_stream(self.examples.device)
        current.wait_event(ready)
        for tensor in pytree.tree_leaves(batch):
            tensor.record_stream(current)  # so that its memory is not reused too early

    def _work(self) -> None:
        try:
            for step in self.steps:
                parts = split_batch(self.draw(step), self.largest)
                for number, part in enumerate(parts):
                    self._put(self._take(part, is_last=number == len(parts) - 1))
                    if self._stopped.is_set():
                        return
        except BaseException as error:
            self._put(error)

    def _take(self, index: Index, *, is_last: bool) -> _Piece:
        if self._stream is None:
            return _Piece(self.examples.take(index), is_last, None)
        with torch.cuda.stream(self._stream):
            batch = self.examples.take(index)
            return _Piece(batch, is_last, self._stream.record_event())

    def _put(self, piece: _Piece | BaseException) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(piece, timeout=0.1)
                return
