"""The critic's own scores (white box, Hayes et al. 2019): a critic that overfits scores training records higher."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sundog.auditing.attack import Attack, Floats
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records
from sundog.data.schema import Schema


class CriticScore(Attack):
    """The score of the critic in the curator's file."""

    name: ClassVar[str] = "critic"
    description: ClassVar[str] = "the score of the critic that the curator kept"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.PRIVATE_FILE})

    def find_obstacle(self, threat: ThreatModel, schema: Schema) -> str | None:
        """Return that the private file is of another schema, if so."""
        if threat.private_file.schema.columns != schema.columns:
            return "the private file is of another schema"
        return None

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        """Return the scores."""
        from sundog.models.gan.saved_critic import Critic

        given = threat.private_file
        return Critic(given.schema, given.state).score(Records(given.schema, candidates.codes, len(candidates)))
