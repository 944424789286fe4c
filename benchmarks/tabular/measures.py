"""What is measured of synthetic records: the distance of pairs of columns, and what classifiers learn from them.

The same definitions for every contestant: the mean total variation of all two-way marginals; the AUC on real test
records of gradient boosting with default settings; and, after Frigerio et al. (2019), the accuracy of a random forest
where both classes were made equally common, in three resamplings.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score

from sundog.data.bins import make_bins
from sundog.data.records import Records
from tabular.datasets import Table

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]

RESAMPLINGS = 3


def measure(table: Table, synthetic: pd.DataFrame, *, seed: int, trees: int = 200) -> dict[str, float]:
    """Return the distance, the AUC and the accuracy of synthetic records."""
    return {
        "distance": pair_distance(table.encode(table.train), table.encode(synthetic)),
        "auc": boosting_auc(table, synthetic, seed=seed),
        "forest": balanced_forest(table, synthetic, seed=seed, trees=trees),
    }


def pair_distance(real: Records, synthetic: Records) -> float:
    """Return the mean total variation of the marginals of all pairs of columns."""
    bins = {name: make_bins(column) for name, column in real.schema.columns.items()}
    tables = [
        {name: each.to_bins(records.codes[name]).astype(np.int64) for name, each in bins.items()}
        for records in (real, synthetic)
    ]
    found = []
    for one, other in combinations(bins, 2):
        cells = bins[one].count * bins[other].count
        keys = [binned[one] * bins[other].count + binned[other] for binned in tables]
        shares = [np.bincount(key, minlength=cells) / len(key) for key in keys]
        found.append(0.5 * np.abs(shares[0] - shares[1]).sum())
    return float(np.mean(found))


def boosting_auc(table: Table, synthetic: pd.DataFrame, *, seed: int) -> float:
    """Return the AUC, on the test records, of gradient boosting that learned from synthetic ones."""
    learned, truth = _labels(table, synthetic), _labels(table, table.test)
    if learned.all() or not learned.any():
        return 0.5
    places = [place for place, name in enumerate(_ordered(table)) if name not in table.numeric]
    model = HistGradientBoostingClassifier(random_state=seed, categorical_features=places)
    model.fit(_ordinal(table, synthetic), learned)
    return float(roc_auc_score(truth, model.predict_proba(_ordinal(table, table.test))[:, 1]))


def balanced_forest(table: Table, synthetic: pd.DataFrame, *, seed: int, trees: int) -> float:
    """Return the accuracy of a forest on test records, both classes being equally common in all it sees."""
    learned, truth = _labels(table, synthetic), _labels(table, table.test)
    if learned.all() or not learned.any():
        return 0.5
    features, tested = _one_hot(table, synthetic), _one_hot(table, table.test)
    scores = []
    for resampling in range(RESAMPLINGS):
        rng = np.random.default_rng(seed + resampling)
        some, others = _balance(learned, rng), _balance(truth, rng)
        forest = RandomForestClassifier(trees, random_state=seed + resampling, n_jobs=2)
        scores.append(forest.fit(features[some], learned[some]).score(tested[others], truth[others]))
    return float(np.mean(scores))


def _balance(labels: Labels, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return as many records of one class as of the other."""
    classes = [np.flatnonzero(labels == label) for label in (False, True)]
    fewer = min(map(len, classes))
    return np.concatenate([rng.choice(each, fewer, replace=False) for each in classes])


def _labels(table: Table, frame: pd.DataFrame) -> Labels:
    labels: Labels = (frame[table.target] == table.positive).to_numpy(bool)
    return labels


def _ordered(table: Table) -> list[str]:
    """Return all columns but the target, numbers first."""
    others = [name for name in table.schema.columns if name != table.target and name not in table.numeric]
    return [*(name for name in table.numeric if name != table.target), *others]


def _categories(table: Table, name: str) -> list[Any]:
    return sorted({*table.train[name], *table.test[name]})


def _ordinal(table: Table, frame: pd.DataFrame) -> Floats:
    """Return numbers as they are, and categories by number."""
    columns = []
    for name in _ordered(table):
        if name in table.numeric:
            columns.append(frame[name].to_numpy(float))
        else:
            places = {value: place for place, value in enumerate(_categories(table, name))}
            columns.append(frame[name].map(places).to_numpy(float))
    return np.column_stack(columns)


def _one_hot(table: Table, frame: pd.DataFrame) -> Floats:
    """Return numbers as they are, and a column for each category."""
    parts = []
    for name in _ordered(table):
        values = frame[name].to_numpy()
        if name in table.numeric:
            parts.append(values.astype(float)[:, None])
        else:
            parts += [(values == value).astype(float)[:, None] for value in _categories(table, name)]
    return np.hstack(parts)
