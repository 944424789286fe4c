"""Singling out (after Giomi et al. 2023): pairs of values that only one candidate has, and that the release shows.

Two values that single out a rare candidate among all candidates are looked for in the synthetic records. If the model
remembers records, the values of members are found more often than those of non-members.
"""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sundog.auditing.attack import Attack, Floats
from sundog.auditing.rarity import find_rarest
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records
from sundog.data.schema import Schema

_MOST_PAIRS = 300  # of columns


class SinglingOut(Attack):
    """How many pairs of values that single out a rare candidate stand in the synthetic records."""

    name: ClassVar[str] = "singling-out"
    description: ClassVar[str] = (
        "how many pairs of values that only this candidate has are in the synthetic records, for the rarest candidates"
    )
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC})

    def find_obstacle(self, threat: ThreatModel, schema: Schema) -> str | None:  # noqa: ARG002
        """Return that there are no pairs of columns, if so."""
        return None if len(schema.scalars) > 1 else "there are no two columns of single values"

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:
        """Return the number of pairs; NaN for all but the rarest candidates."""
        rarest = find_rarest(candidates)
        found = np.zeros(len(rarest))
        pairs = list(combinations(candidates.schema.scalars, 2))
        chosen = rng.choice(len(pairs), min(_MOST_PAIRS, len(pairs)), replace=False)
        for first, second in (pairs[place] for place in chosen.tolist()):
            size = np.int64(candidates.schema.columns[second].size)
            if candidates.schema.columns[first].size > np.iinfo(np.int64).max // size:
                continue  # a pair of values has no number
            ours, theirs = (_number_pairs(records, first, second, size) for records in (candidates, threat.synthetic))
            _, inverse, counts = np.unique(ours, return_inverse=True, return_counts=True)
            single = counts[inverse][rarest] == 1
            found += single & np.isin(ours[rarest], theirs)
        scores = np.full(len(candidates), np.nan)
        scores[rarest] = found
        return scores


def _number_pairs(records: Records, first: str, second: str, size: np.int64) -> npt.NDArray[np.int64]:
    """Return a number for each pair of values."""
    return np.asarray(records.codes[first], np.int64) * size + np.asarray(records.codes[second], np.int64)
