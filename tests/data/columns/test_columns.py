"""Every column type: values survive a round trip, and others are refused with a message of one line."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import sparse

from sundog.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    ContinuousColumn,
    DatetimeColumn,
    ImageColumn,
    IntegerColumn,
    OrdinalColumn,
    SeriesColumn,
    SetColumn,
    time_parsing,
)
from sundog.errors import DataError, SchemaError

WHERE = "t.csv: column 'c'"
INT64 = st.integers(-(2**63), 2**63 - 1)
FLOAT = st.floats(-1e9, 1e9)


def encode(column: Column, values: Any) -> Any:
    return column.encode(values, where=WHERE)


def round_trip(column: Column, values: Any) -> list[Any]:
    codes = encode(column, values)
    assert codes.dtype == column.dtype
    result: list[Any] = column.decode(codes).to_pylist()
    return result


def catch_message(column: Column, values: Any) -> str:
    with pytest.raises(DataError) as caught:
        encode(column, values)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{WHERE}: ")
    return message.removeprefix(f"{WHERE}: ")


def with_nulls(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | strategy, min_size=1, max_size=20)


# ---- integers


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


# ---- continuous


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


# ---- categories and booleans

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
        (["Private", "Public"], "private", "mind upper and lower case"),
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


# ---- datetimes

RESOLUTIONS = {
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}
FIRST, LAST = datetime(1850, 1, 1), datetime(2100, 12, 31, 23, 59, 59, 999999)


def floor_time(time: datetime, step: timedelta) -> datetime:
    return time - (time - datetime(1, 1, 1)) % step


@given(st.sampled_from(list(RESOLUTIONS)), with_nulls(st.datetimes(FIRST, LAST)))
def test_times_survive_at_their_resolution(resolution: Any, values: list[Any]) -> None:
    column = DatetimeColumn(min=FIRST.isoformat(), max=LAST.isoformat(), resolution=resolution, nullable=True)
    expected = [None if value is None else floor_time(value, RESOLUTIONS[resolution]) for value in values]
    assert round_trip(column, pa.array(values, pa.timestamp("us"))) == expected
    assert (
        round_trip(column, pa.array([None if v is None else v.isoformat(" ") for v in values], pa.string())) == expected
    )
    assert round_trip(column, column.spell(pa.array(expected, pa.timestamp("us")))) == expected


@given(
    st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "UTC"]),
    st.sampled_from(["second", "microsecond"]),
    st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1)), min_size=1),
)
def test_instants_survive_in_any_timezone(zone: str, resolution: Any, values: list[datetime]) -> None:
    column = DatetimeColumn(min="1970-01-01", max="2038-01-01", timezone=zone, resolution=resolution)
    instants = [floor_time(value, RESOLUTIONS[resolution]).replace(tzinfo=UTC) for value in values]
    typed = pa.array(instants, pa.timestamp("us", "America/New_York"))
    for written in (typed, pa.array([value.isoformat() for value in instants])):
        # In Python, the two hours that a clock shows twice are unequal to any time of another zone.
        assert [time.astimezone(UTC) for time in round_trip(column, written)] == instants
    decoded = column.decode(encode(column, typed))
    assert decoded.type == pa.timestamp("us", zone)
    assert encode(column, column.spell(decoded)).tolist() == encode(column, typed).tolist()


@given(
    st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Pacific/Apia"]),
    st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1)), min_size=1),
)
def test_days_are_local_days(zone: str, values: list[datetime]) -> None:
    column = DatetimeColumn(min="1970-01-01", max="2038-01-01", timezone=zone, resolution="day")
    instants = [value.replace(tzinfo=UTC) for value in values]
    decoded = column.decode(encode(column, pa.array(instants, pa.timestamp("us", "UTC"))))
    local = [value.astimezone(ZoneInfo(zone)).date() for value in instants]
    assert [value.date() for value in decoded.to_pylist()] == local
    assert encode(column, decoded).tolist() == encode(column, column.spell(decoded)).tolist()
    assert encode(column, pa.array([day.isoformat() for day in local])).tolist() == encode(column, decoded).tolist()


def test_hours_follow_the_local_clock() -> None:
    column = DatetimeColumn(min="2020-01-01T10:30", max="2020-02-01", timezone="Asia/Kolkata", resolution="hour")
    assert column.decode([1]).to_pylist()[0].isoformat() == "2020-01-01T11:00:00+05:30"


def test_an_hour_that_the_clock_shows_twice_keeps_its_offset() -> None:
    column = DatetimeColumn(min="2020-01-01", max="2021-01-01", timezone="Europe/Berlin")
    twice = ["2020-10-25T02:30:00+02:00", "2020-10-25T02:30:00+01:00"]
    assert [value.isoformat() for value in round_trip(column, twice)] == twice
    assert column.spell(column.decode(encode(column, twice))).to_pylist() == [
        text.replace("0:00+0", "0:00+0") for text in ["2020-10-25T02:30:00+0200", "2020-10-25T02:30:00+0100"]
    ]
    assert encode(column, ["2020-10-25 02:30"]).tolist() == encode(column, twice[:1]).tolist()
    assert "does not exist in Europe/Berlin, where the clocks skip it" in catch_message(column, ["2020-03-29 02:30"])


@pytest.mark.parametrize(
    ("text_format", "text"),
    [
        ("%d.%m.%Y", "03.01.1920"),
        ("%d.%m.%Y", "3.1.1920"),
        ("%Y%m%d", "19200103"),
        ("%d %b %Y", "03 Jan 1920"),
        ("%m/%d/%Y %I:%M %p", "01/03/1920 12:00 AM"),
    ],
)
def test_formats(text_format: str, text: str) -> None:
    column = DatetimeColumn(min="1920-01-01", max="2020-12-31", resolution="day", format=text_format)
    assert encode(column, [text]).tolist() == [2]
    assert encode(column, column.spell(column.decode([2]))).tolist() == [2]
    assert text_format in catch_message(column, [text, "31.02.1920"])
    assert "is above max" in catch_message(column, [text.replace("1920", "2021")])


@pytest.mark.parametrize(
    "values",
    [
        np.array(["1969-12-31T23:59:59.999999999"], "datetime64[ns]"),
        np.array(["1969-12-31T23:59:59"], "datetime64[s]"),
        np.array(["1969-12-31"], "datetime64[D]"),
        pa.array([date(1969, 12, 31)], pa.date64()),
        pa.array([datetime(1969, 12, 31, 23, 59, 59, 999000)], pa.timestamp("ms")),
        np.array([date(1969, 12, 31)], object),
        ["1969-12-31T23:59"],
    ],
)
def test_times_before_1970_are_cut_down_not_up(values: Any) -> None:
    column = DatetimeColumn(min="1969-01-01", max="1971-01-01", resolution="day")
    assert round_trip(column, values) == [datetime(1969, 12, 31)]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("2021-06-01", "'2021-06-01' is above max (2020-12-31)"),
        (datetime(1919, 1, 1), "1919-01-01 is below min (1920-01-01)"),
        (np.datetime64(2**62, "s"), "is above max (2020-12-31)"),
        ("2020-02-30", "'2020-02-30' is not a time written in ISO 8601; declare its `format`"),
        ("yesterday", "is not a time"),
        ("", "is not a time"),
        (17, "17 is not a time"),
        ("2020-01-01T00:00:00Z", "has a timezone but none is declared; declare `timezone`"),
        (datetime(2020, 1, 1, tzinfo=UTC), "has a timezone but none is declared"),
        (None, "is empty"),
        (np.datetime64("NaT", "s"), "is empty"),
    ],
)
def test_datetimes_refuse(value: object, says: str) -> None:
    values = np.array([value]) if isinstance(value, np.datetime64) else [value]
    assert says in catch_message(DatetimeColumn(min="1920-01-01", max="2020-12-31"), values)


def test_datetimes_clamp() -> None:
    column = DatetimeColumn(min="1920-01-01", max="2020-12-31", out_of_bounds="clamp", resolution="day")
    assert round_trip(column, ["0001-01-01", "9999-12-31"]) == [datetime(1920, 1, 1), datetime(2020, 12, 31)]


# ---- arrays


@given(
    st.sampled_from([(3, 4), (3, 4, 2), (3, 4, 1)]), st.sampled_from([2, 16, 256, 1000]), st.integers(0, 5), st.data()
)
def test_images_survive(shape: tuple[int, ...], levels: int, count: int, data: st.DataObject) -> None:
    column = ImageColumn(shape=shape, levels=levels)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    images = rng.integers(0, levels, (count, *shape))
    for given_as in (
        images,
        images.astype(float),
        images.reshape(count, math.prod(shape)),
        pa.array(images.tolist(), pa.list_(pa.list_(pa.int64() if len(shape) == 2 else pa.list_(pa.int64())))),
    ):
        codes = encode(column, given_as)
        assert codes.dtype == column.dtype
        assert (column.decode(codes) == images).all()


TONES = [(levels, tones) for levels in range(2, 65) for tones in range(2, levels + 1)]
TONES += [(256, tones) for tones in (2, 3, 4, 7, 8, 16, 100, 128, 129, 200, 254, 255, 256)] + [(2**16, 2**16 - 1)]


def test_every_tone_is_a_pixel_that_is_this_tone_again() -> None:
    for levels, tones in TONES:
        column = ImageColumn.model_construct(shape=(1, tones), levels=levels, tones=tones)
        codes = np.arange(tones).astype(column.dtype).reshape(1, 1, tones)
        pixels = column.decode(codes)
        assert (pixels[0, 0, 0], pixels[0, 0, -1]) == (0, levels - 1)
        np.testing.assert_array_equal(encode(column, pixels), codes, err_msg=f"{tones} tones of {levels} levels")


def test_images_refuse() -> None:
    column = ImageColumn(shape=(2, 2), levels=16)
    good = np.zeros((2, 2, 2))
    for bad in (16, -1, 0.5, np.nan, np.inf):
        wrong = good.copy()
        wrong[1, 0, 1] = bad
        assert f"row 2: pixel {float(bad)} is not a whole number in 0 … 15" in catch_message(column, wrong)
    assert "its records have shape [3, 3], the schema says [2, 2]" in catch_message(column, np.zeros((1, 3, 3)))
    assert "give it an array of numbers" in catch_message(column, np.array([["a", "b"]]))
    assert "row 2 has 3 numbers, the schema says 4" in catch_message(column, pa.array([[1, 2, 3, 4], [1, 2, 3]]))


@given(st.integers(1, 6), st.sampled_from([0.01, 0.5, 3.0]), st.integers(0, 2**32))
def test_series_survive(length: int, resolution: float, seed: int) -> None:
    column = SeriesColumn(length=length, min=-10, max=10, resolution=resolution, nullable=True)
    values = np.random.default_rng(seed).uniform(-10, 10, (7, length))
    values[0, 0] = np.nan
    codes = encode(column, values)
    kept = column.decode(codes)
    assert codes.shape == kept.shape == (7, length)
    assert np.nanmax(np.abs(kept - values)) <= resolution / 2 + 1e-9
    assert (np.isnan(kept) == np.isnan(values)).all()
    assert (encode(column, kept) == codes).all()
    assert (encode(column, pa.array(list(values))) == codes).all()


def test_series_refuse_and_clamp() -> None:
    column = SeriesColumn(length=2, min=0, max=1, resolution=0.1)
    assert "row 2 has a gap but the column is not nullable" in catch_message(column, np.array([[0, 1], [0, np.nan]]))
    assert "row 1: 2.0 is above max (1.0)" in catch_message(column, np.array([[0, 2.0]]))
    assert "row 1: inf is above max" in catch_message(column, np.array([[0, np.inf]]))
    assert "its records have shape [3]" in catch_message(column, np.zeros((1, 3)))
    clamping = column.model_copy(update={"out_of_bounds": "clamp"})
    assert encode(clamping, np.array([[-np.inf, 7]])).tolist() == [[0, 10]]


@given(st.lists(st.lists(st.integers(0, 6))), st.integers(1, 7))
def test_sets_survive_up_to_their_cap(sets: list[list[int]], max_size: int) -> None:
    numbered = SetColumn(universe=7, max_size=max_size)
    named = SetColumn(universe=tuple(f"i{item}" for item in range(7)), max_size=max_size)
    expected = np.zeros((len(sets), 7), int)
    for row, items in enumerate(sets):
        expected[row, sorted(set(items))[:max_size]] = 1
    codes = encode(numbered, pa.array(sets, pa.list_(pa.int64())))
    assert codes.dtype == np.uint8
    assert (codes.toarray() == expected).all()
    assert (numbered.decode(codes).toarray() == expected).all()
    names = [[f"i{item}" for item in items] for items in sets]
    lines = pa.array([" ".join(items) for items in names], pa.string())
    for given_as in (pa.array(names, pa.list_(pa.string())), lines):
        assert (encode(named, given_as).toarray() == expected).all()
    full = np.zeros((len(sets), 7), int)
    for row, items in enumerate(sets):
        full[row, items] = 1
    assert (encode(numbered, sparse.csr_array(full)).toarray() == expected).all()
    assert (encode(numbered, full).toarray() == expected).all()


def test_sets_refuse_and_drop() -> None:
    column = SetColumn(universe=("a", "b"), max_size=2)
    assert "row 2: item 'c' is not declared; add it to the universe" in catch_message(column, [["a"], ["b", "c"]])
    assert "row 2: item None is not declared" in catch_message(column, [["a"], ["b", None]])
    assert "row 1 is not a set; give it a list instead" in catch_message(column, [1, 2])
    assert "row 2 is missing; write an empty set instead" in catch_message(column, [["a"], None])
    assert "row 1: item 2 is not among the 2 declared" in catch_message(column, sparse.csr_array([[0, 0, 1]]))
    dropping = SetColumn(universe=("a", "b"), max_size=2, undeclared="drop")
    assert encode(dropping, [["c", "b"], ["c"]]).toarray().tolist() == [[0, 1], [0, 0]]
    assert encode(dropping, sparse.csr_array([[0, 1, 1]])).toarray().tolist() == [[0, 1]]


# ---- what holds for all of them


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


# ---- learning


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


# --- one value, one code, whatever holds it


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
