"""Every measure of fidelity against another way to compute it: pandas, scipy, and pen and paper."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.evaluation.tables.two_tables import (
    CATEGORICAL,
    NUMERIC,
    SCHEMA,
    compare,
    on_codes,
    people,
    records,
    total_variation,
    value,
)

from sundog.evaluation.section import Section
from sundog.evaluation.tables.fidelity import evaluate_fidelity
from sundog.evaluation.tables.wasserstein import estimate_sliced_distance


@pytest.fixture(scope="module")
def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    return people(600, 0), people(500, 1, slope=0.7)


@pytest.fixture(scope="module")
def section(frames: tuple[pd.DataFrame, pd.DataFrame]) -> Section:
    return evaluate_fidelity(compare(records(frames[0]), records(frames[1])))


# --- associations --------------------------------------------------------------------------------------------------


def cramers_v(a: pd.Series[Any], b: pd.Series[Any]) -> float:
    table = pd.crosstab(a, b).to_numpy()
    n, (r, k) = table.sum(), table.shape
    phi = stats.chi2_contingency(table, correction=False).statistic / n
    fewer = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
    return math.sqrt(max(0, phi - (r - 1) * (k - 1) / (n - 1)) / fewer)


def correlation_ratio(category: pd.Series[Any], x: pd.Series[Any]) -> float:
    both = pd.DataFrame({"category": category, "x": x.astype(float)}).dropna()
    within = both["x"] - both.groupby("category")["x"].transform("mean")
    return math.sqrt(1 - float((within**2).sum() / ((both["x"] - both["x"].mean()) ** 2).sum()))


def correlation(frame: pd.DataFrame, first: str, second: str) -> float:
    known = frame[[first, second]].dropna().to_numpy(float)
    return float(np.corrcoef(known.T)[0, 1])


def association(frame: pd.DataFrame, first: str, second: str) -> float:
    numbers = frame.assign(seen=(frame["seen"] - frame["seen"].min()).dt.days)
    if first in NUMERIC and second in NUMERIC:
        return correlation(numbers, first, second)
    if first in CATEGORICAL and second in CATEGORICAL:
        return cramers_v(frame[first], frame[second])
    label, number = (first, second) if first in CATEGORICAL else (second, first)
    return correlation_ratio(frame[label], numbers[number])


def test_associations_are_those_of_pandas_and_scipy(
    frames: tuple[pd.DataFrame, pd.DataFrame], section: Section
) -> None:
    found = section.details["fidelity"]["associations"]
    assert found["columns"] == list(SCHEMA)
    expected = [np.eye(len(SCHEMA)), np.eye(len(SCHEMA))]
    for matrix, frame in zip(expected, frames, strict=True):
        for (i, first), (j, second) in itertools.combinations(enumerate(SCHEMA), 2):
            matrix[i, j] = matrix[j, i] = association(frame, first, second)
    assert np.array(found["real"]) == pytest.approx(expected[0], abs=1e-6)
    assert np.array(found["synthetic"]) == pytest.approx(expected[1], abs=1e-6)
    upper = np.triu_indices(len(SCHEMA), 1)
    assert value(section, "association_error") == pytest.approx(np.abs(expected[0] - expected[1])[upper].mean())


def test_many_categories_without_relation_have_none() -> None:
    """Without the correction V would be about √(49/1000) = 0.22 here."""
    rng = np.random.default_rng(0)
    columns = {name: {"type": "categorical", "values": [str(each) for each in range(50)]} for name in "ab"}
    codes = {name: rng.integers(0, 50, 1000).tolist() for name in "ab"}
    matrix = on_codes(columns, codes, codes).details["fidelity"]["associations"]["real"]
    assert matrix[0][1] < 0.05


def test_a_straight_line_is_a_correlation_of_one_however_far_from_zero() -> None:
    columns = {"a": {"type": "integer", "min": 0, "max": 2**40}, "b": {"type": "integer", "min": 0, "max": 2**40}}
    line = {"a": [2**40 - 9 + each for each in range(9)], "b": [2 * each for each in range(9)]}
    turned = {"a": line["a"], "b": line["b"][::-1]}
    section = on_codes(columns, line, turned)
    found = section.details["fidelity"]["associations"]
    assert (found["real"][0][1], found["synthetic"][0][1]) == pytest.approx((1, -1))
    assert value(section, "association_error") == pytest.approx(2)
    assert value(section, "column_pair_trends") == pytest.approx(0)


# --- shapes and trends ---------------------------------------------------------------------------------------------


def test_shapes_by_hand() -> None:
    columns = {
        "n": {"type": "integer", "min": 0, "max": 9, "nullable": True},
        "c": {"type": "categorical", "values": ["x", "y", "z"], "nullable": True},
    }
    real = {"n": [0, 1, 2, 3, 10], "c": [0, 0, 1, 1, 3]}
    synthetic = {"n": [2, 3, 4, 10], "c": [0, 1, 2, 2]}
    section = on_codes(columns, real, synthetic)
    # n: below 2 there is half of the real values {0, 1, 2, 3} and none of the synthetic ones {2, 3, 4}.
    # c: real (1/2, 1/2, 0), synthetic (1/4, 1/4, 1/2): a distance of 1/2. Nulls are left out of both.
    assert section.details["fidelity"]["column_shapes"] == pytest.approx({"n": 0.5, "c": 0.5})
    # Joint table of the bins of n (edges 0, 0.3, …, 3; 3 begins the last, with all beyond) and c, nulls as categories:
    # (1st, x) (4th, x) (7th, y) (last, y) (null, null) against (7th, x) (last, y) (last, z) (null, z).
    # Only (last, y) is in both, with 1/5 and 1/4: the distance is 1 - 1/5.
    assert section.details["fidelity"]["column_pair_trends"] == [{"columns": ["n", "c"], "score": pytest.approx(1 / 5)}]
    assert value(section, "quality") == pytest.approx((0.5 + 0.2) / 2)


def contingency_similarity(real: pd.DataFrame, synthetic: pd.DataFrame, first: str, second: str) -> float:
    """As SDMetrics documents it, for mixed pairs with the bins of the real column."""
    real, synthetic = real[[first, second]].copy(), synthetic[[first, second]].copy()
    for name in {first, second} & set(NUMERIC):
        edges = np.histogram_bin_edges(real[name].dropna(), 10)
        for frame in (real, synthetic):
            frame[name] = np.where(frame[name].isna(), -1, np.digitize(frame[name], edges))
    shares = [frame.groupby([first, second], dropna=False).size() / len(frame) for frame in (real, synthetic)]
    aligned = pd.concat(shares, axis=1).fillna(0).to_numpy()
    return float(1 - np.abs(aligned[:, 0] - aligned[:, 1]).sum() / 2)


def test_scores_are_those_of_pandas_and_scipy(frames: tuple[pd.DataFrame, pd.DataFrame], section: Section) -> None:
    real, synthetic = (frame.assign(seen=(frame["seen"] - pd.Timestamp("2020-01-01")).dt.days) for frame in frames)
    shapes = {name: 1 - stats.ks_2samp(real[name].dropna(), synthetic[name].dropna()).statistic for name in NUMERIC}
    for name in CATEGORICAL:
        known = [frame[[name]].dropna() for frame in (real, synthetic)]
        shapes[name] = 1 - total_variation(known[0], known[1], [name])
    assert section.details["fidelity"]["column_shapes"] == pytest.approx(shapes)
    trends = {}
    for first, second in itertools.combinations(SCHEMA, 2):
        if first in NUMERIC and second in NUMERIC:
            r = [correlation(frame, first, second) for frame in (real, synthetic)]
            trends[first, second] = 1 - abs(r[0] - r[1]) / 2
        else:
            trends[first, second] = contingency_similarity(real, synthetic, first, second)
    found = {tuple(row["columns"]): row["score"] for row in section.details["fidelity"]["column_pair_trends"]}
    assert found == pytest.approx(trends)
    means = [np.mean(list(each.values())) for each in (shapes, trends)]
    assert value(section, "column_shapes") == pytest.approx(means[0])
    assert value(section, "column_pair_trends") == pytest.approx(means[1])
    assert value(section, "quality") == pytest.approx(np.mean(means))


def test_shapes_are_exact_where_there_are_very_many_values() -> None:
    """Resamples are looked at in a thousand places, the data everywhere."""
    rng = np.random.default_rng(0)
    columns = {"x": {"type": "continuous", "min": 0, "max": 1, "resolution": 1e-9}}
    real, synthetic = (rng.beta(2, b, 3000) for b in (2, 3))
    section = on_codes(columns, *({"x": np.rint(each * 1e9).astype(int).tolist()} for each in (real, synthetic)))
    shape, moved = section.measures["fidelity.column_shapes"], section.measures["fidelity.wasserstein_1d"]
    assert shape.value == pytest.approx(1 - stats.ks_2samp(real, synthetic).statistic, abs=1e-12)
    assert moved.value == pytest.approx(stats.wasserstein_distance(real, synthetic), abs=1e-8)
    assert 0.01 < shape.high - shape.low < 0.1
    assert 0.005 < moved.high - moved.low < 0.05


# --- coverage ------------------------------------------------------------------------------------------------------


def test_coverage_by_hand() -> None:
    columns = {
        "n": {"type": "integer", "min": 0, "max": 20, "nullable": True},
        "m": {"type": "integer", "min": 0, "max": 20},
        "c": {"type": "categorical", "values": list("abcde")},
        "d": {"type": "boolean", "nullable": True},
    }
    real = {"n": [0, 10, 5, 21], "m": [5, 6, 9, 5], "c": [0, 1, 2, 3], "d": [0, 1, 2, 2]}
    synthetic = {"n": [2, 9, 9, 3], "m": [0, 20, 1, 1], "c": [0, 4, 0, 1], "d": [1, 1, 1, 2]}
    found = on_codes(columns, real, synthetic)
    details = found.details["fidelity"]
    assert details["range_coverage"] == pytest.approx({"n": 0.7, "m": 1.0})
    assert details["category_coverage"] == pytest.approx({"c": 0.5, "d": 0.5})
    assert details["category_adherence"] == pytest.approx({"c": 0.75, "d": 1.0})
    assert details["null_difference"] == pytest.approx({"n": 0.25, "d": 0.25})
    assert value(found, "range_coverage") == pytest.approx(0.85)
    assert value(found, "category_coverage") == pytest.approx(0.5)
    assert value(found, "category_adherence") == pytest.approx(0.875)
    assert value(found, "null_difference") == pytest.approx(0.25)


def test_without_nullable_columns_nothing_is_said_about_nulls() -> None:
    section = on_codes({"n": {"type": "boolean"}}, {"n": [0, 1]}, {"n": [0, 1]})
    assert "fidelity.null_difference" not in section.measures


# --- Wasserstein ---------------------------------------------------------------------------------------------------


def test_wasserstein_of_columns_by_hand() -> None:
    columns = {
        "n": {"type": "integer", "min": 100, "max": 125, "step": 10},
        "t": {"type": "datetime", "min": "2020-01-01", "max": "2020-01-11", "resolution": "day"},
    }
    section = on_codes(columns, {"n": [0, 0], "t": [0, 4]}, {"n": [2, 3], "t": [1, 5]})
    # n moves from 100 to 120 and 125, of a range of 25; t by one day of ten.
    assert section.details["fidelity"]["wasserstein_1d"] == pytest.approx({"n": 22.5 / 25, "t": 0.1})
    assert value(section, "wasserstein_1d") == pytest.approx(0.5)


def test_the_sliced_distance_of_a_moved_cloud() -> None:
    """Along a direction θ a cloud that moved by δ is |δ·θ| away; in the plane that is 2|δ|/π in the mean."""
    points = np.random.default_rng(0).random((500, 2))
    found = estimate_sliced_distance(points, points + np.array([0.3, 0.4]), np.random.default_rng(1))
    assert found[0] == pytest.approx(2 * 0.5 / math.pi, rel=0.1)
    assert found[1:].mean() == pytest.approx(found[0], rel=0.05)


def test_the_sliced_distance_is_the_mean_of_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    real, synthetic = rng.normal(0, 1, (120, 3)), rng.normal(0.5, 2, (360, 3))
    directions = np.random.default_rng(2).standard_normal((128, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    expected = [stats.wasserstein_distance(real @ each, synthetic @ each) for each in directions]
    assert estimate_sliced_distance(real, synthetic, np.random.default_rng(2))[0] == pytest.approx(np.mean(expected))


def test_one_numeric_column_has_no_sliced_distance() -> None:
    section = on_codes({"n": {"type": "integer", "min": 0, "max": 9}}, {"n": [1, 2]}, {"n": [1, 2]})
    assert "fidelity.wasserstein_1d" in section.measures
    assert "fidelity.wasserstein_sliced" not in section.measures
