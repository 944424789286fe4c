"""Integer columns: exact values, nearest steps, and what is refused or clamped."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.columns.round_trips import INT64, catch_message, encode, round_trip, with_nulls

from sundog.data.columns import IntegerColumn


@st.composite
def integer_columns(draw: st.DrawFn) -> IntegerColumn:
    low = draw(INT64)
    high = draw(st.integers(low, min(low + 2**63 - 2, 2**63 - 1)))
    return IntegerColumn(min=low, max=high, nullable=True)


@given(st.data())
def test_integers_survive_exactly(data: st.DataObject) -> None:
    column = data.draw(integer_columns())
    values = data.draw(with_nulls(st.integers(column.min, column.max)))
    assert round_trip(column, pa.array(values, pa.int64())) == values
    text = pa.array([None if value is None else str(value) for value in values], pa.string())
    assert round_trip(column, text) == values
    assert round_trip(column, text.dictionary_encode()) == values
    assert round_trip(column, pa.chunked_array([text, text])) == values * 2


@given(st.integers(-(10**6), 10**6), st.integers(0, 1000), st.integers(1, 50), st.data())
def test_an_integer_step_keeps_the_nearest_value(low: int, width: int, step: int, data: st.DataObject) -> None:
    column = IntegerColumn(min=low, max=low + width, step=step)
    values = data.draw(st.lists(st.integers(low, low + width), min_size=1))
    lattice = column.decode(np.arange(column.size)).to_pylist()
    assert lattice == [*range(low, low + width, step), low + width]
    for value, kept in zip(values, round_trip(column, np.array(values)), strict=True):
        assert abs(kept - value) == min(abs(point - value) for point in lattice)


@pytest.mark.parametrize(
    "values",
    [
        np.array([3, 5], np.int8),
        np.array([3, 5], np.uint64),
        np.array([3.0, 5.0]),
        np.array([3.0, 5.0], np.float32),
        np.array(["3", " 5 "]),
        np.array([b"3", b"5"]),
        np.array(["+3", "5.0"]),
        np.array(["3e0", "05"]),
        np.array([3, "5"], object),
        pa.array([Decimal("3.00"), Decimal("5.00")]),
        pa.array(["3", "5"], pa.large_string()),
        pa.array(["3", "5"], pa.string_view()),
        pa.chunked_array([["3"], ["5"]]),
        [3, 5],
    ],
)
def test_whatever_holds_whole_numbers_is_understood(values: Any) -> None:
    assert encode(IntegerColumn(min=0, max=9), values).tolist() == [3, 5]


def test_huge_integers_are_not_rounded_through_floats() -> None:
    column = IntegerColumn(min=0, max=2**63 - 1)
    assert column.size == 2**63
    assert round_trip(column, pa.array(["9223372036854775807", "9007199254740993"])) == [2**63 - 1, 2**53 + 1]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (91, "91 is above max (90)"),
        (16, "16 is below min (17)"),
        ("91", "'91' is above max (90)"),
        ("9" * 30, "is above max (90)"),
        (2**64 - 1, "is above max (90)"),
        (17.5, "17.5 is not a whole number"),
        ("17.5", "'17.5' is not a whole number"),
        (math.inf, "inf is above max (90)"),
        ("-inf", "'-inf' is below min (17)"),
        ("seventeen", "'seventeen' is not a whole number"),
        ("", "'' is not a whole number"),
        ("nan", "'nan' is not a whole number"),
        ("0x11", "'0x11' is not a whole number"),
        ("1_8", "'1_8' is not a whole number"),
        (None, "row 3 is empty but the column is not nullable; declare `nullable: true` or fill it"),
        (math.nan, "row 3 is empty but the column is not nullable"),
        (datetime(2020, 1, 1), "is not a whole number"),
    ],
)
def test_integers_refuse(value: object, says: str) -> None:
    column = IntegerColumn(min=17, max=90)
    good: list[Any] = ["17", "18"] if isinstance(value, str) else [17, 18]
    message = catch_message(
        column, np.array([*good, value], object) if not isinstance(value, datetime) else [value] * 3
    )
    assert says in message
    assert ("row 1" if isinstance(value, datetime) else "row 3") in message
    assert ";" in message, "a message names the fix"


@pytest.mark.parametrize(
    ("value", "code"), [(-5, 0), ("1" * 40, 9), (math.inf, 9), ("-inf", 0), (2**64 - 1, 9), (4, 4)]
)
def test_integers_clamp(value: object, code: int) -> None:
    assert encode(IntegerColumn(min=0, max=9, out_of_bounds="clamp"), [value]).tolist() == [code]


def test_rows_are_counted_across_chunks() -> None:
    assert "row 4:" in catch_message(IntegerColumn(min=0, max=9), pa.chunked_array([["1", "2"], ["3", "10"]]))
