"""The number of threads: one, unless several are measured to be faster.

OpenMP threads synchronise after every matrix product, by spinning. For small products that costs more than it saves,
and if another process occupies a core, every product waits for the thread there: a fit of seconds can take an hour. So
training starts on one thread, tries more only if steps are long, and keeps them only as long as they are faster.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import torch

_LONG_STEP = 0.02  # seconds on one thread: shorter steps do not gain from more
_TRIED_AFTER = 3  # blocks: the first ones are slower than usual
_TRIED_AGAIN = 30  # blocks later: other processes start and end
_SLOWED = 1.5  # times as long as before: another process has started
_SHARE = 8  # a trial has 1 / _SHARE of the steps of a block: it may be far slower


_allowed: ContextVar[int | None] = ContextVar("_allowed", default=None)


def count_allowed_threads() -> int:
    """Return the number of threads that torch may use outside of `use_one_thread`."""
    return _allowed.get() or torch.get_num_threads()


@contextlib.contextmanager
def use_one_thread() -> Iterator[None]:
    """Limit torch to one thread inside the block.

    >>> with use_one_thread():
    ...     torch.get_num_threads()
    1
    """
    before, token = torch.get_num_threads(), _allowed.set(count_allowed_threads())
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _allowed.reset(token)


class ThreadChoice:
    """Choose between one thread and the maximum, by the time of blocks of steps.

    >>> choice = ThreadChoice(most=2)
    >>> for number in range(4):
    ...     choice.learn(steps=10, seconds=1.0 if choice.count == 1 else 0.6, used=1.0)
    >>> choice.count
    2

    Args:
        most: the maximum number of threads.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 1
        self._kept = 1  # the fastest in the last trial
        self._seconds: dict[int, float] = {}  # per step, when last measured
        self._blocks = 0

    @property
    def is_trial(self) -> bool:
        """Whether the next block is run with another number of threads, only to see how long it takes."""
        return self.count != self._kept

    def limit(self, steps: int) -> int:
        """Return the number of steps to take of a block of this length."""
        return max(1, steps // _SHARE) if self.is_trial else steps

    def learn(self, *, steps: int, seconds: float, used: float) -> None:
        """Choose the number of threads for the next block.

        Args:
            steps: the number of steps in the last block.
            seconds: its wall time.
            used: the CPU time of the thread that took the steps, which other processes do not change.
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
