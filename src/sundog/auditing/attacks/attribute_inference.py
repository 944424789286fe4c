"""Attribute inference with its control: a column or an item that the attacker does not know, predicted from the rest.

A model that describes the population well predicts it for everybody; that is what synthetic data is for. Only if it
predicts better for members than for non-members has it revealed something about them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sundog.auditing.attack import Attack, Floats
from sundog.auditing.record_features import RecordFeatures
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.columns import Form
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.comparison import draw_seed, subsample

LEARNED_FROM = 20_000  # synthetic records
_MOST_VALUES = 50


class AttributeInference(Attack):
    """The probability that trees trained on synthetic records give to a candidate's own value."""

    name: ClassVar[str] = "attribute-inference"
    description: ClassVar[str] = "how well a column or item is predicted from the rest by what synthetic records teach"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC})

    def find_obstacle(self, threat: ThreatModel, schema: Schema) -> str | None:  # noqa: ARG002
        """Return that there is nothing to infer, if so."""
        if choose_secret(schema) is None:
            return f"there is no column of 2 to {_MOST_VALUES} categories beside others, and no set"
        return None

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:
        """Return the logarithm of the probability of the candidate's own value."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        secret = choose_secret(candidates.schema)
        assert secret is not None  # noqa: S101  `find_obstacle` has checked this
        learned = subsample(threat.synthetic, LEARNED_FROM, rng)
        item = _choose_item(learned.codes[secret]) if candidates.schema.columns[secret].form is Form.SET else None
        values, y = np.unique(_read_secret(learned, secret, item), return_inverse=True)
        if len(values) < 2:
            return np.zeros(len(candidates))
        known, others = (_hide_secret(records, secret, item) for records in (learned, candidates))
        features = RecordFeatures.fit(known)
        trees = HistGradientBoostingClassifier(max_iter=50, early_stopping=False, random_state=draw_seed(rng))
        chances = trees.fit(features.encode(known), y).predict_proba(features.encode(others))
        own = _read_secret(candidates, secret, item)
        place = np.searchsorted(values, own).clip(max=len(values) - 1)
        found = np.where(values[place] == own, chances[np.arange(len(place)), place], 0.0)
        return np.asarray(np.log(np.maximum(found, 1e-9)))


def choose_secret(schema: Schema) -> str | None:
    """Return the column to infer: the target of the schema, or the last of a few categories, or else the first set.

    >>> columns = {"age": {"type": "integer", "min": 0, "max": 9}, "ill": {"type": "boolean"}}
    >>> choose_secret(Schema.from_dict({"columns": columns}))
    'ill'
    """
    fitting = [
        name for name, column in schema.scalars.items() if column.is_categorical and 2 <= column.size <= _MOST_VALUES
    ]
    if fitting and len(schema.columns) > 1:
        return schema.target if schema.target in fitting else fitting[-1]
    return next((name for name, column in schema.columns.items() if column.form is Form.SET), None)


def _choose_item(sets: Any) -> int:
    """Return the item that comes nearest to being in half of the sets."""
    return int(np.abs(np.asarray(sets.mean(axis=0)).ravel() - 0.5).argmin())


def _read_secret(records: Records, name: str, item: int | None) -> npt.NDArray[Any]:
    """Return the code of each record, or whether its set has the item."""
    codes = records.codes[name]
    return np.asarray(codes if item is None else codes.tocsc()[:, [item]].toarray()[:, 0])


def _hide_secret(records: Records, name: str, item: int | None) -> Records:
    """Return the records with the same value everywhere, or without the item."""
    codes = records.codes[name]
    if item is None:
        return replace(records, codes={**records.codes, name: np.zeros_like(codes)})
    kept = codes.copy()
    kept.data[kept.indices == item] = 0
    kept.eliminate_zeros()
    return replace(records, codes={**records.codes, name: kept})
