"""Propensity: can a model distinguish synthetic records from real ones, and by which columns?

Held-out real records and as many synthetic ones are pooled. Gradient boosting learns from one half which is which and
is tested on the other half. The halves are not swapped: both turns would find the same chance differences, and their
errors would not be independent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.records import Records
from sundog.errors import DataError
from sundog.evaluation.comparison import Comparison, draw_seed, subsample
from sundog.evaluation.measure import Metric
from sundog.evaluation.prediction import learners
from sundog.evaluation.prediction.design_matrix import Floats, Integers, encode_ordinal
from sundog.evaluation.prediction.roc import Ranking, measure_mean_area
from sundog.evaluation.section import Picture, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Bools = NDArray[np.bool_]

_FEWEST = 20  # records of each kind
_MOST = 20_000
_SHUFFLED = 5_000  # records whose columns are shuffled
_SHOWN = 10  # columns in the picture
_AUC = "fidelity.propensity_auc"

_METRICS = {
    _AUC: Metric(
        "distinguished from real",
        "low",
        "How often a model, shown a synthetic record and a real one, is right about which is which; 0.5 is guessing, "
        "1 is always.",
    )
}


@learners.limit_threads()
def evaluate_propensity(comparison: Comparison) -> Section:
    """Measure how well synthetic records can be distinguished from held-out real ones by all scalar columns."""
    names = list(comparison.real.schema.scalars)
    if not names:
        raise DataError("no column has one value per record; records cannot be distinguished by columns")
    rng = comparison.make_rng("propensity")
    heap, is_synthetic = _pool_records(comparison, names, rng)
    learn, test = _split_halves(is_synthetic, rng)
    learned, asked = learners.zero_empty_columns(heap[learn], heap[test])
    model = learners.make_boosting(draw_seed(rng), comparison.real.schema, names, rows=len(learn))
    learners.fit_learner(model, learned, is_synthetic[learn])
    importance = _measure_importance(model, asked, is_synthetic[test], names, rng)
    ranking = Ranking(model.predict_proba(asked)[:, 1], is_synthetic[test])
    return Section(
        title="Distinguishing synthetic from real",
        measures={_AUC: measure_mean_area([ranking], is_synthetic[test], rng)},
        metrics=_METRICS,
        details={"propensity": {"gives_away": importance}},
        pictures=[_plot_importance(importance)],
    )


def _pool_records(comparison: Comparison, names: list[str], rng: np.random.Generator) -> tuple[Floats, Bools]:
    kinds = {"synthetic": comparison.synthetic, "held-out": comparison.test}
    for kind, records in kinds.items():
        if len(records) < _FEWEST:
            raise DataError(f"{len(records)} {kind} records are too few to distinguish them; give at least {_FEWEST}")
    count = min(_MOST, *map(len, kinds.values()))
    parts: list[Records] = [subsample(records, count, rng) for records in kinds.values()]
    return np.concatenate([encode_ordinal(part, names) for part in parts]), np.repeat([True, False], count)


def _split_halves(is_synthetic: Bools, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Split the pool in two halves with equally many synthetic and real records each."""
    order = rng.permutation(len(is_synthetic))
    kinds = [order[is_synthetic[order] == kind] for kind in (True, False)]
    return np.concatenate([rows[::2] for rows in kinds]), np.concatenate([rows[1::2] for rows in kinds])


def _measure_importance(
    model: Any, records: Floats, is_synthetic: Bools, names: list[str], rng: np.random.Generator
) -> dict[str, float]:
    """Return the loss of area when a column is shuffled between records, largest loss first."""
    rows = rng.permutation(len(records))[:_SHUFFLED]
    records, is_synthetic = records[rows], is_synthetic[rows]

    def compute_area(asked: Floats) -> float:
        return Ranking(model.predict_proba(asked)[:, 1], is_synthetic).compute_area()

    whole = compute_area(records)
    losses = {}
    for place, name in enumerate(names):
        shuffled = records.copy()
        shuffled[:, place] = rng.permutation(shuffled[:, place])
        losses[name] = whole - compute_area(shuffled)
    return dict(sorted(losses.items(), key=lambda item: -item[1]))


def _plot_importance(importance: dict[str, float]) -> Picture:
    shown = dict(list(importance.items())[:_SHOWN])

    def draw() -> Figure:
        from matplotlib.figure import Figure

        from sundog.evaluation.report.plot_style import SYNTHETIC

        figure = Figure(figsize=(6, 0.8 + 0.3 * len(shown)), layout="constrained")
        axes = figure.subplots()
        axes.barh(range(len(shown)), list(shown.values()), color=SYNTHETIC)
        axes.set_yticks(range(len(shown)), list(shown))
        axes.invert_yaxis()
        axes.axvline(0, color="black", linewidth=0.6)
        axes.set_xlim(right=max(0.05, 1.05 * max(shown.values())))  # keeps negligible losses short
        axes.set_xlabel("loss of area under the curve without this column")
        return figure

    return Picture(
        title="Columns that distinguish synthetic records",
        caption="A model tries to distinguish synthetic records from real ones. Each bar is the loss of area when a "
        "column is shuffled between records: a long bar is a column whose values, alone or with others, look "
        "artificial. Where no column helps, all bars are near zero.",
        draw=draw,
    )
