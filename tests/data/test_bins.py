"""Bins: every code is in one bin, every bin gives its own codes, and bins do not depend on the data."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundog.data import bins as module
from sundog.data.bins import Bins, make_bins
from sundog.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    ContinuousColumn,
    DatetimeColumn,
    ImageColumn,
    IntegerColumn,
    SeriesColumn,
    SetColumn,
)
from sundog.errors import SchemaError


@st.composite
def some_bins(draw: st.DrawFn) -> Bins:
    size = draw(st.integers(1, 5000) | st.integers(2**20, 2**63 - 1))
    inner = draw(st.sets(st.integers(1, size - 1), max_size=20)) if size > 1 else set()
    return Bins(np.array(sorted({0} | inner)), size, draw(st.booleans()))


@given(some_bins(), st.data())
def test_a_code_lies_in_the_bin_that_holds_it(bins: Bins, data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(0, bins.size - 1 + bins.nullable), min_size=1))
    found = bins.to_bins(np.array(codes, np.uint64))
    for code, bin_ in zip(codes, found.tolist(), strict=True):
        if code == bins.size:
            assert bin_ == bins.count - 1
        else:
            assert bin_ == sum(start <= code for start in bins.starts.tolist()) - 1


@given(some_bins(), st.integers(0, 2**32))
def test_bins_come_back_to_themselves(bins: Bins, seed: int) -> None:
    ids = np.arange(bins.count)
    codes = bins.to_codes(ids, np.random.default_rng(seed))
    assert codes.dtype.kind == "u"
    assert bins.to_bins(codes).tolist() == ids.tolist()


def test_codes_are_uniform_inside_a_bin() -> None:
    bins = Bins(np.array([0, 3, 10]), 14, nullable=True)
    codes = bins.to_codes(np.full(70_000, 1), np.random.default_rng(0))
    counts = np.bincount(codes, minlength=15)
    assert counts[:3].sum() == counts[10:].sum() == 0
    assert (np.abs(counts[3:10] - 10_000) < 500).all()
    assert bins.to_codes(np.array([3, 3]), np.random.default_rng(0)).tolist() == [14, 14]


def test_arrays_keep_their_shape() -> None:
    bins = make_bins(ImageColumn(shape=(4, 4)))
    pixels = np.arange(32, dtype=np.uint8).reshape(2, 4, 4)
    assert (
        bins.to_bins(pixels).shape == bins.to_codes(bins.to_bins(pixels), np.random.default_rng(0)).shape == (2, 4, 4)
    )


def test_the_table_and_the_search_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    column = IntegerColumn(min=0, max=9999, nullable=True)
    codes = np.arange(column.size)
    with_table = make_bins(column).to_bins(codes)
    monkeypatch.setattr(module, "TABLE", 0)
    assert (make_bins(column).to_bins(codes) == with_table).all()


@pytest.mark.parametrize(
    ("column", "count"),
    [
        (CategoricalColumn(values=tuple(range(1000))), 1000),
        (CategoricalColumn(values=("a", "b"), nullable=True), 3),
        (BooleanColumn(), 2),
        (SetColumn(universe=5, max_size=2), 2),
        (IntegerColumn(min=0, max=127), 128),
        (IntegerColumn(min=0, max=128), 64),
        (IntegerColumn(min=0, max=9, bins=3, nullable=True), 4),
        (IntegerColumn(min=0, max=9, bins=300), 10),
        (IntegerColumn(min=0, max=2**63 - 1), 64),
        (ContinuousColumn(min=0, max=1), 64),
        (DatetimeColumn(min="2020-01-01", max="2020-12-31"), 64),
        (ImageColumn(shape=(2, 2)), 16),
        (ImageColumn(shape=(2, 2), levels=2), 2),
        (ImageColumn(shape=(2, 2), bins=4), 4),
        (SeriesColumn(length=3, min=0, max=1), 32),
        (SeriesColumn(length=3, min=0, max=1, bins=7), 7),
    ],
)
def test_defaults(column: Column, count: int) -> None:
    bins = make_bins(column)
    assert bins.count == count
    widths = np.diff(np.append(bins.starts.astype(object), bins.size))
    assert max(widths) - min(widths) <= 1


@pytest.mark.parametrize(
    ("column", "starts"),
    [
        (IntegerColumn(min=0, max=90, edges=(18, 65)), [0, 18, 65]),
        (IntegerColumn(min=0, max=90, edges=(0, 18, 65, 90)), [0, 18, 65, 90]),  # an edge begins a bin, at max too
        (IntegerColumn(min=17, max=90, edges=(18,)), [0, 1]),
        (IntegerColumn(min=0, max=90, step=10, edges=(15, 20)), [0, 2]),
        (ContinuousColumn(min=0, max=1, resolution=0.1, edges=(0.3, 0.55, 0.95)), [0, 3, 6, 10]),
        (ContinuousColumn(min=0, max=1, resolution=0.1, edges=(0.7, 1)), [0, 7, 10]),
        (
            DatetimeColumn(min="2020-01-01", max="2020-12-31", resolution="day", edges=("2020-02-01", "2020-12-31")),
            [0, 31, 365],
        ),
        (
            DatetimeColumn(min="2020-01-01", max="2020-01-02", edges=("2020-01-01T00:01",), timezone="Asia/Tokyo"),
            [0, 60],
        ),
    ],
)
def test_edges(column: Column, starts: list[int]) -> None:
    assert make_bins(column).starts.tolist() == starts


def test_quantiles_are_measured_elsewhere() -> None:
    column = IntegerColumn(min=10, max=99, bins="quantiles")
    with pytest.raises(SchemaError, match="must be measured within the budget first"):
        make_bins(column)
    assert column.find_starts([50, 20.5, 50, -3, 99, 200]) == [0, 11, 40, 89]
    times = DatetimeColumn(min="2020-01-01", max="2020-12-31", resolution="day", bins="quantiles")
    cuts: list[Any] = [datetime(2020, 1, 3, 5), "2020-01-05", np.datetime64("2020-01-07")]
    assert times.find_starts(cuts) == [0, 2, 4, 6]


@pytest.mark.parametrize("starts", [[], [1], [0, 0], [0, 5, 3], [0, 10]])
def test_impossible_bins_are_refused(starts: list[int]) -> None:
    with pytest.raises(ValueError, match="bins must start at 0"):
        Bins(np.array(starts, np.int64), 10, nullable=False)
