"""What a training says while it runs: how far it is and what it has spent.

Nothing of it depends on a private record. The loss of private examples does, so it is neither shown nor computed,
unless somebody insists.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sundog.privacy.accountant import epsilon_spent
from sundog.privacy.events import Charge
from sundog.progress import Progress, silent
from sundog.training.training_plan import TrainingPlan

_INTERVAL = 0.25  # seconds between two messages
_COARSENESS = 4  # of the grid: milliseconds, and near enough to look at


class Telemetry:
    """Tells `progress` a few times a second.

    Args:
        progress: who is told.
        plan: what is being done.
        before: what was charged to the release before.
        delta: the δ at which ε is meant.
        done: how many steps were done when this began.
    """

    def __init__(
        self, progress: Progress, plan: TrainingPlan, *, before: Sequence[Charge], delta: float, done: int
    ) -> None:
        self._progress, self._plan, self._before, self._delta = progress, plan, list(before), delta
        self._first = done
        self._started = time.perf_counter()
        self._last = -_INTERVAL
        self._spent = ""
        self.quiet = progress is silent

    def spent(self, steps: int) -> None:
        """Takes in how many steps are paid for."""
        if self.quiet:
            return
        epsilon = epsilon_spent([*self._before, self._plan.charge(steps)], delta=self._delta, coarseness=_COARSENESS)
        self._spent = f", ε ≈ {epsilon:.3g} so far"

    def due(self) -> bool:
        """Whether it is time to say something again."""
        return not self.quiet and time.perf_counter() - self._last >= _INTERVAL

    def say(self, done: int, note: str = "") -> None:
        """Says how far it is."""
        if self.quiet:
            return
        self._last = time.perf_counter()
        text = f"{self._plan.purpose}: step {done:,} of {self._plan.steps:,}{self._spent}{self._left(done)}{note}"
        self._progress(text, done / self._plan.steps)

    def _left(self, done: int) -> str:
        if done <= self._first:
            return ""
        a_step = (time.perf_counter() - self._started) / (done - self._first)
        return f", {duration(a_step * (self._plan.steps - done))} left"


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(40.4), duration(400), duration(40_000)
    ('40 s', '7 min', '11 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"
