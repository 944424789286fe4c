"""Progress messages of a training: the step number, the ε spent and the time left.

They do not depend on private records. The loss does, so it is neither shown nor computed unless asked for.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge
from sundog.progress import Progress, silent
from sundog.training.training_plan import TrainingPlan

_INTERVAL = 0.25  # seconds between two messages
_COARSENESS = 4  # of the accounting grid: fast, and accurate enough for a display


class ProgressMessages:
    """Calls `progress` a few times per second.

    Args:
        progress: the callback.
        plan: of the training.
        before: the charges of the release before this training.
        delta: the δ for which ε is computed.
        done: the number of steps done so far.
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

    def update_spent(self, steps: int) -> None:
        """Compute the ε spent, given how many steps are charged."""
        if self.quiet:
            return
        epsilon = compute_epsilon(
            [*self._before, self._plan.make_charge(steps)], delta=self._delta, coarseness=_COARSENESS
        )
        self._spent = f", ε ≈ {epsilon:.3g} so far"

    def is_due(self) -> bool:
        """Return whether it is time for the next message."""
        return not self.quiet and time.perf_counter() - self._last >= _INTERVAL

    def send(self, done: int, note: str = "") -> None:
        """Send a message."""
        if self.quiet:
            return
        self._last = time.perf_counter()
        left = self._format_time_left(done)
        text = f"{self._plan.purpose}: step {done:,} of {self._plan.steps:,}{self._spent}{left}{note}"
        self._progress(text, done / self._plan.steps)

    def _format_time_left(self, done: int) -> str:
        if done <= self._first:
            return ""
        a_step = (time.perf_counter() - self._started) / (done - self._first)
        return f", {format_duration(a_step * (self._plan.steps - done))} left"


def format_duration(seconds: float) -> str:
    """Format a duration.

    >>> format_duration(40.4), format_duration(400), format_duration(40_000)
    ('40 s', '7 min', '11 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"
