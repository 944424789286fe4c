"""Associations against pandas and scipy."""

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
    compute_correlation,
    evaluate_codes,
    get_value,
)

from sundog.evaluation.section import Section


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


def association(frame: pd.DataFrame, first: str, second: str) -> float:
    numbers = frame.assign(seen=(frame["seen"] - frame["seen"].min()).dt.days)
    if first in NUMERIC and second in NUMERIC:
        return compute_correlation(numbers, first, second)
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
    assert get_value(section, "association_error") == pytest.approx(np.abs(expected[0] - expected[1])[upper].mean())


def test_many_categories_without_relation_have_none() -> None:
    """Without the correction V would be about √(49/1000) = 0.22 here."""
    rng = np.random.default_rng(0)
    columns = {name: {"type": "categorical", "values": [str(each) for each in range(50)]} for name in "ab"}
    codes = {name: rng.integers(0, 50, 1000).tolist() for name in "ab"}
    matrix = evaluate_codes(columns, codes, codes).details["fidelity"]["associations"]["real"]
    assert matrix[0][1] < 0.05


def test_a_straight_line_is_a_correlation_of_one_however_far_from_zero() -> None:
    columns = {"a": {"type": "integer", "min": 0, "max": 2**40}, "b": {"type": "integer", "min": 0, "max": 2**40}}
    line = {"a": [2**40 - 9 + each for each in range(9)], "b": [2 * each for each in range(9)]}
    turned = {"a": line["a"], "b": line["b"][::-1]}
    section = evaluate_codes(columns, line, turned)
    found = section.details["fidelity"]["associations"]
    assert (found["real"][0][1], found["synthetic"][0][1]) == pytest.approx((1, -1))
    assert get_value(section, "association_error") == pytest.approx(2)
    assert get_value(section, "column_pair_trends") == pytest.approx(0)
