"""Continuous columns: rounding to the resolution, exact decimals, and what is refused or clamped."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.columns.round_trips import FLOAT, catch_message, encode, round_trip, with_nulls

from sundog.data.columns import ContinuousColumn, SeriesColumn


def test_a_last_step_below_rounding_makes_no_second_code_for_the_bound() -> None:
    column = ContinuousColumn(min=-2.7e-306, max=999999.9999999999, resolution=1 / 3)
    codes = [column.lattice_size - 2, column.lattice_size - 1]
    assert encode(column, column.decode(codes)).tolist() == codes


@given(FLOAT, st.floats(1e-3, 1e6), st.sampled_from([1e-6, 0.01, 0.1, 0.25, 1 / 3, 1.0, 7.5]), st.data())
def test_continuous_values_move_at_most_half_a_resolution(
    low: float, width: float, res: float, data: st.DataObject
) -> None:
    column = ContinuousColumn(min=low, max=low + width, resolution=res, nullable=True)
    values = data.draw(with_nulls(st.floats(low, low + width)))
    kept = round_trip(column, pa.array(values, pa.float64()))
    for before, after in zip(values, kept, strict=True):
        assert (before is None) == (after is None)
        if before is not None:
            assert abs(after - before) <= res / 2 + 4 * math.ulp(abs(low) + width)
            assert low <= after <= low + width
    # values on the lattice stay there, also as text
    assert round_trip(column, pa.array(kept, pa.float64())) == kept
    assert round_trip(column, pa.array([None if value is None else repr(value) for value in kept], pa.string())) == kept


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**5), st.integers(0, 6))
def test_decimals_come_back_as_they_are_written(low: int, code: int, digits: int) -> None:
    scale = 10**digits
    column = ContinuousColumn(min=low / scale, max=(low + 10**5) / scale, resolution=1 / scale)
    value = float(Decimal(low + code) / scale)
    assert encode(column, [value]).tolist() == [code]
    assert column.decode([code]).to_pylist() == [value]


def test_decimals_are_clean() -> None:
    column = ContinuousColumn(min=0, max=1, resolution=0.01)
    assert column.size == 101
    assert [repr(value) for value in column.decode([7, 29, 57, 100]).to_pylist()] == ["0.07", "0.29", "0.57", "1.0"]


def test_min_and_max_are_always_on_the_lattice() -> None:
    column = ContinuousColumn(min=0.05, max=0.32, resolution=0.1)
    assert column.decode(np.arange(column.size)).to_pylist() == [0.05, 0.15, 0.25, 0.32]
    assert encode(column, [0.28, 0.29, 0.32, 0.05]).tolist() == [2, 3, 3, 0]


@pytest.mark.parametrize(("low", "high", "resolution"), [(0, 1, 1e-6), (0, 999, 1e-4), (17, 90, 1e-5), (3, 3, 1.0)])
def test_the_default_resolution_is_a_millionth_of_the_range(low: float, high: float, resolution: float) -> None:
    assert ContinuousColumn(min=low, max=high).resolution == resolution
    assert SeriesColumn(length=2, min=low, max=high).resolution == resolution


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (1.5, "1.5 is above max (1.0)"),
        ("-1", "'-1' is below min (0.0)"),
        (math.inf, "inf is infinite"),
        ("Infinity", "'Infinity' is infinite"),
        ("1,5", "'1,5' is not a number"),
        ("nan", "'nan' is not a number"),
        ("", "'' is not a number"),
        (None, "is empty but the column is not nullable"),
        (math.nan, "is empty but the column is not nullable"),
        (date(2020, 1, 1), "2020-01-01 is not a number"),
    ],
)
def test_continuous_refuses(value: object, says: str) -> None:
    assert says in catch_message(ContinuousColumn(min=0, max=1), [value])


@pytest.mark.parametrize(("value", "code"), [(-5, 0), (math.inf, 10), ("-inf", 0), ("1e400", 10), (Decimal("0.3"), 3)])
def test_continuous_clamps(value: object, code: int) -> None:
    assert encode(ContinuousColumn(min=0, max=1, resolution=0.1, out_of_bounds="clamp"), [value]).tolist() == [code]
