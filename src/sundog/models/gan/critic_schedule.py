"""How many steps a critic takes for each step of its generator.

A critic that is trained with noise falls behind its generator, which then learns nothing useful; a generator that
waits for its critic learns slowly. The share of generated records that the critic recognises shows which of them is
ahead, and depends on no private record (Bie et al. 2023, where the critic may get more steps, never fewer).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

_PACE = 0.05  # how fast the number of steps follows the share of recognised records
FEWEST, MOST = 0.25, 1000.0  # steps of the critic


@dataclass
class CriticSchedule:
    """The number of steps of the generator after each step of the critic.

    >>> schedule = CriticSchedule(steps=2, target=0.6)
    >>> [schedule.advance() for _ in range(4)]
    [0, 1, 0, 1]
    >>> schedule.observe(0.5)  # of the generated records are recognised: too few
    >>> schedule.steps > 2
    True

    Args:
        steps: of the critic for each of the generator, to begin with.
        target: the share of generated records that a critic should recognise; 0 to leave the steps as they are.
    """

    steps: float
    target: float
    credit: float = 0.0
    taken: int = 0

    def advance(self) -> int:
        """Count a step of the critic, and return the number of steps that the generator takes next."""
        self.credit += 1.0
        due = int(self.credit / self.steps)
        self.credit -= due * self.steps
        self.taken += due
        return due

    def observe(self, recognised: float) -> None:
        """Adapt to the share of generated records that the critic recognised: more steps if it is small, else fewer."""
        self.steps = min(MOST, max(FEWEST, self.steps * math.exp(_PACE * (self.target - recognised))))

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return asdict(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state from a checkpoint."""
        for name, value in state.items():
            setattr(self, name, value)
