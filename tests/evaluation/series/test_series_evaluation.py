"""Time series: statistics against hand computations and theory, networks against processes with known answers."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np
import pytest
from tests.evaluation.series.days import Floats, draw_days, encode_series, evaluate_days, get_values

from sundog.errors import DataError
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.series.series_evaluation import evaluate_series

AVERAGED = [
    "series.marginal_distance",
    "series.mean_profile_error",
    "series.total_distance",
    "series.autocorrelation_distance",
    "series.spectral_distance",
]


@pytest.mark.usefixtures("quick")
def test_measures_by_hand() -> None:
    # On the declared range of 20: the mean curves (0, 2, 0, 2) and (1, 3, 1, 3), all values moved by 1.
    real = np.array([[-1.0, 1.0, -1.0, 1.0], [1.0, 3.0, 1.0, 3.0]])
    found = get_values(evaluate_days(real, real + 1))
    assert found["series.marginal_distance"] == pytest.approx(1 / 20, abs=0.25 / 8192)
    assert found["series.mean_profile_error"] == pytest.approx(1 / 20)
    assert found["series.total_distance"] == pytest.approx(1 / 20, abs=0.15 / 8192)
    assert found["series.autocorrelation_distance"] == pytest.approx(0.0, abs=1e-12)
    assert found["series.spectral_distance"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.usefixtures("quick")
def test_another_rhythm_is_seen_by_what_is_about_time_only() -> None:
    places = np.arange(24)
    slow, fast = (np.tile(np.sin(2 * np.pi * cycles * places / 24), (30, 1)) for cycles in (1, 2))
    found = get_values(evaluate_days(slow, fast))
    assert found["series.spectral_distance"] == pytest.approx(1.0, abs=1e-6)
    lags = np.arange(1, 13)
    rows = [np.array([(sine[0][lag:] * sine[0][:-lag]).sum() / 12 for lag in lags]) for sine in (slow, fast)]
    assert found["series.autocorrelation_distance"] == pytest.approx(np.abs(rows[0] - rows[1]).mean(), abs=1e-4)
    assert found["series.total_distance"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.usefixtures("quick")
def test_series_compared_with_themselves_are_perfect() -> None:
    real = draw_days(200, seed=0)
    found = evaluate_days(real, real).measures
    for name in [*AVERAGED, "series.nearest_dtw"]:
        assert found[name].value == 0.0, name


@pytest.mark.usefixtures("quick")
def test_more_noise_is_worse() -> None:
    real, rng = draw_days(300, seed=0), np.random.default_rng(0)
    found = [
        get_values(evaluate_days(real, np.clip(real + rng.normal(0, s, real.shape), -10, 10))) for s in (0.1, 0.5, 2.0)
    ]
    for name in ("series.marginal_distance", *AVERAGED[3:], "series.nearest_dtw"):
        values = [each[name] for each in found]
        assert values == sorted(values), name
        assert values[0] < values[-1], name


@pytest.mark.usefixtures("quick")
def test_values_in_another_order_keep_their_distribution_and_lose_their_time() -> None:
    real = draw_days(300, seed=0)
    shuffled = np.random.default_rng(0).permuted(real, axis=1)
    found = evaluate_days(real, shuffled).measures
    assert found["series.marginal_distance"].value == pytest.approx(0.0, abs=1e-12)
    assert found["series.total_distance"].value == pytest.approx(0.0, abs=1e-12)
    assert found["series.autocorrelation_distance"].low > 0.1
    assert found["series.spectral_distance"].low > 0.5


@pytest.mark.usefixtures("quick")
def test_copies_are_nearer_than_unseen_series() -> None:
    real, unseen = draw_days(400, seed=0), draw_days(400, seed=1)
    copies, honest = (
        evaluate_days(real, synthetic, unseen) for synthetic in (real[:50] + 1e-3, draw_days(200, seed=2))
    )
    assert copies.measures["series.nearest_dtw"].high < 1e-3
    reference = copies.details["series"]["nearest_dtw"]["test"]
    assert reference["value"] > 0.05
    assert honest.measures["series.nearest_dtw"].value == pytest.approx(reference["value"], rel=0.2)


@pytest.mark.usefixtures("quick")
def test_without_the_library_neighbours_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dtaidistance", None)
    found = evaluate_days(draw_days(20, seed=0), draw_days(20, seed=1))
    assert "series.nearest_dtw" not in found.measures
    assert len(found.pictures) == 3
    assert found.notes == [
        "no distance to the nearest real series: dynamic time warping needs the dtaidistance library: "
        "pip install 'sundog[series]'"
    ]


@pytest.mark.usefixtures("quick")
def test_gaps_are_measured_and_filled() -> None:
    real, synthetic = draw_days(40, seed=0), draw_days(40, seed=0)
    synthetic[:10, 5] = np.nan  # at one place of 24 in a quarter of the series
    synthetic[0] = np.nan
    found = evaluate_days(real, synthetic, nullable=True)
    assert found.measures["series.gap_error"].value == pytest.approx((10 + 23) / (40 * 24))
    assert "filled by linear interpolation" in found.notes[0]
    assert "series.gap_error" not in evaluate_days(real, real).measures


@pytest.mark.parametrize(
    ("real", "synthetic", "declared"),
    [
        (np.zeros((25, 6)), np.zeros((25, 6)), {}),
        (np.zeros((25, 6)), draw_days(25, seed=0, length=6), {}),
        (draw_days(25, seed=0, length=6), np.zeros((25, 6)), {}),
        (draw_days(1, seed=0), draw_days(1, seed=1), {}),
        (draw_days(2, seed=0), draw_days(40, seed=1), {}),
        (draw_days(30, seed=0, length=1), draw_days(30, seed=1, length=1), {}),
        (draw_days(30, seed=0, length=2), draw_days(30, seed=1, length=2), {}),
        (draw_days(30, seed=0, length=300), draw_days(30, seed=1, length=300), {}),
        (np.full((20, 5), np.nan), np.full((20, 5), np.nan), {"nullable": True}),
        (draw_days(20, seed=0, length=5), np.full((20, 5), np.nan), {"nullable": True}),
        (np.full((20, 5), 3.0), np.full((20, 5), 3.0), {"low": 3.0, "high": 3.0}),
    ],
)
@pytest.mark.usefixtures("quick")
def test_strange_series_are_measured(real: Floats, synthetic: Floats, declared: dict[str, Any]) -> None:
    found = evaluate_days(real, synthetic, **declared)
    assert set(found.metrics) == set(found.measures)
    assert ("series.predictive_score" in found.measures) == (real.shape[1] > 1)
    json.dumps(found.details, allow_nan=False)
    for name, measure in found.measures.items():
        untold = name == "series.discriminative_score" and len(real) < 2
        assert math.isnan(measure.value) if untold else 0 <= measure.low <= measure.value <= measure.high, name
    for picture in found.pictures:
        picture.draw().canvas.draw()


def test_bad_columns_are_refused() -> None:
    ours = encode_series(draw_days(3, seed=0))
    with pytest.raises(DataError, match="column 'house' is integer, not a series"):
        evaluate_series(Comparison(ours, ours, ours, ours), "house")
    with pytest.raises(DataError, match="column 'load' has no records"):
        evaluate_series(Comparison(ours, ours.take([]), ours, ours), "load")


@pytest.mark.usefixtures("quick")
def test_the_seed_decides() -> None:
    ours, theirs = encode_series(draw_days(60, seed=0)), encode_series(draw_days(60, seed=1))
    first, again, other = (
        evaluate_series(Comparison(ours, theirs, ours, theirs, seed=seed), "load").measures for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
