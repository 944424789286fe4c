"""Exact matches of rare records: a rare record that stands in the synthetic data was probably a member."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sundog.auditing.attack import Attack, Floats
from sundog.auditing.rarity import find_rarest
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records
from sundog.evaluation.holdout_overlap import hash_records


class ExactMatch(Attack):
    """Whether a rare candidate is among the synthetic records."""

    name: ClassVar[str] = "exact-match"
    description: ClassVar[str] = "which of the rarest candidates are among the synthetic records, value by value"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC})

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        """Return 1 for a match and 0 for none; NaN for all but the rarest candidates."""
        rarest = find_rarest(candidates)
        found = np.full(len(candidates), np.nan)
        found[rarest] = np.isin(hash_records(candidates.take(rarest)), hash_records(threat.synthetic))
        return found
