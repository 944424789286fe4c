"""Steps are paid for, run and kept in blocks: how long a block is, and how Ctrl-C waits for its end."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Self

BLOCK_SECONDS = 1.0  # what a crash may cost, and how long Ctrl-C waits
_OVERHEAD = 0.05  # paying and keeping take no more of the time than this
_GROWTH = 8  # times as many steps as in the block before, at most: the first steps are slow, and tell little


class Pace:
    """How many steps the next block has.

    >>> pace = Pace()
    >>> pace.steps
    1
    >>> pace.learn(steps=1, working=0.01, overhead=0.002)
    >>> pace.steps
    8
    >>> pace.learn(steps=8, working=0.02, overhead=0.002)  # 400 steps a second, and growing slowly
    >>> pace.steps
    64

    Args:
        fixed: always this many.
    """

    def __init__(self, fixed: int | None = None) -> None:
        self.fixed = fixed
        self.steps = 1 if fixed is None else fixed

    def learn(self, *, steps: int, working: float, overhead: float) -> None:
        """Takes in how many seconds a block took, and how many it took to pay for it and keep it."""
        if self.fixed is not None:
            return
        seconds = max(BLOCK_SECONDS, overhead * (1 - _OVERHEAD) / _OVERHEAD)
        wanted = int(seconds * steps / max(working, 1e-9))
        self.steps = max(1, min(wanted, _GROWTH * self.steps))


class Patience:
    """Notes the first Ctrl-C, so that what was paid for is finished; the second one stops at once.

    Only where Python's own handler is in place: whoever has set another one gets every signal, as before.
    """

    def __init__(self) -> None:
        self.asked = False  # to stop
        self._installed = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._installed = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._installed:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Inside the block Ctrl-C stops at once: nothing is paid for, and what is done can be done again."""
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            if self._installed:
                signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.default_int_handler(number, frame)
        self.asked = True
