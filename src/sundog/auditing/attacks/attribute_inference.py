"""Attribute inference with its control: a column that the attacker does not know, predicted from all others.

A model that describes the population well predicts the column for everybody; that is what synthetic data is for. Only
if it predicts better for members than for non-members has it revealed something about them.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sundog.auditing.attack import Attack, Floats
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.comparison import draw_seed, subsample
from sundog.evaluation.prediction.design_matrix import encode_ordinal

LEARNED_FROM = 20_000  # synthetic records
_MOST_VALUES = 50


class AttributeInference(Attack):
    """The probability that trees trained on synthetic records give to a candidate's own value."""

    name: ClassVar[str] = "attribute-inference"
    description: ClassVar[str] = "how well one column is predicted from the others by what synthetic records teach"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC})

    def find_obstacle(self, threat: ThreatModel, schema: Schema) -> str | None:  # noqa: ARG002
        """Return that there is no column to infer, if so."""
        if choose_secret(schema) is None or len(schema.scalars) < 2:
            return f"there is no column of 2 to {_MOST_VALUES} categories to infer from others"
        return None

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:
        """Return the logarithm of the probability of the candidate's own value."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        secret = choose_secret(candidates.schema)
        assert secret is not None  # noqa: S101  `find_obstacle` has checked this
        known = [name for name in candidates.schema.scalars if name != secret]
        learned = subsample(threat.synthetic, LEARNED_FROM, rng)
        values, y = np.unique(learned.codes[secret], return_inverse=True)
        if len(values) < 2:
            return np.zeros(len(candidates))
        trees = HistGradientBoostingClassifier(max_iter=50, early_stopping=False, random_state=draw_seed(rng))
        chances = trees.fit(encode_ordinal(learned, known), y).predict_proba(encode_ordinal(candidates, known))
        place = np.searchsorted(values, candidates.codes[secret]).clip(max=len(values) - 1)
        own = np.where(values[place] == candidates.codes[secret], chances[np.arange(len(place)), place], 0.0)
        return np.asarray(np.log(np.maximum(own, 1e-9)))


def choose_secret(schema: Schema) -> str | None:
    """Return the column to infer: the target of the schema, or the last that has a few categories.

    >>> columns = {"age": {"type": "integer", "min": 0, "max": 9}, "ill": {"type": "boolean"}}
    >>> choose_secret(Schema.from_dict({"columns": columns}))
    'ill'
    """
    fitting = [
        name for name, column in schema.scalars.items() if column.is_categorical and 2 <= column.size <= _MOST_VALUES
    ]
    if schema.target in fitting:
        return schema.target
    return fitting[-1] if fitting else None
