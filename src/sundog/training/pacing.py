"""The length of blocks of steps, which are charged, run and saved together, and Ctrl-C between blocks."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Self

BLOCK_SECONDS = 1.0  # how much work a crash may lose, and how long Ctrl-C waits
_OVERHEAD = 0.05  # the share of the time for charging and saving, at most
_GROWTH = 8  # of the number of steps from one block to the next, at most: the first steps are slower


class Pace:
    """The number of steps in the next block, so that a block takes about a second.

    >>> pace = Pace()
    >>> pace.steps
    1
    >>> pace.learn(steps=1, working=0.01, overhead=0.002)
    >>> pace.steps
    8
    >>> pace.learn(steps=8, working=0.02, overhead=0.002)  # 400 steps per second; growth is limited
    >>> pace.steps
    64

    Args:
        fixed: a constant number of steps instead.
    """

    def __init__(self, fixed: int | None = None) -> None:
        self.fixed = fixed
        self.steps = 1 if fixed is None else fixed

    def learn(self, *, steps: int, working: float, overhead: float) -> None:
        """Update the length, given the seconds that a block took to run, and to charge and save."""
        if self.fixed is not None:
            return
        seconds = max(BLOCK_SECONDS, overhead * (1 - _OVERHEAD) / _OVERHEAD)
        wanted = int(seconds * steps / max(working, 1e-9))
        self.steps = max(1, min(wanted, _GROWTH * self.steps))


class DeferredInterrupt:
    """Defer the first Ctrl-C to the end of a block, which was charged already; the second one stops at once.

    It does nothing where another signal handler than Python's own is installed.
    """

    def __init__(self) -> None:
        self.requested = False
        self._installed = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._installed = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._installed:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextlib.contextmanager
    def suspend(self) -> Iterator[None]:
        """Let Ctrl-C stop at once inside the block, in which nothing is charged."""
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            if self._installed:
                signal.signal(signal.SIGINT, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.default_int_handler(number, frame)
        self.requested = True
