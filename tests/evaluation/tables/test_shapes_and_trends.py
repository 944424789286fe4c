"""Every measure of fidelity against another way to compute it: pandas, scipy, and pen and paper."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.evaluation.tables.two_tables import (
    CATEGORICAL,
    NUMERIC,
    SCHEMA,
    compute_correlation,
    compute_distance,
    evaluate_codes,
    get_value,
)

from sundog.evaluation.section import Section


def test_shapes_by_hand() -> None:
    columns = {
        "n": {"type": "integer", "min": 0, "max": 9, "nullable": True},
        "c": {"type": "categorical", "values": ["x", "y", "z"], "nullable": True},
    }
    real = {"n": [0, 1, 2, 3, 10], "c": [0, 0, 1, 1, 3]}
    synthetic = {"n": [2, 3, 4, 10], "c": [0, 1, 2, 2]}
    section = evaluate_codes(columns, real, synthetic)
    # n: below 2 there is half of the real values {0, 1, 2, 3} and none of the synthetic ones {2, 3, 4}.
    # c: real (1/2, 1/2, 0), synthetic (1/4, 1/4, 1/2): a distance of 1/2. Nulls are left out of both.
    assert section.details["fidelity"]["column_shapes"] == pytest.approx({"n": 0.5, "c": 0.5})
    # Joint table of the bins of n (edges 0, 0.3, …, 3; 3 begins the last, with all beyond) and c, nulls as categories:
    # (1st, x) (4th, x) (7th, y) (last, y) (null, null) against (7th, x) (last, y) (last, z) (null, z).
    # Only (last, y) is in both, with 1/5 and 1/4: the distance is 1 - 1/5.
    assert section.details["fidelity"]["column_pair_trends"] == [{"columns": ["n", "c"], "score": pytest.approx(1 / 5)}]
    assert get_value(section, "quality") == pytest.approx((0.5 + 0.2) / 2)


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
        shapes[name] = 1 - compute_distance(known[0], known[1], [name])
    assert section.details["fidelity"]["column_shapes"] == pytest.approx(shapes)
    trends = {}
    for first, second in itertools.combinations(SCHEMA, 2):
        if first in NUMERIC and second in NUMERIC:
            r = [compute_correlation(frame, first, second) for frame in (real, synthetic)]
            trends[first, second] = 1 - abs(r[0] - r[1]) / 2
        else:
            trends[first, second] = contingency_similarity(real, synthetic, first, second)
    found = {tuple(row["columns"]): row["score"] for row in section.details["fidelity"]["column_pair_trends"]}
    assert found == pytest.approx(trends)
    means = [np.mean(list(each.values())) for each in (shapes, trends)]
    assert get_value(section, "column_shapes") == pytest.approx(means[0])
    assert get_value(section, "column_pair_trends") == pytest.approx(means[1])
    assert get_value(section, "quality") == pytest.approx(np.mean(means))


def test_shapes_are_exact_where_there_are_very_many_values() -> None:
    """Resamples are looked at in a thousand places, the data everywhere."""
    rng = np.random.default_rng(0)
    columns = {"x": {"type": "continuous", "min": 0, "max": 1, "resolution": 1e-9}}
    real, synthetic = (rng.beta(2, b, 3000) for b in (2, 3))
    section = evaluate_codes(columns, *({"x": np.rint(each * 1e9).astype(int).tolist()} for each in (real, synthetic)))
    shape, moved = section.measures["fidelity.column_shapes"], section.measures["fidelity.wasserstein_1d"]
    assert shape.value == pytest.approx(1 - stats.ks_2samp(real, synthetic).statistic, abs=1e-12)
    assert moved.value == pytest.approx(stats.wasserstein_distance(real, synthetic), abs=1e-8)
    assert 0.01 < shape.high - shape.low < 0.1
    assert 0.005 < moved.high - moved.low < 0.05
