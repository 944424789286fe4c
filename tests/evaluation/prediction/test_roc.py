"""Areas and curves against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from sundog.evaluation.prediction.roc import POINTS, Ranking, measure_mean_area

scored = st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3)), min_size=2, max_size=30)


@settings(max_examples=200)
@given(scored)
def test_area_is_that_of_scikit_learn(rows: list[tuple[int, bool, int]]) -> None:
    """With ties and with weights, zero among them."""
    scores, positive, weights = (np.array(part) for part in zip(*rows, strict=True))
    found = Ranking(scores, positive).compute_area(weights)
    if not weights[positive].sum() or not weights[~positive].sum():
        assert math.isnan(found)
    else:
        assert found == pytest.approx(roc_auc_score(positive, scores, sample_weight=weights))


def test_weights_are_repeats() -> None:
    rng = np.random.default_rng(0)
    scores, positive = rng.random(50), rng.random(50) < 0.5
    rows = rng.integers(0, 50, 50)
    weighed = Ranking(scores, positive).compute_area(np.bincount(rows, minlength=50))
    assert weighed == pytest.approx(roc_auc_score(positive[rows], scores[rows]))


@pytest.mark.parametrize("count", [2, 30, 5000])
def test_curve_is_thin_and_keeps_the_area(count: int) -> None:
    rng = np.random.default_rng(0)
    positive = np.arange(count) % 2 == 0
    scores = rng.normal(size=count) + positive
    curve = Ranking(scores, positive).trace_curve()
    fpr, tpr = curve["fpr"], curve["tpr"]
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert len(fpr) == len(tpr) <= POINTS
    assert (np.diff(fpr) >= 0).all()
    assert (np.diff(tpr) >= 0).all()
    assert np.trapezoid(tpr, fpr) == pytest.approx(roc_auc_score(positive, scores), abs=0.005)


def test_curve_of_equal_scores_is_the_diagonal() -> None:
    assert Ranking([0.0, 0.0, 0.0], [True, False, False]).trace_curve() == {"fpr": [0.0, 1.0], "tpr": [0.0, 1.0]}


@pytest.mark.parametrize(("wrong", "positive", "negative"), [(0, 3, 57), (0, 50, 50), (1, 5, 20), (8, 6, 10)])
def test_the_ends_of_the_interval_are_as_far_as_their_errors_allow(wrong: int, positive: int, negative: int) -> None:
    """Hanley and McNeil's error at the end itself, of as many records on both sides as there are in the mean."""
    from scipy.optimize import brentq

    pairs = positive * negative
    area = 1 - wrong / pairs
    scores = np.append(np.arange(negative), np.full(positive, negative - 0.5))
    scores[negative] -= wrong
    found = Ranking(scores, np.arange(positive + negative) >= negative).measure_area()
    assert found.value == pytest.approx(area)

    def beyond(at: float) -> float:
        half = (positive + negative) / 2
        one, two = at / (2 - at), 2 * at**2 / (1 + at)
        return (at - area) ** 2 - 1.96**2 * (at * (1 - at) + (half - 1) * (one + two - 2 * at**2)) / pairs

    assert found.low == pytest.approx(brentq(beyond, 1e-9, area - 1e-9), abs=1e-4)
    assert found.high == pytest.approx(brentq(beyond, area + 1e-9, 1 - 1e-12) if wrong else 1.0, abs=1e-4)


def test_a_missing_kind_has_no_area() -> None:
    found = measure_mean_area([Ranking([1.0, 2.0], [True, True])], np.array([1, 1]), np.random.default_rng(0))
    assert math.isnan(found.value)
    assert (found.low, found.high) == (0.0, 1.0)
