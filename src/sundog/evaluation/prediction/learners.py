"""The learners for tables: linear models, random forests and gradient boosting."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sundog.data.columns import Scale
from sundog.data.schema import Schema
from sundog.evaluation.prediction.design_matrix import Floats

TREES = 40
_CORES = 2
CLASSIFIERS = ("logistic", "forest", "boosting")

_ROUNDS, _FEWEST_ROUNDS = 100, 10  # of boosting
_MOST_CATEGORIES = 255  # that boosting can distinguish
_LEAF = 20  # the fewest records of a leaf of boosting; fewer where there are few records


@contextmanager
def limit_threads() -> Iterator[None]:
    """Limit boosting to one thread: on a busy machine several threads mostly wait for each other.

    The threads of a forest are not affected.
    """
    import sklearn.ensemble  # noqa: F401  loads the thread pools to limit
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def make_logistic() -> Any:
    """Return a logistic regression on scaled sparse columns."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=False), LogisticRegression())


def make_ridge() -> Any:
    """Return a ridge regression on scaled sparse columns."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=False), Ridge())


def make_forest(seed: int, *, classes: int = 2) -> Any:
    """Return a random forest; with many classes its trees are smaller, as each leaf holds a number per class."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(TREES, min_samples_leaf=max(1, classes // 5), n_jobs=_CORES, random_state=seed)


def make_forest_regressor(seed: int) -> Any:
    """Return a random forest that predicts a number."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(TREES, max_features=1 / 3, min_samples_leaf=5, n_jobs=_CORES, random_state=seed)


def make_boosting(seed: int, schema: Schema, features: list[str], *, rows: int, classes: int = 2) -> Any:
    """Return gradient boosting; each round grows one tree per class, so more classes mean fewer rounds."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rounds = max(_FEWEST_ROUNDS, 2 * _ROUNDS // max(2, classes))
    return HistGradientBoostingClassifier(max_iter=rounds, **_set_up_boosting(seed, schema, features, rows))


def make_boosting_regressor(seed: int, schema: Schema, features: list[str], *, rows: int) -> Any:
    """Return gradient boosting that predicts a number."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(max_iter=_ROUNDS, **_set_up_boosting(seed, schema, features, rows))


def _set_up_boosting(seed: int, schema: Schema, features: list[str], rows: int) -> dict[str, Any]:
    columns = [schema.columns[name] for name in features]
    unordered = [column.scale is Scale.NOMINAL and column.size <= _MOST_CATEGORIES for column in columns]
    return {
        "categorical_features": unordered,
        "early_stopping": False,  # it would hold out records of each class, and a class may have only one
        "min_samples_leaf": min(_LEAF, max(1, rows // 10)),  # with large leaves a small table is never split
        "random_state": seed,
    }


def zero_empty_columns(learn: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Return both matrices with zeros in the columns that have no value in the training data.

    >>> nan = np.nan
    >>> learn, test = zero_empty_columns(np.array([[nan, 1.0], [nan, nan]]), np.array([[5.0, 2.0]]))
    >>> learn.tolist(), test.tolist()
    ([[0.0, 1.0], [0.0, nan]], [[0.0, 2.0]])
    """
    empty = np.isnan(learn).all(axis=0)
    return np.where(empty, 0.0, learn), np.where(empty, 0.0, test)


def predict_probabilities(model: Any, learn: Any, classes: Any, test: Any, count: int) -> Floats:
    """Train a model and return the probability of each of `count` classes for every test record.

    Args:
        model: the model to train; with only one class in the training data, that class is predicted.
        learn: the training features.
        classes: the training classes, 0 … count - 1.
        test: the test features.
        count: the number of classes; some may not occur in the training data.
    """
    from sklearn.dummy import DummyClassifier

    model = fit_learner(DummyClassifier() if (classes == classes[0]).all() else model, learn, classes)
    found = np.zeros((test.shape[0], count))
    found[:, model.classes_] = model.predict_proba(test)
    return found


def fit_learner(model: Any, learn: Any, targets: Any) -> Any:
    """Return the fitted model, set to predict in one thread so that sums have a fixed order."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a hundred steps are close enough
        model.fit(learn, targets)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=1)
    return model
