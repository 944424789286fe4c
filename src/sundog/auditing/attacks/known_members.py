"""Attackers who know some of the members: a classifier learns from them what a member looks like beside the release.

The same classifier without the release is the blind control: if it distinguishes members from non-members, they are not
a random split of one population, and what other attacks find is no evidence of a leak.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sundog.auditing.attack import Attack, Floats
from sundog.auditing.attacks.model_likelihood import Likelihood
from sundog.auditing.nearest_records import RecordDistance
from sundog.auditing.record_features import RecordFeatures
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records, concatenate
from sundog.evaluation.comparison import draw_seed, subsample

LEARNED_FROM = 20_000  # known members, and as many known non-members
_ROUNDS = 50


class BlindClassifier(Attack):
    """Boosted trees on the values of known members and non-members; they see nothing of the release."""

    name: ClassVar[str] = "blind"
    description: ClassVar[str] = "a classifier of the records that never sees the release (a control)"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.MEMBERS, Knowledge.NONMEMBERS})

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:
        """Return the probability that a candidate is a member."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        members, nonmembers = (subsample(each, LEARNED_FROM, rng) for each in (threat.members, threat.nonmembers))
        known = concatenate([members, nonmembers])
        features = RecordFeatures.fit(known)
        y = np.repeat([1, 0], [len(members), len(nonmembers)])
        trees = HistGradientBoostingClassifier(max_iter=_ROUNDS, early_stopping=False, random_state=draw_seed(rng))
        trees.fit(self.describe(threat, features, known, rng), y)
        return np.asarray(trees.predict_proba(self.describe(threat, features, candidates, rng))[:, 1])

    def describe(
        self,
        threat: ThreatModel,  # noqa: ARG002  the release is not seen
        features: RecordFeatures,
        records: Records,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> npt.NDArray[Any]:
        """Return what the classifier sees of the records, one row for each."""
        return features.encode(records)


class KnownMembers(BlindClassifier):
    """The same, with what the release tells: how near it comes to a record, and how probable it finds it."""

    name: ClassVar[str] = "known-members"
    description: ClassVar[str] = "a classifier that has learned from known members how the release treats them"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC, Knowledge.MEMBERS, Knowledge.NONMEMBERS})

    def describe(
        self, threat: ThreatModel, features: RecordFeatures, records: Records, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Return the values, the distance to the nearest synthetic record, and the likelihood if there is one."""
        synthetic, likelihood = threat.synthetic, Likelihood()
        told = [RecordDistance.fit(records.schema, synthetic).find_nearest_both_ways(records, synthetic)]
        if not threat.find_missing(likelihood.needs) and likelihood.find_obstacle(threat, records.schema) is None:
            told.append(likelihood.score(threat, records, rng))
        return np.column_stack([features.encode(records), *told])
