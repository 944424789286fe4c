"""How many threads compute: one, unless several are measured to be faster.

Threads that share a product of matrices wait for each other at its end, and OpenMP's wait by spinning. Small products
are done before the others have noticed. And where another process has one of the cores, every product waits until the
thread there gets its turn again: a fit of seconds can take an hour. So work begins on one thread, and training tries
more of them only where a step is long, and keeps them only as long as they are faster.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import torch

_LONG_STEP = 0.02  # seconds on one thread: a shorter step has little to share
_TRIED_AFTER = 3  # blocks, so that the first ones, which set things up, are not taken for the usual
_TRIED_AGAIN = 30  # blocks later, for other processes come and go
_SLOWED = 1.5  # times as long as before: somebody else is at work now
_SHARE = 8  # a trial has at most this part of a block's steps: it may be far slower


_allowed: ContextVar[int | None] = ContextVar("_allowed", default=None)


def allowed_threads() -> int:
    """How many threads torch had been given before `one_thread` took all but one away."""
    return _allowed.get() or torch.get_num_threads()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Everything that torch does inside the block is done by the thread that asks for it.

    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before, token = torch.get_num_threads(), _allowed.set(allowed_threads())
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _allowed.reset(token)


class ThreadChoice:
    """Chooses between one thread and as many as there may be, by how long blocks of steps took.

    >>> choice = ThreadChoice(most=2)
    >>> for number in range(4):
    ...     choice.learn(steps=10, seconds=1.0 if choice.count == 1 else 0.6, used=1.0)
    >>> choice.count
    2

    Args:
        most: how many threads there may be.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 1
        self._kept = 1  # what was fastest when it was last tried
        self._seconds: dict[int, float] = {}  # a step, when last measured
        self._blocks = 0

    @property
    def is_trial(self) -> bool:
        """Whether the next block is run with another number of threads, only to see how long it takes."""
        return self.count != self._kept

    def limit(self, steps: int) -> int:
        """How many steps of a block to take now."""
        return max(1, steps // _SHARE) if self.is_trial else steps

    def learn(self, *, steps: int, seconds: float, used: float) -> None:
        """Takes in how long a block took, and chooses for the next one.

        Args:
            steps: in the block.
            seconds: by the clock.
            used: of the processor, by the thread that takes the steps; others on the machine do not change it.
        """
        before, self._seconds[self.count] = self._seconds.get(self.count), seconds / steps
        if self.count > 1 and before is not None and seconds / steps > _SLOWED * before:
            self._blocks = _TRIED_AFTER
        self._blocks += 1
        if self.is_trial:
            self._kept = self.count = min(self._seconds, key=lambda count: self._seconds[count])
            self._blocks = _TRIED_AFTER - _TRIED_AGAIN
        elif self.most > 1 and self._blocks >= _TRIED_AFTER and (self.count > 1 or used / steps >= _LONG_STEP):
            self.count = 1 if self.count > 1 else self.most
