"""Clustering scores against brute force and scikit-learn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from sundog.errors import DataError
from sundog.evaluation.clustering import clustering_accuracy, normalised_mutual_information

Integers = npt.NDArray[np.int64]
few = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def accuracy(labels: Integers, clusters: Integers) -> float:
    """The best over all one-to-one matches, those included that leave clusters or labels alone."""
    size = 5
    return max(float((np.array(match)[clusters] == labels).mean()) for match in permutations(range(size)))


def planted(count: int, right: float, classes: int = 4) -> tuple[Integers, Integers]:
    """Labels, and clusters that are the labels under other names, but for some at random."""
    draw = np.random.default_rng(1)
    labels = draw.integers(0, classes, count)
    clusters = np.where(draw.random(count) < right, labels, draw.integers(0, classes, count))
    return labels, (clusters + 1) % classes


@settings(max_examples=50)
@given(few)
def test_accuracy_is_the_best_of_all_matches(pairs: list[tuple[int, int]]) -> None:
    labels, clusters = np.array(pairs).T
    assert clustering_accuracy(labels, clusters, rng()).value == pytest.approx(accuracy(labels, clusters))


@settings(max_examples=50)
@given(few)
def test_information_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    labels, clusters = np.array(pairs).T
    found = normalised_mutual_information(labels, clusters, rng())
    assert found.value == pytest.approx(normalized_mutual_info_score(labels, clusters), abs=1e-9)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_more_clusters_than_labels_leave_some_over() -> None:
    assert clustering_accuracy([0, 0, 0, 1, 1], [2, 2, 3, 4, 4], rng()).value == pytest.approx(0.8)


def test_fewer_clusters_than_labels_leave_some_over() -> None:
    assert clustering_accuracy([0, 0, 1, 1, 2], [7, 7, 7, 7, 8], rng()).value == pytest.approx(0.6)


def test_names_do_not_matter() -> None:
    labels, clusters = planted(200, 0.8)
    named = np.array(["d", "c", "b", "a"])[clusters]
    assert clustering_accuracy(labels, named, rng()) == clustering_accuracy(labels, clusters, rng())


def test_one_cluster_tells_nothing() -> None:
    labels = [0, 0, 0, 1, 1]
    assert clustering_accuracy(labels, [9] * 5, rng()).value == pytest.approx(0.6)
    assert normalised_mutual_information(labels, [9] * 5, rng()).value == 0.0


def test_one_record() -> None:
    assert clustering_accuracy([3], [5], rng()).value == 1.0
    assert normalised_mutual_information([3], [5], rng()).value == 1.0


def test_interval_is_that_of_resampled_records() -> None:
    """The match is clear here, so that the accuracy is a share of counted things."""
    labels, clusters = planted(500, 0.6)
    found = clustering_accuracy(labels, clusters, rng())
    error = np.sqrt(found.value * (1 - found.value) / 500)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.2)


def test_interval_of_information_by_brute_force() -> None:
    labels, clusters = planted(300, 0.6)
    found = normalised_mutual_information(labels, clusters, rng())
    draws = np.random.default_rng(2).integers(0, 300, (300, 300))
    again = [normalized_mutual_info_score(labels[rows], clusters[rows]) for rows in draws]
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * np.std(again), rel=0.25)


def test_same_seed_same_figures() -> None:
    labels, clusters = planted(100, 0.7)
    assert clustering_accuracy(labels, clusters, rng()) == clustering_accuracy(labels, clusters, rng())


def test_lengths_must_agree() -> None:
    with pytest.raises(DataError, match="2 labels for 3 cluster numbers"):
        clustering_accuracy([0, 1], [0, 1, 2], rng())


@pytest.mark.parametrize("labels", [[], [[0, 1]]])
def test_there_must_be_one_label_for_each_record(labels: list[object]) -> None:
    with pytest.raises(DataError, match="labels have shape"):
        clustering_accuracy(labels, [0, 1], rng())  # type: ignore[arg-type]
