"""Rules: the share of synthetic records that break a rule of the schema; a release of this package has none."""

from __future__ import annotations

from sundog.evaluation.comparison import Comparison
from sundog.evaluation.measure import Metric, measure_share
from sundog.evaluation.section import Section

BROKEN = "rules.broken"
METRICS = {
    BROKEN: Metric(
        "Records that break a rule",
        "low",
        "The share of synthetic records that break at least one of the rules which the schema declares.",
        ideal=0.0,
    )
}


def evaluate_rules(comparison: Comparison) -> Section:
    """Count the synthetic records that break each rule.

    >>> import numpy as np
    >>> from sundog.data.records import Records
    >>> from sundog.data.schema import Schema
    >>> number = {"type": "integer", "min": 0, "max": 9}
    >>> schema = Schema.from_dict({"columns": {"a": number, "b": number}, "rules": ["a <= b"]})
    >>> records = Records(schema, {"a": np.array([1, 2, 3, 4]), "b": np.array([5, 5, 5, 0])}, 4)
    >>> evaluate_rules(Comparison(records, records, train=records, test=records)).details
    {'rules': {'a <= b': 0.25}}
    """
    records = comparison.synthetic
    rules = records.schema.bind_rules()
    broken = {str(each.rule): each.count / len(records) for each in rules.find_broken(records.codes)}
    count = len(records) - int(rules.holds(records.codes).sum())
    return Section(
        title="Rules",
        measures={BROKEN: measure_share(count, len(records))},
        metrics=METRICS,
        details={"rules": {str(rule): broken.get(str(rule), 0.0) for rule in records.schema.rules}},
    )
