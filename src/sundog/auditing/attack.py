"""What a membership attack is: it scores candidates, of which some are members, given what a threat model holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records
from sundog.data.schema import Schema

Floats = npt.NDArray[np.float64]


class Attack(ABC):
    """A membership attack. It never learns which candidates are members.

    Attributes:
        name: as `--attack` takes it.
        description: one sentence on what it does.
        needs: what the attacker must hold.
        slow: whether it takes so long on a CPU that it is only tried by its name.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    needs: ClassVar[frozenset[Knowledge]]
    slow: ClassVar[bool] = False

    def find_obstacle(self, threat: ThreatModel, schema: Schema) -> str | None:  # noqa: ARG002  none by default
        """Return why it cannot be run on records of a schema, or None if it can; what it needs is held."""
        return None

    @abstractmethod
    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:
        """Return a score for each candidate: the higher, the more likely it is a member; NaN if it does not guess.

        The score of a candidate may depend on the others, but not on their order. About which it guesses must depend on
        the candidates alone: the bound on ε takes it for granted that this says nothing about membership.
        """


def score_people(scores: Floats, people: npt.NDArray[np.int64]) -> Floats:
    """Return the score of each person, in the order of their numbers: the highest of their records' scores.

    >>> score_people(np.array([0.1, 0.7, np.nan, np.nan]), np.array([0, 0, 1, 0])).tolist()
    [0.7, nan]
    """
    highest = np.full(int(people.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(highest, people, np.where(np.isnan(scores), -np.inf, scores))
    guessed = np.zeros(len(highest), bool)
    guessed[people[~np.isnan(scores)]] = True
    return np.where(guessed, highest, np.nan)
