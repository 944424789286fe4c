"""The models that tables are tried with: a straight line, many trees at random, trees one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sundog.data.schema import Schema
from sundog.evaluation.prediction.design_matrix import Floats, is_unordered

TREES = 40
_CORES = 2
CLASSIFIERS = ("logistic", "forest", "boosting")

_ROUNDS, _FEWEST_ROUNDS = 100, 10  # of boosting
_MOST_CATEGORIES = 255  # that boosting tells apart
_LEAF = 20  # records that every leaf of boosting has at least, or a tenth of a few records


@contextmanager
def limit_threads() -> Iterator[None]:
    """While it is open, boosting has one thread: several wait for each other, and on a busy machine they wait long.

    Those of a forest do not.
    """
    import sklearn.ensemble  # noqa: F401  brings the threads that are to be limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def make_logistic() -> Any:
    """Logistic regression, on sparse columns brought to one scale."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=False), LogisticRegression())


def make_ridge() -> Any:
    """Linear regression with a small penalty, on sparse columns brought to one scale."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=False), Ridge())


def make_forest(seed: int, *, classes: int = 2) -> Any:
    """A random forest; with many classes, smaller trees, as each leaf holds a number for each class."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(TREES, min_samples_leaf=max(1, classes // 5), n_jobs=_CORES, random_state=seed)


def make_forest_regressor(seed: int) -> Any:
    """A random forest that predicts a number."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(TREES, max_features=1 / 3, min_samples_leaf=5, n_jobs=_CORES, random_state=seed)


def make_boosting(seed: int, schema: Schema, features: list[str], *, rows: int, classes: int = 2) -> Any:
    """Gradient boosting; it grows a tree for each class in each round, so with more classes there are fewer rounds."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rounds = max(_FEWEST_ROUNDS, 2 * _ROUNDS // max(2, classes))
    return HistGradientBoostingClassifier(max_iter=rounds, **_set_up_boosting(seed, schema, features, rows))


def make_boosting_regressor(seed: int, schema: Schema, features: list[str], *, rows: int) -> Any:
    """Gradient boosting that predicts a number."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(max_iter=_ROUNDS, **_set_up_boosting(seed, schema, features, rows))


def _set_up_boosting(seed: int, schema: Schema, features: list[str], rows: int) -> dict[str, Any]:
    columns = [schema.columns[name] for name in features]
    unordered = [is_unordered(column) and column.size <= _MOST_CATEGORIES for column in columns]
    return {
        "categorical_features": unordered,
        "early_stopping": False,  # it would hold records of each class back, and a class may have one only
        "min_samples_leaf": min(_LEAF, max(1, rows // 10)),  # with large leaves few records are never split
        "random_state": seed,
    }


def zero_empty_columns(learn: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Both with zeros in the columns that have no value in what is learned: nothing can be learned from them.

    >>> nan = np.nan
    >>> learn, test = zero_empty_columns(np.array([[nan, 1.0], [nan, nan]]), np.array([[5.0, 2.0]]))
    >>> learn.tolist(), test.tolist()
    ([[0.0, 1.0], [0.0, nan]], [[0.0, 2.0]])
    """
    empty = np.isnan(learn).all(axis=0)
    return np.where(empty, 0.0, learn), np.where(empty, 0.0, test)


def predict_probabilities(model: Any, learn: Any, classes: Any, test: Any, count: int) -> Floats:
    """How likely a trained model takes each of `count` classes to be, for every record to test on.

    Args:
        model: is trained first; where there is but one class to learn, that one is certain.
        learn: what to learn from.
        classes: of those records, as 0 … count - 1.
        test: what to test on.
        count: of classes that there are; some may not occur in what is learned.
    """
    from sklearn.dummy import DummyClassifier

    model = fit_model(DummyClassifier() if (classes == classes[0]).all() else model, learn, classes)
    found = np.zeros((test.shape[0], count))
    found[:, model.classes_] = model.predict_proba(test)
    return found


def fit_model(model: Any, learn: Any, targets: Any) -> Any:
    """The model, trained, and set to predict in one order: sums in two threads come out in two ways."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near enough after a hundred steps
        model.fit(learn, targets)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=1)
    return model
