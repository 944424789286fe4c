"""Nearest-neighbour density ratio (after DOMIAS, van Breugel et al. 2023).

A candidate is near many synthetic records if it is common, or if the model remembers it. The distance to the nearest
record of a reference sample tells how common it is. A copy of an image or a series may have been shifted, or noise may
have been added: the larger ratio of the two ways to compare them counts.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sundog.auditing.array_components import thin_out
from sundog.auditing.attack import Attack, Floats
from sundog.auditing.nearest_records import RecordDistance
from sundog.auditing.rarity import find_rarest
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records

_LEAST = 1e-3  # the smallest distance: smaller ones are rounding errors of single precision


class DensityRatio(Attack):
    """The logarithm of the distance to the nearest reference record over that to the nearest synthetic one."""

    name: ClassVar[str] = "density-ratio"
    description: ClassVar[str] = "how near the nearest synthetic record is, compared with the nearest reference record"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC, Knowledge.REFERENCE})

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        """Return the logarithm of the ratio."""
        synthetic, reference = threat.synthetic, threat.reference
        distance = RecordDistance.fit(candidates.schema, thin_out(reference, synthetic))
        near, usual = (distance.find_nearest_both_ways(candidates, among) for among in (synthetic, reference))
        return np.asarray((np.log(np.maximum(usual, _LEAST)) - np.log(np.maximum(near, _LEAST))).max(axis=1))


class RareDensityRatio(DensityRatio):
    """The density ratio of rare candidates only, where a copy stands out most."""

    name: ClassVar[str] = "rare-density-ratio"
    description: ClassVar[str] = "the density ratio of the rarest candidates only, where a copy stands out"

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:
        """Return the logarithm of the ratio; NaN for all but the rarest candidates."""
        rarest = find_rarest(candidates)
        found = np.full(len(candidates), np.nan)
        found[rarest] = super().score(threat, candidates.take(rarest), rng)
        return found
