"""Learning the range of a column."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.data.learning import N, learn_schema, make_schema

from sundog.data.columns import IntegerColumn
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.data.schema_learning import prepare
from sundog.errors import DataError


@pytest.mark.parametrize("name", ["visits", "weight", "score"])
def test_a_learned_range_holds_nearly_everything_and_not_much_more(people: pd.DataFrame, name: str) -> None:
    column = learn_schema(people, make_schema(name))[0].columns[name]
    values = people[name].dropna().to_numpy(float)
    low, high = float(getattr(column, "min")), float(getattr(column, "max"))  # noqa: B009
    assert ((values >= low) & (values <= high)).mean() > 0.99
    assert high - low <= 8 * (values.max() - values.min() + 1)


def test_a_learned_range_does_not_follow_an_outlier(people: pd.DataFrame) -> None:
    with_outlier = pd.concat([people, people.iloc[:1].assign(visits=10**15)], ignore_index=True)
    schema, _ = learn_schema(with_outlier, make_schema("visits"))
    column = schema.columns["visits"]
    assert isinstance(column, IntegerColumn)
    assert column.max is not None
    assert column.max < 1000
    codes = encode(read(with_outlier, schema), schema).codes["visits"]
    assert column.decode(codes[-1:]).to_pylist() == [column.max]  # it is clamped


def test_negative_and_missing_numbers_are_learned_too() -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "integer", "learn": True, "nullable": True}}})
    values = [*range(-200, -100)] * 30 + [None] * 500
    column = learn_schema({"x": values}, schema)[0].columns["x"]
    assert isinstance(column, IntegerColumn)
    assert (column.min, column.max) == (-256, -64)


def test_learned_dates_span_the_bulk(people: pd.DataFrame) -> None:
    column = learn_schema(people, make_schema("seen"))[0].columns["seen"]
    low, high = (datetime.date.fromisoformat(str(getattr(column, end))) for end in ("min", "max"))
    days = people["seen"].dt.date
    assert ((days >= low) & (days <= high)).mean() > 0.97


def test_learned_dates_span_not_much_more_than_the_bulk(people: pd.DataFrame) -> None:
    spans = []
    for seed in range(9):
        column = learn_schema(people, make_schema("seen"), seed=seed)[0].columns["seen"]
        low, high = (datetime.date.fromisoformat(str(getattr(column, end))) for end in ("min", "max"))
        spans.append((high - low).days)
    assert np.median(spans) < 4 * 2000


VISITS = np.random.default_rng(0).poisson(12, N) + 1
DAYS = np.datetime64("2015-01-01") + np.random.default_rng(0).integers(0, 2000, N).astype("timedelta64[D]")


def complete_column(declared: dict[str, Any], values: Any, *, epsilon: float = 8.0) -> dict[str, Any]:
    schema = Schema.from_dict({"columns": {"x": {"learn": True, **declared}}})
    found, _ = learn_schema({"x": values}, schema, epsilon=epsilon)
    assert found.complete
    assert len(encode(read({"x": values}, found), found)) == len(values)
    return found.columns["x"].to_dict()


@pytest.mark.parametrize("kind", ["integer", "continuous"])
def test_a_declared_bound_is_kept_and_the_other_one_is_learned(kind: str) -> None:
    low = complete_column({"type": kind, "min": 0}, VISITS)
    assert low["min"] == 0
    assert 20 <= low["max"] <= 64
    high = complete_column({"type": kind, "max": 1000}, VISITS)
    assert 0 <= high["min"] <= 8
    assert high["max"] == 1000


@pytest.mark.parametrize("bound", ["min", "max"])
def test_a_declared_bound_beyond_everything_is_kept_too(bound: str) -> None:
    far = {"min": 10_000, "max": -10_000}[bound]
    found = complete_column({"type": "integer", bound: far}, VISITS)
    assert (found["min"], found["max"]) == (far, far)  # and every value is clamped to it
    dates = {"min": "2090-01-01", "max": "1930-01-01"}[bound]
    found = complete_column({"type": "datetime", "resolution": "day", bound: dates}, DAYS)
    assert (found["min"], found["max"]) == (dates, dates)


def test_a_declared_date_is_kept_and_the_other_one_is_learned() -> None:
    low = complete_column({"type": "datetime", "resolution": "day", "min": "2010-05-05"}, DAYS)
    assert low["min"] == "2010-05-05"
    assert "2019-01-01" <= low["max"] <= "2024-12-31"
    high = complete_column({"type": "datetime", "resolution": "day", "max": "2030-05-05"}, DAYS)
    assert "2010-01-01" <= high["min"] <= "2016-12-31"
    assert high["max"] == "2030-05-05"


@pytest.mark.parametrize(
    ("declared", "values", "kept"),
    [
        ({"type": "integer", "edges": [-500, 5, 12, 5000]}, VISITS, [5, 12]),
        ({"type": "integer", "edges": [-500, 5000]}, VISITS, None),
        ({"type": "integer", "min": -500, "edges": [-500, 5, 5000]}, VISITS, [-500, 5]),
        ({"type": "continuous", "edges": [-500.5, 5.5, 12.5, 5e9]}, VISITS, [5.5, 12.5]),
        ({"type": "datetime", "edges": ["1900-01-01", "2016-07-01", "2090-01-01"]}, DAYS, ["2016-07-01"]),
        ({"type": "datetime", "edges": ["1900-01-01", "2090-01-01"]}, DAYS, None),
    ],
    ids=str,
)
def test_edges_outside_the_learned_range_are_dropped(declared: dict[str, Any], values: Any, kept: Any) -> None:
    assert complete_column(declared, values).get("edges") == kept


def test_a_resolution_too_fine_for_the_learned_range_becomes_the_default() -> None:
    values = np.random.default_rng(0).normal(0, 1e6, N)
    found = complete_column({"type": "continuous", "resolution": 1e-12}, values)
    assert found["resolution"] == complete_column({"type": "continuous"}, values)["resolution"] == 1.0
    assert complete_column({"type": "continuous", "resolution": 1e-3}, values)["resolution"] == 1e-3


@pytest.mark.parametrize(
    "values",
    [
        [b"tea", b"milk"] * 500,
        np.array([b"tea", b"milk"] * 500),
        pa.array([b"tea", b"milk"] * 500),
        pa.array([b"tea", b"milk"] * 500).dictionary_encode(),
    ],
    ids=["list", "numpy", "arrow", "dictionary"],
)
def test_bytes_are_learned_as_the_text_they_are(values: Any) -> None:
    assert sorted(complete_column({"type": "categorical"}, values)["values"]) == ["milk", "other", "tea"]


def test_bytes_that_are_no_text_are_refused_before_anything_is_spent() -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "categorical", "learn": True}}})
    with pytest.raises(DataError, match="column 'x': holds bytes that are not UTF-8 text"):
        prepare(read({"x": pa.array([b"tea", b"\xff"] * 500)}, schema), schema)


def test_too_few_records_are_an_error_that_names_the_column() -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "integer", "learn": True}}})
    with pytest.raises(DataError, match="column 'x': too few records"):
        learn_schema({"x": [1, 2, 3]}, schema, epsilon=0.5)
