"""What holds for all column types: missing values, learning, and one code for each value."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError
from tests.data.columns.round_trips import catch_message, encode, round_trip

from sundog.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    ContinuousColumn,
    DatetimeColumn,
    IntegerColumn,
    time_parsing,
)
from sundog.errors import SchemaError

# --- what holds for all of them ---


def make_columns(**more: Any) -> list[Column]:
    return [
        CategoricalColumn(values=("a", "rest"), undeclared="other", other="rest", **more),
        BooleanColumn(**more),
        IntegerColumn(min=0, max=9, out_of_bounds="clamp", **more),
        ContinuousColumn(min=0, max=9, out_of_bounds="clamp", **more),
        DatetimeColumn(min="2020-01-01", max="2020-12-31", out_of_bounds="clamp", **more),
    ]


@pytest.mark.parametrize("column", make_columns(nullable=True), ids=lambda column: str(column.type))
def test_one_extreme_record_changes_nothing_for_the_others(column: Column) -> None:
    usual = column.decode(np.arange(2))
    extreme = {"categorical": "never seen", "boolean": True, "datetime": datetime(9999, 1, 1)}.get(column.type, 1e18)
    before = column.model_dump_json()
    alone = encode(column, usual)
    joined = encode(column, pa.array([*usual.to_pylist(), extreme, None]))
    assert joined[:2].tolist() == alone.tolist()
    assert joined.dtype == alone.dtype == column.dtype
    assert joined.max() == column.null_code == column.size - 1
    assert column.model_dump_json() == before


@pytest.mark.parametrize("column", [*make_columns(), *make_columns(nullable=True)], ids=lambda column: str(column.type))
def test_nothing_and_only_nulls(column: Column) -> None:
    assert encode(column, pa.array([], pa.string())).tolist() == []
    assert encode(column, pa.chunked_array([], pa.string())).tolist() == []
    assert column.decode(np.array([], np.uint8)).to_pylist() == []
    nothing = (
        pa.nulls(2),
        np.array([None, None]),
        np.array([np.nan, np.nan]),
        pa.nulls(2, pa.string()).dictionary_encode(),
    )
    for values in nothing:
        if column.nullable:
            assert round_trip(column, values) == [None, None]
        else:
            assert "row 1 is empty" in catch_message(column, values)


def test_codes_outside_are_a_bug_not_a_value() -> None:
    with pytest.raises(ValueError, match="integer codes must lie in 0 … 9"):
        IntegerColumn(min=0, max=9).decode([10])


def test_scalars_refuse_arrays() -> None:
    column = IntegerColumn(min=0, max=9)
    assert "not one value a record" in catch_message(column, np.zeros((2, 2)))
    assert "not one value a record" in catch_message(column, pa.array([[1], [2]]))
    assert "holds bytes that are not UTF-8 text" in catch_message(column, pa.array([b"\xff"]))


# --- learning ---


def test_a_column_to_be_learned_is_completed_and_then_forgiving() -> None:
    age = IntegerColumn(learn=True)
    assert not age.complete
    assert "must be learned first" in catch_message(age, [3])
    learned = age.replace(min=0, max=9)
    assert learned.complete
    assert learned.learn
    assert encode(learned, [-4, 12]).tolist() == [0, 9]
    assert ContinuousColumn(learn=True).replace(min=0, max=1).resolution == 1e-6
    born = DatetimeColumn(learn=True, resolution="day").replace(min=date(2020, 1, 1), max="2020-01-31")
    assert born.size == 31
    with pytest.raises(SchemaError, match=r"integer column: max \(0\) is below min \(9\); swap them"):
        age.replace(min=9, max=0)


def test_learned_categories_have_a_place_for_the_rest() -> None:
    job = CategoricalColumn(learn=True)
    assert not job.complete
    learned = job.complete_with(["a", "b"])
    assert learned.values == ("a", "b", "other")
    assert encode(learned, ["b", "c"]).tolist() == [1, 2]
    assert CategoricalColumn(learn=True).complete_with([1, 2]).values == ("1", "2", "other")
    assert CategoricalColumn(learn=True, other="-1").complete_with([1, 2]).values == ("1", "2", "-1")


@pytest.mark.parametrize("other", [-1, 2.5, True])
def test_the_rest_of_learned_categories_is_text_like_them(other: Any) -> None:
    with pytest.raises(ValidationError, match="must be text; quote it"):
        CategoricalColumn(learn=True, other=other)


def test_a_column_is_frozen() -> None:
    with pytest.raises(ValidationError):
        IntegerColumn(min=0, max=9).min = 3


# --- one value, one code, whatever holds it ---


ONES: list[Any] = [1, 1.0, True, Decimal("1.00"), np.float32(1), np.int8(1), np.bool_(True), Fraction(1)]


@pytest.mark.parametrize(
    "column",
    [
        CategoricalColumn(values=("0", "1")),
        CategoricalColumn(values=("0.0", "1.0")),
        CategoricalColumn(values=("False", "True")),
        CategoricalColumn(values=(0, 1)),
        CategoricalColumn(values=(0.5, 1.0)),
        CategoricalColumn(values=(False, True)),
        BooleanColumn(),
        IntegerColumn(min=0, max=9),
    ],
)
def test_numbers_are_what_they_are(column: Any) -> None:
    assert column.encode(ONES, where="t").tolist() == [1] * len(ONES)
    for one in ONES:
        assert column.encode(np.array([one]), where="t").tolist() == [1]


@pytest.mark.parametrize("text", ["0.50", "0.5", ".5", "5e-1"])
def test_a_category_that_spells_a_number(text: str) -> None:
    column = CategoricalColumn(values=("x", text))
    values = [0.5, Decimal("0.5"), Decimal("0.5000")]
    assert column.encode(values, where="t").tolist() == [1, 1, 1]
    assert column.encode(pa.array(values[1:]), where="t").tolist() == [1, 1]
    assert column.encode([text], where="t").tolist() == [1]


def test_a_code_is_not_a_number() -> None:
    column = CategoricalColumn(values=("01234", "o"), undeclared="other", other="o")
    assert column.encode(["01234", "1234", 1234], where="t").tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "column", [IntegerColumn(min=0, max=2**60), CategoricalColumn(values=("a", "o"), undeclared="other", other="o")]
)
def test_floats_that_lost_their_last_digits_are_refused(column: Any) -> None:
    assert "may have lost its last digits; give the column as integers or text" in catch_message(column, [2.0**53])
    assert "may have lost its last digits" in catch_message(column, np.array([2.0**53]))


def test_booleans_beside_spellings_that_say_otherwise() -> None:
    column = BooleanColumn(true="2", false="1")
    assert column.encode([2, 1, "2"], where="t").tolist() == [1, 0, 1]
    assert "True is ambiguous with the declared spellings 2 and 1" in catch_message(column, [True])


def test_a_30th_of_february_changes_no_other_day() -> None:
    micros, _, bad = time_parsing.parse_iso(pa.array(["2020-02-28", "2020-02-30", "2020-03-01"]))
    assert bad.tolist() == [False, True, False]
    assert (micros[2] - micros[0]) // 86_400_000_000 == 2
