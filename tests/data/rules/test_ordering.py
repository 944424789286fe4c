"""`a <= b`: numbers, times, nulls, and what rounding does afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from tests.data.rules.material import day, every_record, only, rules_of, schema_of, values_of, whole

from sundog.data.rules import Ordering
from sundog.errors import SchemaError


@pytest.mark.parametrize("text", ["a <= b", "a < b", "b >= a", "b > a"])
def test_it_compares_values_and_not_codes(text: str) -> None:
    schema = schema_of({"a": whole(3, 8), "b": whole(0, 9, step=2, nullable=True)}, text)
    codes = every_record(schema)
    strict = len(text.split()[1]) == 1
    expected = [b is None or (a < b if strict else a <= b) for a, b in values_of(schema, codes)]
    assert only(schema.bind_rules()).holds(codes).tolist() == expected


def test_times_of_different_resolutions_compare() -> None:
    hours = {"type": "datetime", "min": "2020-01-01", "max": "2020-01-04", "resolution": "hour", "nullable": True}
    schema = schema_of({"a": day(high="2020-01-05"), "b": hours}, "a < b")
    codes = every_record(schema)
    expected = [b is None or a < b for a, b in values_of(schema, codes)]
    assert only(schema.bind_rules()).holds(codes).tolist() == expected


def test_whole_numbers_beyond_float64_compare_exactly() -> None:
    far = 2**62
    schema = schema_of({"a": whole(far, far + 3), "b": whole(far + 1, far + 2)}, "a < b")
    codes = every_record(schema)
    assert only(schema.bind_rules()).holds(codes).tolist() == [a < b for a, b in values_of(schema, codes)]


def test_float32_does_not_break_it() -> None:
    """Both are 0.1, and in float32 the bound of one is above 0.1 and that of the other below it."""
    low = {"type": "continuous", "min": 0.1, "max": 1, "resolution": 0.1, "dtype": "float32"}
    high = {"type": "continuous", "min": 0, "max": 0.1, "resolution": 0.1, "dtype": "float32"}
    schema = schema_of({"a": low, "b": high}, "a <= b")
    codes = every_record(schema)
    held = only(schema.bind_rules()).holds(codes)
    columns = schema.scalars
    frame = {name: columns[name].to_series(codes[name][held]) for name in columns}
    assert (frame["a"] <= frame["b"]).all()
    assert not (columns["a"].to_series([0]) <= columns["b"].to_series([1])).all()  # what would have come out


@pytest.mark.parametrize(
    ("columns", "text", "problem"),
    [
        ({"a": whole(5, 9), "b": whole(0, 4)}, "a <= b", "'a' begins at 5, and 'b' ends at 4"),
        ({"a": whole(0, 4), "b": whole(0, 0)}, "a < b", "'a' begins at 0, and 'b' ends at 0"),
        ({"a": whole(), "b": day()}, "a <= b", "'a' holds numbers and 'b' times, which do not compare"),
        ({"a": day(timezone="Europe/Paris"), "b": day()}, "a <= b", "times with a timezone and 'b' times"),
        ({"a": whole(), "b": {"type": "boolean"}}, "a <= b", "column 'b' is boolean; name a column of numbers"),
        ({"a": whole()}, "a <= a", "compares column 'a' with itself"),
        ({"a": whole(), "b": {"type": "integer", "learn": True}}, "a <= b", "column 'b' is to be learned"),
        ({"a": whole(), "b": {"type": "image", "shape": [2, 2]}}, "a <= b", "column 'b' holds images"),
        (
            {"a": day(), "b": day(resolution="hour", format="%d.%m.%Y")},
            "a <= b",
            "format of column 'b' is coarser than its resolution",
        ),
    ],
)
def test_what_does_not_compare_is_refused(columns: dict[str, object], text: str, problem: str) -> None:
    with pytest.raises(SchemaError, match=r"^schema: rule 1 \(") as error:
        schema_of(columns, text)
    assert problem in str(error.value)


def test_a_circle_of_comparisons_is_refused() -> None:
    columns = {name: whole() for name in "abc"}
    with pytest.raises(SchemaError, match="are each to be below the other"):
        schema_of(columns, "a <= b", "b <= c", "c <= a")
    assert len(rules_of(columns, "a <= b", "b <= c", "a <= c").rules) == 3


def test_names_in_quotes_are_written_back() -> None:
    rule = Ordering(low="first day", high="last-day", strict=True)
    assert rule.to_dict() == '"first day" < "last-day"'
    columns = {"first day": whole(), "last-day": whole()}
    assert schema_of(columns, rule.to_dict()).rules == (rule,)
    assert schema_of(columns, "first day < last-day").rules == (rule,)


def test_a_numpy_array_comes_out_for_no_records() -> None:
    held = only(rules_of({"a": whole(), "b": whole()}, "a <= b")).holds({"a": np.zeros(0, int), "b": np.zeros(0, int)})
    assert held.shape == (0,)
