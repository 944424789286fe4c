"""Statistics of series against hand computations and theory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from sundog.evaluation.bootstrap import PairedBlocks
from sundog.evaluation.series.series_statistics import (
    compute_autocorrelation,
    compute_power_spectrum,
    compute_spectral_distance,
    fill_gaps,
    measure_pooled_wasserstein,
)


@pytest.mark.parametrize("length", [2, 3, 7, 24])
def test_autocorrelation_is_the_textbook_sum(length: int) -> None:
    values = np.random.default_rng(length).normal(size=(5, length)).cumsum(axis=1)
    expected = []
    for row in values - values.mean(axis=1, keepdims=True):
        products = [(row[lag:] * row[:-lag]).sum() for lag in range(1, length // 2 + 1)]
        expected.append(np.array(products) / (row**2).sum())
    np.testing.assert_allclose(compute_autocorrelation(values), expected, atol=1e-12)


def test_autocorrelation_of_a_sine_is_a_cosine_that_peaks_at_its_period() -> None:
    length, period = 2000, 40
    found = compute_autocorrelation(np.sin(2 * np.pi * np.arange(length) / period)[None])[0]
    lags = np.arange(1, length // 2 + 1)
    np.testing.assert_allclose(found, np.cos(2 * np.pi * lags / period) * (1 - lags / length), atol=0.01)
    assert lags[20:60][found[20:60].argmax()] == period


def test_autocorrelation_of_noise_is_nothing_and_of_an_ar_process_is_its_powers() -> None:
    noise = np.random.default_rng(0).normal(size=(200, 2000))  # the estimate is off by about 10 / 2000
    assert np.abs(compute_autocorrelation(noise).mean(axis=0)).max() < 0.01
    process = noise.copy()
    for place in range(1, 2000):
        process[:, place] += 0.8 * process[:, place - 1]
    np.testing.assert_allclose(compute_autocorrelation(process).mean(axis=0)[:9], 0.8 ** np.arange(1, 10), atol=0.01)


def test_a_constant_series_has_neither_autocorrelation_nor_power() -> None:
    values = np.full((2, 12), 0.1)
    assert values.mean(axis=1)[0] != 0.1  # what rounding leaves must not count
    assert not compute_autocorrelation(values).any()
    assert not compute_power_spectrum(values).any()


@pytest.mark.parametrize("cycles", [1, 5, 20])
def test_the_spectrum_of_a_sine_is_one_peak(cycles: int) -> None:
    found = compute_power_spectrum(3 + np.sin(2 * np.pi * cycles * np.arange(96) / 96)[None])[0]
    assert len(found) == 48
    assert found.argmax() + 1 == cycles
    assert found[cycles - 1] / found.sum() == pytest.approx(1.0)


def test_the_spectral_distance_is_between_zero_and_one() -> None:
    slow, fast = np.array([1.0, 0.0]), np.array([0.0, 5.0])
    assert compute_spectral_distance(slow, 7 * slow) == 0.0
    assert compute_spectral_distance(slow, fast) == 1.0
    assert compute_spectral_distance(0 * slow, fast) == compute_spectral_distance(fast, 0 * slow) == 1.0
    assert compute_spectral_distance(0 * slow, 0 * slow) == 0.0


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_the_wasserstein_distance_is_that_of_scipy(shift: float) -> None:
    rng = np.random.default_rng(0)
    real, synthetic = rng.gamma(1, size=(300, 5)), rng.gamma(2, size=(200, 5)) + shift
    found = measure_pooled_wasserstein(PairedBlocks(real=300, synthetic=200, rng=rng), real, synthetic)
    assert found.value == pytest.approx(stats.wasserstein_distance(real.ravel(), synthetic.ravel()), abs=1e-3)


def test_gaps_become_straight_lines() -> None:
    gap = math.nan
    found = fill_gaps(np.array([[gap, 2.0, gap, gap, 5.0, gap], [gap] * 6, [1.0] * 6]))
    assert found.tolist() == [[2.0, 2.0, 3.0, 4.0, 5.0, 5.0], [0.0] * 6, [1.0] * 6]
