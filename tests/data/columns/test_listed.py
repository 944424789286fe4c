"""Categorical, ordinal and boolean columns: spellings, types and undeclared values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.columns.round_trips import INT64, catch_message, encode, round_trip, with_nulls

from sundog.data.columns import BooleanColumn, CategoricalColumn, OrdinalColumn

VALUES = (
    st.lists(st.text(max_size=5), min_size=1, unique=True)
    | st.lists(INT64, min_size=1, unique=True)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, unique=True)
    | st.permutations([True, False])
)


@given(VALUES, st.data())
def test_categories_survive_in_spelling_type_and_order(values: list[Any], data: st.DataObject) -> None:
    column = CategoricalColumn(values=tuple(values), nullable=True)
    picked = data.draw(with_nulls(st.sampled_from(values)))
    kept = round_trip(column, pa.array(picked))
    assert kept == picked
    assert [type(value) for value in kept] == [type(value) for value in picked]
    assert column.decode(np.arange(len(values))).to_pylist() == values
    spelled = pa.array([None if value is None else str(value) for value in picked], pa.string())
    assert encode(column, spelled).tolist() == encode(column, pa.array(picked)).tolist()


def test_spellings_are_exact() -> None:
    column = OrdinalColumn(values=("1", "01", "1.0", " a", "a", "A", "yes", "no", "True"))
    assert round_trip(column, column.values) == list(column.values or ())
    assert column.decode([1]).type == pa.string()
    assert CategoricalColumn(values=(1, 2)).decode([1]).type == pa.int64()
    assert CategoricalColumn(values=(1, 2.5)).decode([1]).type == pa.float64()
    assert CategoricalColumn(values=(True, False)).decode([1]).type == pa.bool_()


def test_whole_numbers_that_became_floats_are_still_their_category() -> None:
    column = CategoricalColumn(values=("1", "2"), nullable=True)
    assert encode(column, np.array([1.0, np.nan, 2.0])).tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("values", "value", "says"),
    [
        (
            ["Private", "Public"],
            " Private",
            "' Private' is not a declared value, but 'Private' is; check stray whitespace",
        ),
        (["Private", "Public"], "private", "check upper and lower case"),
        (["Private", "Public"], "Privat", "did you mean 'Private'?"),
        (["a", "b"], "zzz", "add it to values, fix the row or declare `undeclared: other`"),
        ([1, 2], "01x", "'01x' is not a declared value"),
        ([1, 2], 12, "12 is not a declared value; add it to values, fix the row or declare `undeclared: other`"),
        ([1, 2], 1.5, "1.5 is not a declared value"),
        ([True, False], "maybe", "'maybe' is not a declared value"),
        (["a"], "x" * 500 + "\n", "…"),
        (["a"], None, "is empty but the column is not nullable"),
    ],
)
def test_undeclared_categories_are_refused(values: list[Any], value: object, says: str) -> None:
    assert says in catch_message(CategoricalColumn(values=tuple(values)), [values[0], value])


def test_undeclared_categories_can_go_to_a_declared_one() -> None:
    column = CategoricalColumn(values=("a", "rest"), undeclared="other", other="rest")
    assert encode(column, ["a", "q", "rest"]).tolist() == [0, 1, 1]


@given(with_nulls(st.booleans()))
def test_booleans_survive(values: list[Any]) -> None:
    column = BooleanColumn(nullable=True)
    assert round_trip(column, pa.array(values, pa.bool_())) == values
    for spell in (str, lambda value: "yes" if value else "no", lambda value: "1" if value else "0"):
        text = [None if value is None else spell(value) for value in values]
        assert round_trip(column, pa.array(text, pa.string())) == values


def test_booleans_are_understood_and_refused() -> None:
    assert encode(BooleanColumn(), np.array([0, 1])).tolist() == [0, 1]
    assert encode(BooleanColumn(nullable=True), np.array([0.0, 1.0, np.nan])).tolist() == [0, 1, 2]
    assert encode(BooleanColumn(true="alive", false="dead"), ["dead", " Alive"]).tolist() == [0, 1]
    assert encode(BooleanColumn(true="0", false="1"), ["0", "1"]).tolist() == [1, 0]
    assert "'maybe' is neither true nor false" in catch_message(BooleanColumn(), ["maybe"])
    assert "2 is neither true nor false" in catch_message(BooleanColumn(), [2])
    assert "is empty" in catch_message(BooleanColumn(), [True, None])
