"""A classifier that learns to tell synthetic records from reference records: the ratio of their densities."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sundog.auditing.attack import Attack, Floats
from sundog.auditing.record_features import RecordFeatures
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records, concatenate
from sundog.evaluation.comparison import draw_seed, subsample

LEARNED_FROM = 20_000  # records of each kind
_LEAST = 1e-9


class DensityClassifier(Attack):
    """The log-odds of boosted trees that a candidate is synthetic rather than of the reference sample."""

    name: ClassVar[str] = "density-classifier"
    description: ClassVar[str] = (
        "how much rather a classifier takes it for a synthetic record than for a reference record"
    )
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC, Knowledge.REFERENCE})

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:
        """Return the log-odds."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        synthetic, reference = (subsample(each, LEARNED_FROM, rng) for each in (threat.synthetic, threat.reference))
        features = RecordFeatures.fit(concatenate([reference, synthetic]))
        x = np.concatenate([features.encode(synthetic), features.encode(reference)])
        y = np.repeat([1, 0], [len(synthetic), len(reference)])
        trees = HistGradientBoostingClassifier(
            class_weight="balanced", early_stopping=False, random_state=draw_seed(rng)
        ).fit(x, y)
        chances = trees.predict_proba(features.encode(candidates))[:, 1]
        return np.asarray(np.log(np.maximum(chances, _LEAST)) - np.log(np.maximum(1 - chances, _LEAST)))
