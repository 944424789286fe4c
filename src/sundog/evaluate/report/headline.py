"""A report in a few sentences, from where its main measures lie between independent columns and real data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sundog.evaluate.measure import Measures, Metric
from sundog.evaluate.report.words import (
    BELOW,
    FLOOR,
    SAME,
    UNKNOWN,
    Standing,
    capital,
    number,
    places,
    standings,
)
from sundog.evaluate.section import Section

_ONE_COLUMN = "fidelity.tvd_1way"
_RELATIONS = "fidelity.tvd_2way"
_MAIN = (
    _ONE_COLUMN,
    _RELATIONS,
    "utility.tstr.forest.auc",
    "utility.tstr.forest.r2",
    "images.frechet",
    "images.downstream.cnn",
    "series.discriminative_score",
    "sets.item_tvd",
    "queries.relative_error",
)
_JUDGE = "fidelity.propensity_auc"
_LEARNERS = {
    "forest": "A forest",
    "logistic": "A logistic regression",
    "ridge": "A linear regression",
    "boosting": "A boosted ensemble of trees",
    "mlp": "A neural network",
    "cnn": "A convolutional network",
}
_SCORES = {
    "auc": "an AUC of",
    "accuracy": "an accuracy of",
    "r2": "an R² of",
    "cnn": "an accuracy of",
}


def main_names(sections: Sequence[Section]) -> list[str]:
    """The measures that a headline is about: what is best known, and of other sections the first."""
    names = []
    for section in sections:
        names += [name for name in _MAIN if name in section.measures] or list(section.measures)[:1]
    return names


def headline(sections: Sequence[Section], ceiling: Measures, floor: Measures) -> str:
    """The whole report in a few sentences."""
    standing = standings(sections, ceiling, floor)
    metrics = {name: metric for section in sections for name, metric in section.metrics.items()}
    names = main_names(sections)
    tables = [_table_clause(name, standing[name]) for name in names if name in (_ONE_COLUMN, _RELATIONS)]
    others = [_sentence(name, standing[name], metrics) for name in names if name not in (_ONE_COLUMN, _RELATIONS)]
    first = "; ".join(tables)
    said = [*([f"{capital(first)}."] if first else []), *others]
    return " ".join(said) or "Nothing was measured."


def _table_clause(name: str, standing: Standing) -> str:
    return _one_column(standing) if name == _ONE_COLUMN else _relations(standing)


def _one_column(standing: Standing) -> str:
    """By the distance itself: independent columns are as good here as real data, so there is no floor."""
    if standing.words in (SAME, UNKNOWN):
        return f"{standing.words}, one column at a time"
    for most, words in ((0.02, "very close to"), (0.05, "close to"), (0.15, "roughly like")):
        if standing.measure.value <= most:
            return f"{words} the real data one column at a time"
    return "far from the real data even one column at a time"


def _relations(standing: Standing) -> str:
    if standing.words == SAME:
        return "relations between columns are kept, with no measurable difference"
    if standing.words == UNKNOWN or standing.share is None:
        return f"relations between columns: {standing.words or UNKNOWN}"
    if standing.words == FLOOR:
        return "relations between columns are lost"
    if standing.words == BELOW:
        return f"relations between columns are lost ({BELOW})"
    steps = ((0.9, "kept"), (0.7, "mostly kept"), (0.4, "partly kept"), (0.1, "mostly lost"), (-math.inf, "lost"))
    kept = next(words for least, words in steps if standing.share >= least)
    return f"relations between columns are {kept}"


def _sentence(name: str, standing: Standing, metrics: Mapping[str, Metric]) -> str:
    """One measure by itself, with what real data gives."""
    reached = _reached(name)
    decimals = places(standing.measure.value)
    if reached is None or standing.words == UNKNOWN or standing.ceiling is None:
        value = number(standing.measure.value, decimals)
        return f"{capital(metrics[name].label)}: {value}{f', {standing.words}' if standing.words else ''}."
    value, real = (number(each.value, min(decimals, 2)) for each in (standing.measure, standing.ceiling))
    if standing.words == SAME:
        return f"{reached} {value}: {SAME} ({real})."
    worse = f", {standing.words}" if standing.words in (FLOOR, BELOW) else ""
    return f"{reached} {value} where real data gives {real}{worse}."


def _reached(name: str) -> str | None:
    """The beginning of a sentence about a model; None where the measure is not of one."""
    if name == _JUDGE:
        return "A model that tells it from real data reaches an AUC of"
    *steps, score = name.split(".")
    learner = next((_LEARNERS[step] for step in (*steps, score) if step in _LEARNERS), None)
    return f"{learner} trained on it reaches {_SCORES[score]}" if learner and score in _SCORES else None
