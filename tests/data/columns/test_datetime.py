"""Datetime columns: resolutions, timezones, formats, and what is refused or clamped."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.columns.round_trips import catch_message, encode, round_trip, with_nulls

from sundog.data.columns import DatetimeColumn

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
