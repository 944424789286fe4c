"""Time series: statistics against hand computations and theory, networks against processes with known answers."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.bootstrap import PairedBlocks
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.section import Section
from sundog.evaluation.series import recurrent_scores as series_models
from sundog.evaluation.series.recurrent_scores import discriminative_score, predictive_score
from sundog.evaluation.series.series_evaluation import evaluate_series
from sundog.evaluation.series.series_statistics import (
    compute_autocorrelation,
    compute_power_spectrum,
    fill_gaps,
    measure_wasserstein,
    spectral_distance,
)

Floats = NDArray[np.float64]

AVERAGED = [
    "series.marginal_distance",
    "series.mean_profile_error",
    "series.total_distance",
    "series.autocorrelation_distance",
    "series.spectral_distance",
]


def records_of(values: Floats, *, low: float = -10.0, high: float = 10.0, nullable: bool = False) -> Records:
    declared = {"type": "series", "length": values.shape[1], "min": low, "max": high, "nullable": nullable}
    schema = Schema.from_dict({"columns": {"load": declared, "house": {"type": "integer", "min": 0, "max": 9}}})
    codes = {"load": schema.columns["load"].encode(values, where="t"), "house": np.zeros(len(values), np.uint8)}
    return Records(schema, codes, len(values))


def compared(real: Floats, synthetic: Floats, test: Floats | None = None, **declared: Any) -> Section:
    ours, theirs, unseen = (records_of(each, **declared) for each in (real, synthetic, real if test is None else test))
    return evaluate_series(Comparison(ours, theirs, ours, unseen), "load")


def values_of(section: Section) -> dict[str, float]:
    return {name: measure.value for name, measure in section.measures.items()}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that are not about the networks."""
    monkeypatch.setattr(series_models, "STEPS", 2)


def days(n: int, seed: int, length: int = 24) -> Floats:
    """A daily rhythm, of a height and with a delay that differ from day to day, and some noise."""
    rng = np.random.default_rng(seed)
    phase = 2 * np.pi * np.arange(length) / length + rng.normal(0, 0.3, (n, 1))
    return np.clip(rng.uniform(1, 3, (n, 1)) * np.sin(phase) + rng.normal(0, 0.3, (n, length)), -10, 10)


# --- statistics ----------------------------------------------------------------------------------------------------


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
    assert spectral_distance(slow, 7 * slow) == 0.0
    assert spectral_distance(slow, fast) == 1.0
    assert spectral_distance(0 * slow, fast) == spectral_distance(fast, 0 * slow) == 1.0
    assert spectral_distance(0 * slow, 0 * slow) == 0.0


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_the_wasserstein_distance_is_that_of_scipy(shift: float) -> None:
    rng = np.random.default_rng(0)
    real, synthetic = rng.gamma(1, size=(300, 5)), rng.gamma(2, size=(200, 5)) + shift
    found = measure_wasserstein(PairedBlocks(real=300, synthetic=200, rng=rng), real, synthetic)
    assert found.value == pytest.approx(stats.wasserstein_distance(real.ravel(), synthetic.ravel()), abs=1e-3)


def test_gaps_become_straight_lines() -> None:
    gap = math.nan
    found = fill_gaps(np.array([[gap, 2.0, gap, gap, 5.0, gap], [gap] * 6, [1.0] * 6]))
    assert found.tolist() == [[2.0, 2.0, 3.0, 4.0, 5.0, 5.0], [0.0] * 6, [1.0] * 6]


