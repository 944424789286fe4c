"""Utility: models trained on synthetic records predict a column of real records.

Three kinds of models are trained on synthetic records and tested on held-out real ones ("train on synthetic, test on
real"). Then the protocol of Frigerio et al. (2019): both sides reduced to equally many records of each class, a random
forest, the mean accuracy of three such reductions. The prediction for a held-out record depends on that record and the
synthetic ones only. Intervals cover the choice of real records, not that of the synthetic sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.evaluation.bootstrap import bootstrap_rows
from sundog.evaluation.comparison import Comparison, draw_seed
from sundog.evaluation.measure import Measure, Measures, Metric, average_measures, measure_share
from sundog.evaluation.prediction import learners
from sundog.evaluation.prediction.design_matrix import Floats, Integers
from sundog.evaluation.prediction.prediction_task import PredictionTask, define_task
from sundog.evaluation.prediction.roc import Ranking, measure_mean_area
from sundog.evaluation.prediction.utility_plots import plot_scores
from sundog.evaluation.section import Section

INTERVALS = (
    "The intervals cover the choice of test records, not another draw of synthetic records or another training: small "
    "differences between releases may be chance."
)

_RESAMPLINGS = 3
_NAMES = {
    "logistic": "logistic regression",
    "ridge": "linear regression",
    "forest": "random forest",
    "boosting": "gradient boosting",
}


@learners.limit_threads()
def evaluate_utility(comparison: Comparison) -> Section:
    """Measure how well models trained on the synthetic records predict the target of real ones."""
    task = define_task(comparison)
    return _evaluate_quantity(task, comparison) if task.is_quantity else _evaluate_classes(task, comparison)


# --- classes -------------------------------------------------------------------------------------------------------


def _evaluate_classes(task: PredictionTask, comparison: Comparison) -> Section:
    found = {}
    for name, model in _make_classifiers(task, comparison).items():
        learn, test = task.for_lines if name == "logistic" else task.for_trees
        found[name] = learners.predict_probabilities(model, learn, task.learned, test, len(task.classes))
    measures: Measures = {}
    for name, chances in found.items():
        scores = score_classes(chances, task.truth, comparison.make_rng(f"utility of {name}"))
        measures |= {f"utility.tstr.{name}.{score}": measure for score, measure in scores.items()}
    metrics = {name: _describe_score(name, task.target) for name in measures}
    categorical = [place for place, name in enumerate(task.features) if not task.test.schema.columns[name].is_numeric]
    measures["utility.balanced_forest"] = _score_balanced_forest(task, comparison, slice(None))
    if len(categorical) > 1:
        measures["utility.balanced_forest_categorical"] = _score_balanced_forest(task, comparison, categorical)
    metrics |= {name: metric for name, metric in _BALANCED.items() if name in measures}
    details = {}
    if len(task.classes) == 2:
        details["roc"] = {
            name: Ranking(chances[:, 1], task.truth == 1).trace_curve() for name, chances in found.items()
        }
    most_common = float(np.bincount(task.truth).max() / len(task.truth))
    return Section(
        title=f"Predicting {task.target}",
        measures=measures,
        metrics=metrics,
        details=details,
        pictures=[plot_scores(measures, _NAMES, "accuracy", blind=most_common)],
        notes=[*task.notes, *_note_classes(task), INTERVALS],
    )


def _make_classifiers(task: PredictionTask, comparison: Comparison) -> dict[str, Any]:
    classes = len(np.unique(task.learned))  # never those of the real records
    return {
        "logistic": learners.make_logistic(),
        "forest": learners.make_forest(comparison.draw_seed("training of forest"), classes=classes),
        "boosting": learners.make_boosting(
            comparison.draw_seed("training of boosting"),
            task.test.schema,
            task.features,
            rows=len(task.train),
            classes=classes,
        ),
    }


def score_classes(chances: Floats, truth: Integers, rng: np.random.Generator) -> dict[str, Measure]:
    """Return accuracy, balanced accuracy (mean over classes) and area under the curve (one class against the rest).

    Args:
        chances: the probability of each class, for each record.
        truth: the class of each record.
        rng: for the bootstrap over records.
    """
    right = chances.argmax(axis=1) == truth
    present = np.unique(truth)
    # With two classes both curves have the same area.
    curves = present[-1:] if chances.shape[1] == 2 else present
    rankings = [Ranking(chances[:, class_], truth == class_) for class_ in curves]
    answers = [right[truth == class_] for class_ in present]
    return {
        "accuracy": measure_share(int(right.sum()), len(right)),
        "balanced_accuracy": average_measures([measure_share(int(each.sum()), len(each)) for each in answers]),
        "auc": measure_mean_area(rankings, truth, rng),
    }


def _score_balanced_forest(task: PredictionTask, comparison: Comparison, places: Any) -> Measure:
    """Return the mean accuracy over reductions; the interval covers their spread and the number of answers."""
    learn, test = (matrix[:, places] for matrix in task.for_trees)
    shares: list[float] = []
    for resampling in range(_RESAMPLINGS):
        rng = comparison.make_rng(f"balanced classes {resampling}")
        rows, tested = draw_balanced_rows(task.learned, rng), draw_balanced_rows(task.truth, rng)
        model = learners.make_forest(draw_seed(rng), classes=len(np.unique(task.learned)))
        found = learners.predict_probabilities(model, learn[rows], task.learned[rows], test[tested], len(task.classes))
        shares.append(float((found.argmax(axis=1) == task.truth[tested]).mean()))
    mean = float(np.mean(shares))
    counted = measure_share(mean * len(tested), len(tested))  # reductions share records, which count once
    return Measure(mean, min(counted.low, *shares), max(counted.high, *shares))


def draw_balanced_rows(classes: Integers, rng: np.random.Generator) -> Integers:
    """Draw rows at random, equally many of each class and as many as possible.

    >>> rows = draw_balanced_rows(np.array([0, 0, 0, 1, 1]), np.random.default_rng(0))
    >>> np.array([0, 0, 0, 1, 1])[rows].tolist()
    [0, 0, 1, 1]
    """
    present, sizes = np.unique(classes, return_counts=True)
    drawn = [rng.choice(np.flatnonzero(classes == class_), sizes.min(), replace=False) for class_ in present]
    return np.concatenate(drawn)


def _note_classes(task: PredictionTask) -> list[str]:
    known, wanted = np.unique(task.learned), np.unique(task.truth)
    if len(known) == 1:
        return [f"All synthetic records have the same {task.target}: every model predicts that value."]
    missing = len(np.setdiff1d(wanted, known))
    if missing:
        return [f"{missing} of {len(wanted)} classes of {task.target} do not occur in the synthetic records."]
    return []


# --- quantities ----------------------------------------------------------------------------------------------------


def _evaluate_quantity(task: PredictionTask, comparison: Comparison) -> Section:
    models = {
        "ridge": learners.make_ridge(),
        "forest": learners.make_forest_regressor(comparison.draw_seed("training of forest")),
        "boosting": learners.make_boosting_regressor(
            comparison.draw_seed("training of boosting"), task.test.schema, task.features, rows=len(task.train)
        ),
    }
    measures: Measures = {}
    for name, model in models.items():
        learn, test = task.for_lines if name == "ridge" else task.for_trees
        predicted = np.asarray(learners.fit_learner(model, learn, task.learned).predict(test))
        scores = score_quantity(predicted, task.truth, comparison.make_rng(f"utility of {name}"))
        measures |= {f"utility.tstr.{name}.{score}": measure for score, measure in scores.items()}
    return Section(
        title=f"Predicting {task.target}",
        measures=measures,
        metrics={name: _describe_score(name, task.target) for name in measures},
        pictures=[plot_scores(measures, _NAMES, "r2", blind=0.0)],
        notes=[*task.notes, INTERVALS],
    )


def score_quantity(predicted: Floats, truth: Floats, rng: np.random.Generator) -> dict[str, Measure]:
    """Return the share of explained variance (R²) and the mean absolute error.

    Args:
        predicted: the prediction for each record.
        truth: the true value.
        rng: for the bootstrap over records.
    """
    error = np.abs(predicted - truth)

    def compute_r2(rows: NDArray[np.int64]) -> float:
        variance = truth[rows].var()
        return float(1 - (error[rows] ** 2).mean() / variance) if variance > 0 else math.nan

    return {
        "r2": bootstrap_rows(compute_r2, len(truth), rng, highest=1.0),
        "mae": Measure.around(float(error.mean()), error=float(error.std() / math.sqrt(len(error))), lowest=0.0),
    }


# --- descriptions --------------------------------------------------------------------------------------------------

_SCORES: Mapping[str, Metric] = {
    "accuracy": Metric(
        "accuracy",
        "high",
        "The share of real records whose {target} a {model} gets right, after training on synthetic ones only.",
    ),
    "balanced_accuracy": Metric(
        "balanced accuracy",
        "high",
        "The same share for each class of {target}, averaged: rare classes count as much as common ones.",
    ),
    "auc": Metric(
        "area under the ROC curve",
        "high",
        "How often a {model} ranks a record of a class above one that is not of it; 0.5 is guessing, 1 is perfect.",
    ),
    "r2": Metric(
        "R²",
        "high",
        "The share of the differences in {target} that a {model} explains; 0 is what the mean alone would do.",
    ),
    "mae": Metric(
        "mean error",
        "low",
        "The average error of the {target} that a {model} predicts, as a share of the declared range.",
    ),
}

_BALANCED: Mapping[str, Metric] = {
    "utility.balanced_forest": Metric(
        "random forest, balanced classes",
        "high",
        "The accuracy of a random forest when all classes are equally common in training and test.",
    ),
    "utility.balanced_forest_categorical": Metric(
        "random forest, balanced classes, categories only",
        "high",
        "The same for a random forest that uses the categorical columns only.",
    ),
}


def _describe_score(name: str, target: str) -> Metric:
    *_, model, score = name.split(".")
    about = _SCORES[score]
    meaning = about.meaning.format(target=target, model=_NAMES[model])
    return Metric(f"{_NAMES[model]}: {about.label}", about.better, meaning)
