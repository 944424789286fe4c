"""Scores of images: known answers, slow formulas and samples from distributions whose distance is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg, stats

from sundog.evaluation.images.image_scores import (
    compute_discriminator_score,
    compute_frechet_distance,
    compute_inception_score,
    measure_frechet,
    measure_jensen_shannon,
)

Array = NDArray[Any]


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- Inception score ---


def test_the_inception_score_is_that_of_its_formula() -> None:
    p = _rng().dirichlet(np.ones(4), 30)
    marginal = [sum(row[k] for row in p) / 30 for k in range(4)]
    divergences = [sum(row[k] * math.log(row[k] / marginal[k]) for k in range(4)) for row in p]
    assert compute_inception_score(p) == pytest.approx(math.exp(sum(divergences) / 30), rel=1e-12)


@pytest.mark.parametrize("classes", [2, 10])
def test_sure_and_even_is_the_best_score_and_anything_dull_the_worst(classes: int) -> None:
    assert compute_inception_score(np.tile(np.eye(classes), (3, 1))) == pytest.approx(classes)
    assert compute_inception_score(np.full((7, classes), 1 / classes)) == pytest.approx(1)  # never sure
    assert compute_inception_score(np.eye(classes)[np.zeros(7, int)]) == pytest.approx(1)  # always the same class


def test_half_of_the_classes_give_half_of_the_score() -> None:
    assert compute_inception_score(np.eye(10)[[0, 1, 2, 3, 4] * 4]) == pytest.approx(5)


# --- Fréchet distance ---


def _by_a_root(first: Array, second: Array) -> float:
    covariances = np.cov(first.T), np.cov(second.T)
    root = linalg.sqrtm(covariances[0] @ covariances[1]).real
    return float(np.sum((first.mean(0) - second.mean(0)) ** 2) + np.trace(sum(covariances) - 2 * root))


def test_the_frechet_distance_is_that_of_a_matrix_root() -> None:
    rng = _rng(1)
    first = rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6))
    second = rng.normal(size=(200, 6)) @ rng.normal(size=(6, 6)) + rng.normal(size=6)
    assert compute_frechet_distance(first, second) == pytest.approx(_by_a_root(first, second), rel=1e-8)
    assert compute_frechet_distance(first, second) == pytest.approx(compute_frechet_distance(second, first), rel=1e-10)


def test_in_one_dimension_it_is_the_difference_of_means_and_of_deviations() -> None:
    first, second = _rng(2).normal(1, 2, (50, 1)), _rng(3).normal(-1, 5, (40, 1))
    expected = (first.mean() - second.mean()) ** 2 + (first.std(ddof=1) - second.std(ddof=1)) ** 2
    assert compute_frechet_distance(first, second) == pytest.approx(expected)


def test_fewer_images_than_features_are_no_trouble() -> None:
    """With orthogonal, singular covariances nothing is shared: the traces add up."""
    first, second = np.zeros((4, 10)), np.zeros((5, 10))
    first[:, :3], second[:, 3:7] = _rng(4).normal(size=(4, 3)), _rng(5).normal(size=(5, 4))
    means = np.sum((first.mean(0) - second.mean(0)) ** 2)
    expected = means + first.var(0, ddof=1).sum() + second.var(0, ddof=1).sum()
    assert compute_frechet_distance(first, second) == pytest.approx(expected)


def test_the_same_features_have_no_distance() -> None:
    features = _rng().normal(size=(50, 5)).astype(np.float32)
    assert compute_frechet_distance(features, features) == pytest.approx(0, abs=1e-6)
    measured = measure_frechet(features, features, _rng())
    assert measured.value == 0
    assert measured.low == 0


@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_constant_features_are_at_their_distance(constant: float) -> None:
    measured = measure_frechet(np.full((30, 2), constant), np.zeros((25, 2)), _rng())
    assert measured.value == pytest.approx(2 * constant**2)
    assert measured.high == pytest.approx(measured.value)


def test_one_image_gives_a_distance_that_may_be_anything() -> None:
    measured = measure_frechet(np.ones((1, 3)), np.zeros((9, 3)), _rng())
    assert measured.value == pytest.approx(3)
    assert (measured.low, measured.high) == (0, math.inf)


def test_the_jackknife_removes_the_bias_of_small_samples() -> None:
    rng = _rng(6)
    pairs = [(rng.normal(size=(100, 32)), rng.normal(size=(100, 32))) for _ in range(20)]
    plain = [compute_frechet_distance(*pair) for pair in pairs]
    measured = [measure_frechet(*pair, rng) for pair in pairs]
    assert np.mean(plain) > 4
    assert np.mean([each.value for each in measured]) < np.mean(plain) / 20
    assert sum(each.low == 0 for each in measured) >= 17


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = _rng(7)
    truth = 8 * 0.25 + 8 * 0.25  # the means half apart, and deviations of 1 and 1.5, in eight dimensions
    found = [measure_frechet(rng.normal(size=(150, 8)), rng.normal(0.5, 1.5, (200, 8)), rng) for _ in range(60)]
    assert sum(each.low <= truth <= each.high for each in found) >= 51
    assert np.mean([each.high - each.low for each in found]) < truth  # and says something


# --- Jensen-Shannon score ---

P, Q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.1, 0.2, 0.3, 0.4])


def test_the_best_discriminator_attains_the_divergence_as_often_as_its_interval_says() -> None:
    truth = (stats.entropy(P, (P + Q) / 2) + stats.entropy(Q, (P + Q) / 2)) / 2
    best, rng = np.log(P / Q), _rng(8)  # the logit of being real, of each of the four images there are
    found = [measure_jensen_shannon(best[rng.choice(4, 900, p=P)], best[rng.choice(4, 400, p=Q)]) for _ in range(200)]
    assert 180 <= sum(each.low <= truth <= each.high for each in found) <= 199
    assert np.mean([each.value for each in found]) == pytest.approx(truth, abs=0.005)


@pytest.mark.parametrize("spoiled", [0.3, 3.0, -1.0])
def test_any_other_discriminator_finds_less(spoiled: float) -> None:
    best = np.log(P / Q)
    real, generated = _rng(8).choice(4, 4000, p=P), _rng(9).choice(4, 4000, p=Q)
    other = measure_jensen_shannon(spoiled * best[real], spoiled * best[generated])
    assert other.value < measure_jensen_shannon(best[real], best[generated]).value - 0.01


def test_a_discriminator_that_is_sure_and_wrong_proves_nothing() -> None:
    logits = np.where(_rng().random(200) < 0.5, 9.0, -9.0)
    measured = measure_jensen_shannon(logits, logits)
    assert (measured.value, measured.low) == (0, 0)
    assert compute_discriminator_score(logits) > 1  # while the paper's figure takes it for a difference


def test_extreme_logits_stay_in_range() -> None:
    measured = measure_jensen_shannon(np.full(5, 1e4), np.full(5, -1e4))
    assert measured.value == measured.high == pytest.approx(math.log(2))
    assert measure_jensen_shannon(np.full(5, -1e4), np.full(5, 1e4)).value == 0


def test_the_papers_figure_is_that_of_its_formula() -> None:
    logits = _rng().normal(0, 3, 50)
    scores = []
    for logit in logits:
        p, coin = [1 / (1 + math.exp(-logit)), 1 / (1 + math.exp(logit))], [0.5, 0.5]
        scores.append((stats.entropy(p, coin) + stats.entropy(coin, p)) / 2)
    assert compute_discriminator_score(logits) == pytest.approx(np.mean(scores), rel=1e-10)
