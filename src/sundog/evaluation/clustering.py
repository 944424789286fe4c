"""How well clusters found without labels agree with the labels: accuracy under the best match, shared information."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sundog.errors import DataError
from sundog.evaluation.measure import Measure, bootstrap

Table = NDArray[np.int64]


def clustering_accuracy(labels: ArrayLike, clusters: ArrayLike, rng: np.random.Generator) -> Measure:
    """The share of records whose cluster stands for their label, when clusters and labels are matched one to one.

    The match is the best there is (the Hungarian algorithm); a cluster or a label that is left over counts as wrong.

    >>> clustering_accuracy(["a", "a", "b", "b", "b"], [7, 7, 5, 5, 7], np.random.default_rng(0)).value
    0.8
    """
    return _bootstrapped(_matched_share, labels, clusters, rng)


def normalised_mutual_information(labels: ArrayLike, clusters: ArrayLike, rng: np.random.Generator) -> Measure:
    """What clusters tell about labels, over the mean of what each tells about itself: from 0, nothing, to 1, all.

    >>> normalised_mutual_information(["a", "a", "b"], [5, 5, 7], np.random.default_rng(0)).value
    1.0
    """
    return _bootstrapped(_shared_information, labels, clusters, rng)


def _bootstrapped(
    statistic: Callable[[Table], float], labels: ArrayLike, clusters: ArrayLike, rng: np.random.Generator
) -> Measure:
    """A statistic of the table of counts, labels by clusters."""
    label, cluster = _places(labels, "labels"), _places(clusters, "clusters")
    count = len(label)
    if len(cluster) != count:
        raise DataError(f"{count} labels for {len(cluster)} cluster numbers; give one of each for every record")
    shape = int(label.max()) + 1, int(cluster.max()) + 1
    cell = label * shape[1] + cluster

    def of_rows(rows: NDArray[np.int64]) -> float:
        return statistic(np.bincount(cell[rows], minlength=shape[0] * shape[1]).reshape(shape))

    return bootstrap(of_rows, count, rng, lowest=0.0, highest=1.0)


def _places(values: ArrayLike, what: str) -> NDArray[np.int64]:
    """Values of any kind as numbers from 0."""
    array: NDArray[Any] = np.asarray(values)
    if array.ndim != 1 or not len(array):
        raise DataError(f"{what} have shape {array.shape}; give one for every record, and at least one record")
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _matched_share(table: Table) -> float:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def _shared_information(table: Table) -> float:
    from scipy.stats import entropy
    from sklearn.metrics import mutual_info_score

    most = (entropy(table.sum(axis=1)) + entropy(table.sum(axis=0))) / 2
    if most == 0:  # one label and one cluster: they agree
        return 1.0
    return float(np.clip(mutual_info_score(None, None, contingency=table) / most, 0.0, 1.0))
