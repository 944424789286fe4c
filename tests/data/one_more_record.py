"""The material of the tests for rule 4: columns with records, hostile records, and the property itself."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from tests.data.containers import Container

from sundog.data.bin_refinement import _drop_binned_codes
from sundog.data.columns import OrderedColumn
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.data.schema_learning import prepare
from sundog.errors import DataError


@dataclass(frozen=True)
class Case:
    """A column and its records."""

    column: dict[str, Any]
    records: list[Any]
    nulls: tuple[str, ...] = ("",)
    labelled: bool = True  # whether there is another column `k`

    @cached_property
    def bare(self) -> Case:
        """The case without another column."""
        return replace(self, labelled=False)

    @cached_property
    def schema(self) -> Schema:
        """The schema that declares the column."""
        beside = {"k": {"type": "integer", "min": 0, "max": 999}} if self.labelled else {}
        return Schema.from_dict({"nulls": list(self.nulls), "columns": {"x": self.column, **beside}})


# --- columns -------------------------------------------------------------------------------------------------------

BERLIN = {"type": "datetime", "min": "2019-01-01", "max": "2021-12-31", "timezone": "Europe/Berlin", "nullable": True}
WALL = {"type": "datetime", "min": "2019-01-01", "max": "2021-12-31", "out_of_bounds": "clamp", "nullable": True}
DAYS = [date(2020, 1, 2), date(2020, 3, 4), date(2020, 3, 4)]
TIMES = [datetime(2020, 1, 2, 3, 30), datetime(2020, 7, 4), datetime(2020, 7, 5, 12, 0, 0, 250)]
ZONED = [time.replace(tzinfo=timezone(timedelta(hours=2))) for time in TIMES]
WHOLE = {"type": "integer", "min": 0, "max": 9, "out_of_bounds": "clamp", "nullable": True}
REAL = {"type": "continuous", "min": 0, "max": 9, "resolution": 0.1, "out_of_bounds": "clamp", "nullable": True}
LEARNED = {"type": "categorical", "learn": True, "nullable": True}


def declare_values(*values: Any, other: Any, kind: str = "categorical") -> dict[str, Any]:
    """Return a column of these values, and one for all others."""
    return {"type": kind, "values": [*values, other], "undeclared": "other", "other": other, "nullable": True}


SCALARS = {
    "text, numbers": Case(declare_values("1", "2", other="o"), [1, 2, 1]),
    "text, floats": Case(declare_values("1", "2.5", other="o"), [1.0, 2.5, 1.0]),
    "text, texts": Case(declare_values("1", "2.0", "01", other="o"), ["1", "2.0", "01"]),
    "text, decimals": Case(declare_values("0.5", "0.25", other="o"), [Decimal("0.5"), Decimal("0.2"), Decimal("0.5")]),
    "text, spelled twice": Case(declare_values("1", "1.0", "True", "x", other="o"), [1.0, 1.0]),
    "text, spelled twice and refused": Case(
        {"type": "categorical", "values": ["1", "1.0", "True", "x"], "nullable": True}, [True]
    ),
    "text, spelled otherwise": Case(declare_values("1.0", "false", other="o"), [1, 0]),
    "text, intervals": Case(declare_values("(0, 1]", "(0.0, 1.0]", other="o"), [pd.Interval(0, 1)]),
    "text, booleans": Case(declare_values("True", "False", other="o"), [True, False, True]),
    "text, days": Case(declare_values("2020-01-02", "2020-03-04", other="o"), DAYS),
    "whole numbers": Case(declare_values(1, 2, other=-1, kind="ordinal"), [1, 2, 2]),
    "whole numbers, gaps": Case(declare_values(1, 2, other=-1), [1.0, float("nan")]),
    "whole numbers, booleans": Case(declare_values(1, 0, other=-1), [True, False]),
    "real numbers": Case(declare_values(0.5, 2.0, other=-1.0), [0.5, 2.0, 0.5]),
    "truths": Case({"type": "categorical", "values": [True, False], "nullable": True}, [True, False, True]),
    "truths, numbers": Case(
        {"type": "categorical", "values": [True, False], "undeclared": "other", "other": False}, [1, 1]
    ),
    "boolean": Case({"type": "boolean", "nullable": True}, [True, False, False]),
    "boolean, numbers": Case({"type": "boolean", "true": "1", "false": "2", "nullable": True}, [1, 2, 2]),
    "boolean, reversed": Case({"type": "boolean", "true": "2", "false": "1", "nullable": True}, [1.0, 1.0]),
    "boolean, exchanged": Case({"type": "boolean", "true": "False", "false": "True", "nullable": True}, [True]),
    "boolean, nulls": Case({"type": "boolean", "nullable": True}, [True, False], nulls=("", "False", "1.0")),
    "integer": Case(WHOLE, [1, 7, 3]),
    "integer, nulls": Case(WHOLE, [1, 7, 3], nulls=("", "7")),
    "integer, nulls and floats": Case(WHOLE, [1.0, 7.0], nulls=("", "7")),
    "integer, nulls and booleans": Case(WHOLE, [True, False], nulls=("", "1")),
    "integer, beyond 64 bits": Case(WHOLE, [2**63, 7]),
    "integer, rounded": Case({**WHOLE, "max": 2**60 - 1}, [2**60 - 3, 7]),
    "integer, texts": Case(WHOLE, ["1", "7.0", " 3"]),
    "integer, long": Case({**WHOLE, "max": 2**60}, [2**53 + 1, 7, 3]),
    "continuous": Case(REAL, [0.15, 7.0, 0.5]),
    "continuous, short": Case(REAL, [np.float32(0.15), np.float32(0.35)]),
    "continuous, decimals": Case(REAL, [Decimal("0.15"), Decimal("0.35")]),
    "integer, format": Case({**WHOLE, "max": 9999, "format": "1.234"}, ["1.234", "12"]),
    "continuous, format": Case({**REAL, "format": "1.234,5"}, ["1,5", "2"]),
    "continuous, format and numbers": Case({**REAL, "format": "1.234,5"}, [1.5, 2.0]),
    "datetime": Case(WALL, TIMES),
    "datetime, days": Case({**WALL, "resolution": "day"}, DAYS),
    "datetime, texts": Case(WALL, ["2020-01-02 10:00", "2020-07-04T05:06:07", "2020-02-29"]),
    "datetime, format": Case({**WALL, "format": "%d.%m.%Y"}, ["02.01.2020", "04.07.2020"]),
    "datetime, format and times": Case({**WALL, "format": "%d.%m.%Y"}, TIMES),
    "datetime, local": Case(BERLIN, TIMES),
    "datetime, zoned": Case(BERLIN, ZONED),
    "datetime, offsets": Case(BERLIN, ["2020-01-02T10:00+05:00", "2020-07-04T05:06:07", "2020-02-29T00:00Z"]),
    "learned numbers": Case(LEARNED, [1, 2, 1]),
    "learned texts": Case(LEARNED, ["1", "b", "b"]),
    "learned decimals": Case(LEARNED, [Decimal("0.5"), Decimal("0.5")]),
    "learned range": Case({"type": "integer", "learn": True, "nullable": True}, [1, 2, 70]),
    "learned reals": Case({"type": "continuous", "learn": True, "nullable": True}, [1.5, 2.25, 70.0]),
    "learned days": Case({"type": "datetime", "learn": True, "nullable": True}, TIMES),
    "quantiles": Case({**WHOLE, "bins": "quantiles"}, [1, 7, 3]),
    "refined": Case({**WHOLE, "max": 9999, "special": [-1], "min": -1, "bins": "refined"}, [1, 7, -1, 7]),
    "refined reals": Case({**REAL, "max": 999, "special": [0.5], "bins": "refined"}, [0.15, 7.0, 0.5]),
    "refined times": Case({**BERLIN, "bins": "refined"}, TIMES),
}

SETS = {
    "numbers": Case({"type": "set", "universe": [1, 2, 3], "max_size": 3, "undeclared": "drop"}, [[1], [2, 3], []]),
    "texts": Case(
        {"type": "set", "universe": ["1", "tea", "milk"], "max_size": 2, "undeclared": "drop"}, [["tea"], ["1", "milk"]]
    ),
    "spaces": Case(
        {"type": "set", "universe": ["whole milk", "tea"], "max_size": 2, "undeclared": "drop"}, [["tea", "whole milk"]]
    ),
}
GRIDS = {
    "image": Case({"type": "image", "shape": [1, 2], "levels": 256}, [[0, 255], [7, 3]]),
    "series": Case({**REAL, "type": "series", "length": 2}, [[0.15, 0.35], [5.0, 9.0]]),
}

# --- hostile records ------------------------------------------------------------------------------------------

NOTHINGS: list[Any] = [None, float("nan"), pd.NA, pd.NaT, Decimal("NaN"), "", "NA", "nan"]
TEXTS: list[Any] = ["x", "1", "1.0", " 1", "1e400", "2020-02-30", "2020-13-01T00:00", "2021-01-01T00:00-08:00", "7"]
SPOILED: list[Any] = ['"', 'a"b', '"a', 'b"', "a\nb", "a\r1,1", "a\r\n", "\0", "\ufeff1", "1,2", "\u2028", "\x1a", "\f"]
NUMBERS: list[Any] = [
    *(0, 1, -1, 1.5, 0.1, -0.0, True, False, 300, 2**53 + 1, 2**63, 2**70, -(2**70), 1e300, float("inf")),
    *(
        Decimal("2.250"),
        Decimal("0.500000000000000000000000001"),
        Decimal("1E+5"),
        Decimal("-Infinity"),
        Fraction(1, 3),
    ),
    *(np.float32(0.1), np.float16(1), np.int8(1), np.uint64(2**64 - 1), np.bool_(True), np.longdouble(0.1)),
]
MOMENTS: list[Any] = [
    *(date(2020, 5, 6), datetime(2020, 5, 6, 7, 8), datetime(2020, 5, 6, 7, tzinfo=timezone(timedelta(hours=9)))),
    *(datetime(2020, 5, 6, tzinfo=UTC), datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9))), time(10), timedelta(1)),
    *(pd.Timestamp("2020-05-06 07:08:09.123456789"), pd.Timestamp("2020-05-06", tz="Asia/Tokyo")),
    *(np.datetime64("2020-05-06"), np.datetime64(2**40, "s"), np.datetime64("NaT"), np.timedelta64(1, "s")),
]
OBJECTS: list[Any] = [b"1", b"\xff", [1], (1, "x"), {1}, {"a": 1}, 1j, uuid.UUID(int=7), pd.Period("2020-05"), "\ud800"]
OBJECTS += [pd.Interval(0.5, 2), pd.Interval(0, 1, closed="left")]
HOSTILE = [*NOTHINGS, *TEXTS, *SPOILED, *NUMBERS, *MOMENTS, *OBJECTS]
FOR_FILES = [None, "", "x", "1", "1.0", "3", *SPOILED, 1, 1.5, True, 2**53 + 1, 2**63, Decimal("2.250"), [1]]
FOR_FILES += MOMENTS[:4]

HOSTILE_SETS: list[Any] = [
    *(["x", 1], [1, 1.5], [1.0], [Decimal("1.00")], [True], [None], [float("nan")], [b"1"], [[1]], [{}], [2**70]),
    *([1e300], {"tea"}, frozenset([1]), (1, 2), np.array([1.0]), np.array(["tea"]), "1 2", "tea|whole milk", "", None),
    *([date(2020, 1, 1), 1], ["a b"], [1, 1, 1], ["\0"], [" 1"], float("nan"), pd.NA, b"1", 1, {"a": 1}),
]
HOSTILE_GRIDS: list[Any] = [
    *([1.0, 2.0], [1.5, 2.5], [1, None], [float("nan"), 1], [1], [1, 2, 3], [], ["1", "2"], [True, False], [1e300, 0]),
    *([[1, 2]], [[1], [2]], np.array([1, 2], np.uint8), np.array([0.5, 1], np.float16), None, 1, "1 2", {"a": 1}),
    *([1j, 2], [2**70, 1], [Decimal("0.1"), 1], [300, 0], [-1, 0], [0.1 + 0.2, 0.35]),
]


# --- the property --------------------------------------------------------------------------------------------------


def read_outcome(source: Any, schema: Schema) -> tuple[int, Any]:
    """Return the number of records and their codes; for a learned column, the input of the mechanism."""
    raw, column = read(source, schema), schema.columns["x"]
    bins = column.model_dump().get("bins")
    if column.complete and bins in (None, "refined"):
        codes = encode(raw, schema).codes["x"]
        if isinstance(column, OrderedColumn) and bins == "refined":
            return raw.count, Counter(_drop_binned_codes(column, codes).tolist())
        return raw.count, codes.toarray() if sparse.issparse(codes) else codes
    found = prepare(raw, schema).values["x"]
    return raw.count, found if isinstance(found, Counter) else Counter(found.tolist())


_KNOWN: dict[tuple[int, int], Any] = {}


def recall_outcome(case: Case, container: Container, path: Path) -> tuple[int, Any]:
    """Return the outcome without any other record; raise LookupError if there is none."""
    key = (id(case), id(container))
    if key not in _KNOWN:
        try:
            _KNOWN[key] = (case, read_outcome(container(case.records, path), case.schema))
        except Exception as error:
            _KNOWN[key] = (case, error)
    found: Any = _KNOWN[key][1]
    if isinstance(found, Exception):
        raise LookupError from found
    return found  # type: ignore[no-any-return]


def find_change_by_order(
    records: list[Any], order: list[int], case: Case, container: Container, path: Path
) -> str | None:
    """Return what another order of the records changes, except their order; None if nothing.

    Raise LookupError if the container cannot hold them.
    """
    found: list[Any] = []
    for each in (records, [records[place] for place in order]):
        try:
            source = container(each, path)
        except Exception as error:
            raise LookupError from error
        try:
            found.append(read_outcome(source, case.schema))
        except DataError:
            found.append(None)
    before, after = found
    if before is None or after is None:
        return None if before is after else "one of the two orders is refused"
    ordered = before[1] if isinstance(before[1], Counter) else before[1][order]
    same = ordered == after[1] if isinstance(ordered, Counter) else np.array_equal(ordered, after[1])
    return None if before[0] == after[0] and same else f"{before} became {after}"


def find_change_by_record(record: Any, place: int, case: Case, container: Container, path: Path) -> str | None:
    """Return what one more record changes about the others; None if nothing, or if the data are refused with it.

    Raise LookupError if the records cannot be read without it, or the container cannot hold it.
    """
    before, alone = recall_outcome(case, container, path)
    try:
        joined = container([*case.records[:place], record, *case.records[place:]], path)
    except Exception as error:
        raise LookupError from error
    try:
        after, codes = read_outcome(joined, case.schema)
    except DataError:
        return None
    if after != before + 1:
        return f"{before} records and one more are {after}"
    if isinstance(alone, Counter):
        return None if not alone - codes and (codes - alone).total() <= 1 else f"{alone} became {codes}"
    rest = np.delete(codes, place, axis=0)
    return None if np.array_equal(rest, alone) else f"{alone.tolist()} became {rest.tolist()}"
