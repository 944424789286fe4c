"""The baseline of the literature: a candidate near a synthetic record is called a member."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sundog.auditing.attack import Attack, Floats
from sundog.auditing.nearest_records import RecordDistance
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records


class EuclideanDistance(Attack):
    """Minus the distance to the nearest synthetic record; common records are near without being members."""

    name: ClassVar[str] = "euclidean-distance"
    description: ClassVar[str] = "how near the nearest synthetic record is (the baseline; rare members are far as well)"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC})

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        """Return minus the distances."""
        synthetic = threat.synthetic
        return -RecordDistance.fit(candidates.schema, synthetic).find_nearest(candidates, synthetic)
