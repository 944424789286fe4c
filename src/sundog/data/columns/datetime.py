"""Points in time between two bounds, kept to a declared resolution."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from sundog.data.columns import clock
from sundog.data.columns.arrow import Mask, shown
from sundog.data.columns.ordered import OrderedColumn, beyond
from sundog.data.columns.values import value_of

MICROSECONDS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}


_LONGEST_FORMAT = 100  # characters; a pattern is made of them


class DatetimeColumn(OrderedColumn):
    """A time, cut down to its `resolution` as calendars do: 18:59 belongs to its hour and to its day.

    Text is ISO 8601, or as `format` says (`%d.%m.%Y`). With a `timezone`, times without an offset are local
    ones, and days are local days; without one, times with an offset are refused.

    >>> born = DatetimeColumn(min="1920-01-01", max="2020-12-31", resolution="day")
    >>> born.encode(pa.array(["1920-01-03"]), where="people.csv: column 'born'").tolist()
    [2]
    >>> born.decode([2]).to_pylist()
    [datetime.datetime(1920, 1, 3, 0, 0)]
    """

    type: Literal["datetime"] = "datetime"
    timezone: str | None = None
    min: str | None = None
    max: str | None = None
    resolution: Literal["day", "hour", "minute", "second", "millisecond", "microsecond"] = "second"
    format: str | None = None
    edges: Annotated[tuple[str, ...], Field(fail_fast=True, min_length=1, max_length=1024)] | None = None
    special: Annotated[tuple[str, ...], Field(min_length=1, max_length=1024)] | None = None

    @field_validator("timezone")
    @classmethod
    def _is_a_timezone(cls, name: str | None) -> str | None:
        if name == "localtime":
            raise ValueError("timezone 'localtime' is another one on each machine; use a name such as 'Europe/Berlin'")
        if name is not None:
            try:  # Python knows some that Arrow does not (posixrules, Factory)
                ZoneInfo(name)
                clock.to_wall(np.zeros(1, np.int64), name)
            except (ValueError, OSError, KeyError, pa.ArrowException):
                raise ValueError(f"timezone {shown(name)} is not known; use a name such as 'Europe/Berlin'") from None
        return name

    @field_validator("min", "max", "edges", "special", mode="before")
    @classmethod
    def _spelled_out(cls, value: Any) -> Any:
        """Dates and times are kept as ISO text, which is how the schema file shows them."""
        if isinstance(value, (list, tuple)):
            return tuple(cls._spelled_out(item) for item in value)
        return value.isoformat() if isinstance(value, (date, datetime)) else value

    @model_validator(mode="after")
    def _has_a_format(self) -> Self:
        if self.format is not None and (len(self.format) > _LONGEST_FORMAT or not clock.is_format(self.format)):
            raise ValueError(f"format {shown(self.format)} is not one; write it as '%Y-%m-%d %H:%M:%S'")
        if self.format is not None and "%z" in self.format and self.timezone is None:
            raise ValueError("format has an offset (%z) but no timezone is declared; declare `timezone`")
        return self

    @property
    def lattice_size(self) -> int:
        """The number of days, hours, … from min to max."""
        return int(self._ends[1] - self._origin) // self._unit + 1

    def first_code(self, value: Any) -> int:
        """The code of an ISO time, cut down to the resolution."""
        return self.first_codes([value])[0]

    def first_codes(self, values: Sequence[Any]) -> list[int]:
        """The codes of ISO times."""
        return [(position - self._origin) // self._unit for position in self.positions(values)]

    @property
    def _unit(self) -> int:
        return MICROSECONDS[self.resolution]

    @property
    def _origin(self) -> int:
        """Min on the clock that codes count on, cut down to a whole (local) day, hour, … ."""
        if self.min is None or self.max is None:
            raise ValueError("the bounds of this column must be learned first")
        return int(self._ends[0])

    @property
    def _counts_local_days(self) -> bool:
        # Local days are not all 24 hours long, so they are counted on the wall clock; all else counts instants.
        return self.timezone is not None and self.resolution == "day"

    def position(self, value: Any) -> int:
        """An ISO time in microseconds on the clock that codes count on, cut down to the resolution."""
        return self.positions([value])[0]

    def positions(self, values: Sequence[Any]) -> list[int]:
        """ISO times in microseconds on the clock that codes count on, cut down to the resolution."""
        micros, aware, wall = self._times(values)
        cut = wall % self._unit
        if self.timezone is None or self._counts_local_days:
            ticks = wall - cut
        else:  # a text with an offset tells which of two equal hours is meant
            ticks = np.where(aware, micros - cut, clock.to_instants(wall - cut, self.timezone))
        return [int(tick) for tick in ticks]

    def _is_on_lattice(self, value: Any) -> bool:
        return bool(self._times([value])[2][0] % self._unit == 0)

    def _times(self, values: Sequence[Any]) -> tuple[clock.Micros, Mask, clock.Micros]:
        """ISO times in microseconds as they are written, which have an offset, and what the clock on the wall shows."""
        texts = [value.isoformat() if isinstance(value, date) else str(value) for value in values]
        micros, aware, bad = clock.parse_iso(pa.array(texts, pa.string()))
        if bad.any():
            first = shown(values[int(bad.argmax())])
            raise ValueError(f"{first} is not a time; write it as 2020-12-31 or 2020-12-31T23:59:59")
        if not aware.any():
            return micros, aware, micros
        if self.timezone is None:
            first = shown(values[int(aware.argmax())])
            raise ValueError(f"{first} has an offset but no timezone is declared; declare `timezone`")
        return micros, aware, np.where(aware, clock.to_wall(micros, self.timezone), micros)

    def spell(self, values: Any) -> Any:
        """Decoded times as text, in the declared `format` or ISO 8601, such that `encode` gives the same codes."""
        if self.format is not None:
            return clock.spell(values, self.format)
        offset = "%z" if self.timezone is not None and self.resolution != "day" else ""
        unit = {"millisecond": "ms", "microsecond": "us"}.get(self.resolution, "s")
        return clock.spell(values, ("%Y-%m-%d" if self.resolution == "day" else "%Y-%m-%dT%H:%M:%S") + offset, unit)

    def _codes(self, values: Any) -> tuple[NDArray[Any], Mask]:
        micros, aware, bad = clock.read(values, self.format)
        ticks, refused = self._on_clock(micros, aware)
        codes = (ticks - self._origin) // self._unit
        codes, outside = self._bounded(codes, codes < 0, codes >= self.lattice_size)
        return codes, bad | refused | outside

    def _on_clock(self, micros: clock.Micros, aware: Mask) -> tuple[clock.Micros, Mask]:
        """Times on the clock that codes count on, and which of them that clock does not know."""
        if self.timezone is None:
            return micros, aware
        if self._counts_local_days:
            return np.where(aware, clock.to_wall(micros, self.timezone), micros), np.zeros(len(micros), bool)
        instants = clock.to_instants(micros, self.timezone)
        skipped = ~aware & (clock.to_wall(instants, self.timezone) != micros)
        return np.where(aware, micros, instants), skipped

    def _values(self, codes: NDArray[Any], null: Mask | None) -> Any:
        micros = self._origin + codes.astype(np.int64) * self._unit
        if self.timezone is not None and self._counts_local_days:
            micros = clock.to_instants(micros, self.timezone)
        return pa.array(micros, pa.timestamp("us", self.timezone), mask=null)

    def _refusal(self, one: Any) -> str:
        value = value_of(one)
        micros, aware, bad = clock.read(one, self.format)
        if bad[0]:
            expected, fix = (f"as {self.format}", "fix it") if self.format else ("in ISO 8601", "declare its `format`")
            return (
                f"{shown(value)} is not a time written {expected}; {fix}, or list it under `nulls` if it means missing"
            )
        if aware[0] and self.timezone is None:
            return f"{shown(value)} has a timezone but none is declared; declare `timezone`"
        ticks, skipped = self._on_clock(micros, aware)
        if skipped[0]:
            return f"{shown(value)} was skipped by the clocks of {self.timezone}; write it with its offset"
        return beyond(value, below=bool(ticks[0] < self._origin), low=self.min, high=self.max)