# --- the part ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_measures_by_hand() -> None:
    # On the declared range of 20: the mean curves (0, 2, 0, 2) and (1, 3, 1, 3), all values moved by 1.
    real = np.array([[-1.0, 1.0, -1.0, 1.0], [1.0, 3.0, 1.0, 3.0]])
    found = values_of(compared(real, real + 1))
    assert found["series.marginal_distance"] == pytest.approx(1 / 20, abs=0.25 / 8192)
    assert found["series.mean_profile_error"] == pytest.approx(1 / 20)
    assert found["series.total_distance"] == pytest.approx(1 / 20, abs=0.15 / 8192)
    assert found["series.autocorrelation_distance"] == pytest.approx(0.0, abs=1e-12)
    assert found["series.spectral_distance"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.usefixtures("quick")
def test_another_rhythm_is_seen_by_what_is_about_time_only() -> None:
    places = np.arange(24)
    slow, fast = (np.tile(np.sin(2 * np.pi * cycles * places / 24), (30, 1)) for cycles in (1, 2))
    found = values_of(compared(slow, fast))
    assert found["series.spectral_distance"] == pytest.approx(1.0, abs=1e-6)
    lags = np.arange(1, 13)
    rows = [np.array([(sine[0][lag:] * sine[0][:-lag]).sum() / 12 for lag in lags]) for sine in (slow, fast)]
    assert found["series.autocorrelation_distance"] == pytest.approx(np.abs(rows[0] - rows[1]).mean(), abs=1e-4)
    assert found["series.total_distance"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.usefixtures("quick")
def test_series_compared_with_themselves_are_perfect() -> None:
    real = days(200, seed=0)
    found = compared(real, real).measures
    for name in [*AVERAGED, "series.nearest_dtw"]:
        assert found[name].value == 0.0, name


@pytest.mark.usefixtures("quick")
def test_more_noise_is_worse() -> None:
    real, rng = days(300, seed=0), np.random.default_rng(0)
    found = [values_of(compared(real, np.clip(real + rng.normal(0, s, real.shape), -10, 10))) for s in (0.1, 0.5, 2.0)]
    for name in ("series.marginal_distance", *AVERAGED[3:], "series.nearest_dtw"):
        values = [each[name] for each in found]
        assert values == sorted(values), name
        assert values[0] < values[-1], name


@pytest.mark.usefixtures("quick")
def test_values_in_another_order_keep_their_distribution_and_lose_their_time() -> None:
    real = days(300, seed=0)
    shuffled = np.random.default_rng(0).permuted(real, axis=1)
    found = compared(real, shuffled).measures
    assert found["series.marginal_distance"].value == pytest.approx(0.0, abs=1e-12)
    assert found["series.total_distance"].value == pytest.approx(0.0, abs=1e-12)
    assert found["series.autocorrelation_distance"].low > 0.1
    assert found["series.spectral_distance"].low > 0.5


@pytest.mark.usefixtures("quick")
def test_copies_are_nearer_than_unseen_series() -> None:
    real, unseen = days(400, seed=0), days(400, seed=1)
    copies, honest = (compared(real, synthetic, unseen) for synthetic in (real[:50] + 1e-3, days(200, seed=2)))
    assert copies.measures["series.nearest_dtw"].high < 1e-3
    reference = copies.details["series"]["nearest_dtw"]["test"]
    assert reference["value"] > 0.05
    assert honest.measures["series.nearest_dtw"].value == pytest.approx(reference["value"], rel=0.2)


@pytest.mark.usefixtures("quick")
def test_without_the_library_neighbours_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dtaidistance", None)
    found = compared(days(20, seed=0), days(20, seed=1))
    assert "series.nearest_dtw" not in found.measures
    assert len(found.pictures) == 3
    assert found.notes == [
        "no distance to the nearest real series: dynamic time warping needs the dtaidistance library: "
        "pip install 'sundog[series]'"
    ]


@pytest.mark.usefixtures("quick")
def test_gaps_are_measured_and_filled() -> None:
    real, synthetic = days(40, seed=0), days(40, seed=0)
    synthetic[:10, 5] = np.nan  # at one place of 24 in a quarter of the series
    synthetic[0] = np.nan
    found = compared(real, synthetic, nullable=True)
    assert found.measures["series.gap_error"].value == pytest.approx((10 + 23) / (40 * 24))
    assert "filled by straight lines" in found.notes[0]
    assert "series.gap_error" not in compared(real, real).measures


@pytest.mark.parametrize(
    ("real", "synthetic", "declared"),
    [
        (np.zeros((25, 6)), np.zeros((25, 6)), {}),
        (np.zeros((25, 6)), days(25, seed=0, length=6), {}),
        (days(25, seed=0, length=6), np.zeros((25, 6)), {}),
        (days(1, seed=0), days(1, seed=1), {}),
        (days(2, seed=0), days(40, seed=1), {}),
        (days(30, seed=0, length=1), days(30, seed=1, length=1), {}),
        (days(30, seed=0, length=2), days(30, seed=1, length=2), {}),
        (days(30, seed=0, length=300), days(30, seed=1, length=300), {}),
        (np.full((20, 5), np.nan), np.full((20, 5), np.nan), {"nullable": True}),
        (days(20, seed=0, length=5), np.full((20, 5), np.nan), {"nullable": True}),
        (np.full((20, 5), 3.0), np.full((20, 5), 3.0), {"low": 3.0, "high": 3.0}),
    ],
)
@pytest.mark.usefixtures("quick")
def test_strange_series_are_measured(real: Floats, synthetic: Floats, declared: dict[str, Any]) -> None:
    found = compared(real, synthetic, **declared)
    assert set(found.metrics) == set(found.measures)
    assert ("series.predictive_score" in found.measures) == (real.shape[1] > 1)
    json.dumps(found.details, allow_nan=False)
    for name, measure in found.measures.items():
        untold = name == "series.discriminative_score" and len(real) < 2
        assert math.isnan(measure.value) if untold else 0 <= measure.low <= measure.value <= measure.high, name
    for picture in found.pictures:
        picture.draw().canvas.draw()


def test_bad_columns_are_refused() -> None:
    ours = records_of(days(3, seed=0))
    with pytest.raises(DataError, match="column 'house' is integer, not a series"):
        evaluate_series(Comparison(ours, ours, ours, ours), "house")
    with pytest.raises(DataError, match="column 'load' has no records"):
        evaluate_series(Comparison(ours, ours.take([]), ours, ours), "load")


@pytest.mark.usefixtures("quick")
def test_the_seed_decides() -> None:
    ours, theirs = records_of(days(60, seed=0)), records_of(days(60, seed=1))
    first, again, other = (
        evaluate_series(Comparison(ours, theirs, ours, theirs, seed=seed), "load").measures for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


# --- networks ------------------------------------------------------------------------------------------------------


def autoregressive(n: int, seed: int, *, memory: float = 0.9, length: int = 12) -> Floats:
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1, (n, length))
    values[:, 0] /= math.sqrt(1 - memory**2)
    for place in range(1, length):
        values[:, place] += memory * values[:, place - 1]
    return values


def test_series_of_the_same_kind_are_not_told_apart() -> None:
    found = discriminative_score(autoregressive(1000, 0), autoregressive(1500, 1), np.random.default_rng(0))
    assert found.low == 0.0
    assert found.value < 0.06


def test_series_with_the_same_values_in_another_order_are_told_apart() -> None:
    real, other = (autoregressive(1000, seed, length=24) for seed in (0, 1))
    found = discriminative_score(real, np.random.default_rng(0).permuted(other, axis=1), np.random.default_rng(0))
    assert found.value > 0.45
    assert found.low <= found.value <= found.high <= 0.5


def test_a_forecaster_that_learned_from_the_right_process_is_as_good_as_can_be() -> None:
    """The best forecast of x is 0.5 times the last value, and the mean absolute error that of normal noise: √(2/π)."""
    real = autoregressive(1000, 0, memory=0.5)
    best = math.sqrt(2 / math.pi)
    right, wrong = (
        predictive_score(autoregressive(1500, 1, memory=memory), real, np.random.default_rng(0))
        for memory in (0.5, -0.9)
    )
    assert right.value == pytest.approx(best, rel=0.05)
    assert wrong.low > 1.3 * best


@pytest.mark.usefixtures("quick")
def test_scores_leave_torch_as_it_was_and_repeat() -> None:
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    torch.set_num_threads(2)
    real, synthetic = autoregressive(60, 0), autoregressive(60, 1)
    scores = [
        (
            discriminative_score(real, synthetic, np.random.default_rng(seed)),
            predictive_score(synthetic, real, np.random.default_rng(seed)),
        )
        for seed in (3, 3, 4)
    ]
    assert scores[0] == scores[1]
    assert scores[0] != scores[2]
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)


def test_long_series_are_told_apart_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_models, "STEPS", 30)
    slow, fast = (autoregressive(100, 0, memory=memory, length=400) for memory in (0.95, 0.0))
    assert discriminative_score(slow, fast, np.random.default_rng(0)).value > 0.45
