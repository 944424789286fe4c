"""Learning rates as factors of where they began: a function of the number of the step, and of nothing else.

So a training that goes on after an interruption needs no memory of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[int], float]  # the number of a step, from 0, to a factor


def constant() -> Schedule:
    """The same throughout."""
    return lambda _: 1.0


def cosine(steps: int, *, last: float = 0.0) -> Schedule:
    """Half a wave, from 1 down to `last`.

    >>> [round(cosine(5)(step), 2) for step in range(5)]
    [1.0, 0.85, 0.5, 0.15, 0.0]
    """
    return lambda step: last + (1 - last) * (1 + math.cos(math.pi * min(1.0, step / max(1, steps - 1)))) / 2


def warmed_up(steps: int, then: Schedule | None = None) -> Schedule:
    """Rises in equal steps to 1, times another schedule.

    >>> [warmed_up(4)(step) for step in range(6)]
    [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    """
    rest = constant() if then is None else then
    return lambda step: min(1.0, (step + 1) / max(1, steps)) * rest(step)
