"""Points in time between two bounds, kept to a declared resolution; `time_parsing.py` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal, Self
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from sundog.data.columns import time_parsing
from sundog.data.columns.arrow import Mask, to_numpy
from sundog.data.columns.containers import unwrap_one
from sundog.data.columns.forms import Unknown
from sundog.data.columns.frame_dtypes import TEXT, TIME
from sundog.data.columns.ordered import OrderedColumn, describe_out_of_bounds
from sundog.data.validation_errors import format_value

MICROSECONDS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_LONGEST_FORMAT = 100  # characters; the format becomes a regular expression
_EARLIEST, _LATEST, _YEARS = "1900-01-01", "2100-01-01", 200  # the range in which dates are learned
_TICKS = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}  # microseconds a unit, at least 1
_NS_LIMIT = 2**63 // 1000  # microseconds that fit 64 bits of nanoseconds


class DatetimeColumn(OrderedColumn):
    """A time, rounded down to its `resolution` as calendars do: 18:59 belongs to its hour and to its day.

    Text is ISO 8601, or as `format` says (`%d.%m.%Y`). With a `timezone`, times without an offset are local
    ones, and days are local days; without one, times with an offset are refused.

    >>> born = DatetimeColumn(min="1920-01-01", max="2020-12-31", resolution="day")
    >>> born.encode(pa.array(["1920-01-03"]), where="people.csv: column 'born'").tolist()
    [2]
    >>> born.decode([2]).to_pylist()
    [datetime.datetime(1920, 1, 3, 0, 0)]
    """

    unknown: ClassVar[Literal[Unknown.EXTENT]] = Unknown.EXTENT
    extent_intervals: ClassVar[int] = _YEARS

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
            raise ValueError("timezone 'localtime' differs between machines; use a name such as 'Europe/Berlin'")
        if name is not None:
            try:  # Python knows some names that Arrow does not (posixrules, Factory)
                ZoneInfo(name)
                time_parsing.to_wall(np.zeros(1, np.int64), name)
            except (ValueError, OSError, KeyError, pa.ArrowException):
                raise ValueError(
                    f"timezone {format_value(name)} is not known; use a name such as 'Europe/Berlin'"
                ) from None
        return name

    @field_validator("min", "max", "edges", "special", mode="before")
    @classmethod
    def _spell_out(cls, value: Any) -> Any:
        """Return dates and times as ISO text, as the schema file shows them."""
        if isinstance(value, (list, tuple)):
            return tuple(cls._spell_out(item) for item in value)
        return value.isoformat() if isinstance(value, (date, datetime)) else value

    @model_validator(mode="after")
    def _has_a_format(self) -> Self:
        if self.format is not None and (len(self.format) > _LONGEST_FORMAT or not time_parsing.is_format(self.format)):
            raise ValueError(
                f"format {format_value(self.format)} is not a time format; write it as '%Y-%m-%d %H:%M:%S'"
            )
        if self.format is not None and "%z" in self.format and self.timezone is None:
            raise ValueError("format has an offset (%z) but no timezone is declared; declare `timezone`")
        return self

    @property
    def lattice_size(self) -> int:
        """The number of days, hours, … from min to max."""
        return int(self._ends[1] - self._origin) // self._unit + 1

    def find_first_code(self, value: Any) -> int:
        """Return the code of an ISO time, rounded down to the resolution."""
        return self.find_first_codes([value])[0]

    def find_first_codes(self, values: Sequence[Any]) -> list[int]:
        """Return the codes of ISO times."""
        return [(position - self._origin) // self._unit for position in self.to_positions(values)]

    @property
    def _unit(self) -> int:
        return MICROSECONDS[self.resolution]

    @property
    def _origin(self) -> int:
        """Min on the clock of the codes, rounded down to a whole (local) day, hour, …."""
        if self.min is None or self.max is None:
            raise ValueError("the bounds of this column must be learned first")
        return int(self._ends[0])

    @property
    def _counts_local_days(self) -> bool:
        # Local days are not all 24 hours long, so they are counted on the wall clock; other resolutions count instants.
        return self.timezone is not None and self.resolution == "day"

    def to_position(self, value: Any) -> int:
        """Return an ISO time in microseconds on the clock of the codes, rounded down to the resolution."""
        return self.to_positions([value])[0]

    def to_positions(self, values: Sequence[Any]) -> list[int]:
        """Return ISO times in microseconds on the clock of the codes, rounded down to the resolution."""
        micros, aware, wall = self._parse_times(values)
        cut = wall % self._unit
        if self.timezone is None or self._counts_local_days:
            ticks = wall - cut
        else:  # an offset says which of two equal hours is meant
            ticks = np.where(aware, micros - cut, time_parsing.to_instants(wall - cut, self.timezone))
        return [int(tick) for tick in ticks]

    def _is_on_lattice(self, value: Any) -> bool:
        return bool(self._parse_times([value])[2][0] % self._unit == 0)

    def _parse_times(self, values: Sequence[Any]) -> tuple[time_parsing.Micros, Mask, time_parsing.Micros]:
        """Return ISO times in microseconds as written, a mask of those with an offset, and their wall times."""
        texts = [value.isoformat() if isinstance(value, date) else str(value) for value in values]
        micros, aware, bad = time_parsing.parse_iso(pa.array(texts, pa.string()))
        if bad.any():
            first = format_value(values[int(bad.argmax())])
            raise ValueError(f"{first} is not a time; write it as 2020-12-31 or 2020-12-31T23:59:59")
        if not aware.any():
            return micros, aware, micros
        if self.timezone is None:
            first = format_value(values[int(aware.argmax())])
            raise ValueError(f"{first} has an offset but no timezone is declared; declare `timezone`")
        return micros, aware, np.where(aware, time_parsing.to_wall(micros, self.timezone), micros)

    def spell(self, values: Any) -> Any:
        """Return decoded times as text in the declared `format` or ISO 8601, which `encode` maps to the same codes."""
        if self.format is not None:
            return time_parsing.spell(values, self.format)
        offset = "%z" if self.timezone is not None and self.resolution != "day" else ""
        unit = {"millisecond": "ms", "microsecond": "us"}.get(self.resolution, "s")
        return time_parsing.spell(
            values, ("%Y-%m-%d" if self.resolution == "day" else "%Y-%m-%dT%H:%M:%S") + offset, unit
        )

    def _shorten(self, values: Any) -> Any:
        return self.spell(values)

    # --- comparing with a time ---

    def list_readings(self) -> list[Self]:
        """Return the column as declared, and also for ISO 8601 if it declares another format."""
        return [self] if self.format is None else [self, self.model_copy(update={"format": None})]

    def parse_bound(self, value: Any) -> Any:
        """Return a time in microseconds; it may lie outside the bounds, or between two values of the column."""
        anytime = {"min": "0001-01-01", "max": "9999-12-31", "resolution": "microsecond"}
        wide = type(self).model_validate({"timezone": self.timezone, "format": self.format, **anytime})
        return wide.decode_number(wide.find_code(value))

    def decode_number(self, code: int) -> Any:
        """Return the time of a code in microseconds."""
        return self.decode([code]).cast(pa.int64())[0].as_py()

    # --- arithmetic, for rules between columns ---

    @property
    def axis(self) -> str:
        """Times with a timezone are instants, those without are what a clock shows; they do not compare."""
        return "times" if self.timezone is None else "times with a timezone"

    @property
    def sum_unit(self) -> str | None:
        """The resolution; local days are not all equally long, so times with a timezone are not added."""
        return self.resolution if self.timezone is None else None

    @property
    def ticks(self) -> int:
        """The microseconds of a day, an hour, … ."""
        return self._unit

    @property
    def rounding(self) -> float:
        """None that a rule may count on: times are cut down, not rounded."""
        return 0.0

    def to_numbers(self, codes: Any, *, framed: bool = False) -> NDArray[Any]:  # noqa: ARG002
        """Return the times in microseconds."""
        return to_numpy(self._decode_array(self._check_codes(codes), None).cast(pa.int64()))

    def from_numbers(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
        """Return the codes of times in microseconds, cut down to the resolution."""
        return self._encode_array(pa.array(numbers, pa.timestamp("us", self.timezone)))

    # --- learning ---

    def to_learning_input(self, values: Any, *, where: str) -> Any:
        """Return the number of the year of each time, counted from 1900."""
        wide = self._two_centuries
        return np.asarray(wide.encode_present(values, where=where) * _YEARS // wide.lattice_size)

    def complete_with(self, answer: Any) -> Self:
        """Return the column with bounds at the start of the first year and the end of the last."""
        wide = self._two_centuries
        first, last = answer
        ends = [
            first * wide.lattice_size // _YEARS,
            min((last + 1) * wide.lattice_size // _YEARS, wide.lattice_size - 1),
        ]
        return self.with_bounds(*(day.date().isoformat() for day in wide.decode(ends).to_pylist()))

    @property
    def _two_centuries(self) -> Self:
        return self.replace(min=_EARLIEST, max=_LATEST, resolution="day", bins=None)

    # --- dtypes and arrays ---

    @property
    def possible_dtypes(self) -> tuple[str, ...]:
        """Times, dates if the resolution is a day, and text."""
        return (*TIME, *(["date"] if self.resolution == "day" and self.timezone is None else []), *TEXT)

    def _find_limit_problem(self, name: str) -> str | None:
        if name not in TIME:
            return None
        unit = TIME[name]
        step = {"millisecond": 10**3, "microsecond": 1}.get(self.resolution, 10**6)
        if step < _TICKS[unit]:
            return f"dtype {name} does not hold {self.resolution}s; use a finer one"
        if unit == "ns" and (
            self.learn or any(abs(_count_micros(bound)) >= _NS_LIMIT for bound in (self.min, self.max))
        ):
            return f"dtype {name} does not hold all times from min to max; use datetime64[us]"
        return None

    def to_arrays(self, codes: Any, null: str) -> dict[str, NDArray[Any]]:
        """Return numpy times, or text with an offset if there is a timezone, which numpy does not support."""
        values = self.decode(codes)
        if self.timezone is None:
            return {"": values.to_numpy(zero_copy_only=False)}
        return {"": np.array(self.spell(values).fill_null(null).to_pylist())}

    def to_json(self, codes: Any) -> list[Any]:
        """Return the times as text."""
        values = self.to_arrow(codes)
        if pa.types.is_temporal(values.type):
            values = self.spell(self.decode(codes))
        found: list[Any] = values.to_pylist()
        return found

    # --- encoding ---

    def _encode_array(self, values: Any) -> tuple[NDArray[Any], Mask]:
        micros, aware, bad = time_parsing.read(values, self.format)
        ticks, refused = self._to_clock(micros, aware)
        codes = (ticks - self._origin) // self._unit
        codes, outside = self._apply_bounds(codes, codes < 0, codes >= self.lattice_size)
        return codes, bad | refused | outside

    def _to_clock(self, micros: time_parsing.Micros, aware: Mask) -> tuple[time_parsing.Micros, Mask]:
        """Return times on the clock of the codes, and a mask of those that do not exist on it."""
        if self.timezone is None:
            return micros, aware
        if self._counts_local_days:
            return np.where(aware, time_parsing.to_wall(micros, self.timezone), micros), np.zeros(len(micros), bool)
        instants = time_parsing.to_instants(micros, self.timezone)
        skipped = ~aware & (time_parsing.to_wall(instants, self.timezone) != micros)
        return np.where(aware, micros, instants), skipped

    def _decode_array(self, codes: NDArray[Any], null: Mask | None) -> Any:
        micros = self._origin + codes.astype(np.int64) * self._unit
        if self.timezone is not None and self._counts_local_days:
            micros = time_parsing.to_instants(micros, self.timezone)
        return pa.array(micros, pa.timestamp("us", self.timezone), mask=null)

    def _explain_refusal(self, one: Any) -> str:
        value = unwrap_one(one)
        micros, aware, bad = time_parsing.read(one, self.format)
        if bad[0]:
            expected, fix = (f"as {self.format}", "fix it") if self.format else ("in ISO 8601", "declare its `format`")
            problem = f"{format_value(value)} is not a time written {expected}"
            return f"{problem}; {fix}, or list it under `nulls` if it means missing"
        if aware[0] and self.timezone is None:
            return f"{format_value(value)} has a timezone but none is declared; declare `timezone`"
        ticks, skipped = self._to_clock(micros, aware)
        if skipped[0]:
            problem = f"{format_value(value)} does not exist in {self.timezone}, where the clocks skip it"
            return f"{problem}; write it with its offset"
        return describe_out_of_bounds(value, below=bool(ticks[0] < self._origin), low=self.min, high=self.max)


def _count_micros(bound: str | None) -> int:
    return int(np.datetime64(str(bound)[:10], "us").astype(np.int64))
