"""How many steps a critic takes before its generator takes one.

A critic that learns through noise falls behind, and a generator that runs ahead of it learns nothing true. How far it
is behind can be seen without any record: by how many of the generated records it recognises as such (Bie et al. 2023).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

_MEMORY = 0.9  # of the share that is recognised


@dataclass
class Balance:
    """Says when it is the generator's turn.

    >>> balance = Balance(steps=2, least=0.6, most=8)
    >>> [balance.due() for _ in range(4)]
    [False, True, False, True]
    >>> balance.saw(0.5)  # of the generated records are recognised: too few
    >>> balance.steps
    4

    Args:
        steps: of the critic for each of the generator, to begin with.
        least: the share of generated records that a critic should recognise; 0 to leave the steps as they are.
        most: steps of the critic.
    """

    steps: int
    least: float
    most: int = 1000
    since: int = 0
    taken: int = 0
    recognised: float | None = None

    def due(self) -> bool:
        """Counts a step of the critic; is it the generator's turn now?"""
        self.since += 1
        if self.since < self.steps:
            return False
        self.since = 0
        self.taken += 1
        return True

    def saw(self, recognised: float) -> None:
        """Takes note of how many the critic recognised; if they are few for long, it gets twice the steps."""
        before = recognised if self.recognised is None else self.recognised
        self.recognised = _MEMORY * before + (1 - _MEMORY) * recognised
        if self.recognised < self.least:
            self.steps, self.recognised = min(self.most, 2 * self.steps), None

    def state_dict(self) -> dict[str, Any]:
        """What to keep."""
        return asdict(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what was kept."""
        for name, value in state.items():
            setattr(self, name, value)
