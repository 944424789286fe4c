"""Learning rate schedules: a factor of the initial rate, as a function of the step number only.

A resumed training therefore needs no state for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[int], float]  # step number, from 0, to factor


def make_cosine_schedule(steps: int, *, last: float = 0.0) -> Schedule:
    """Return a schedule along half a cosine wave, from 1 down to `last`.

    >>> [round(make_cosine_schedule(5)(step), 2) for step in range(5)]
    [1.0, 0.85, 0.5, 0.15, 0.0]
    """
    return lambda step: last + (1 - last) * (1 + math.cos(math.pi * min(1.0, step / max(1, steps - 1)))) / 2
