"""Columns that are missing together."""

from __future__ import annotations

import pytest
from tests.data.rules.material import every_record, only, schema_of, values_of, whole

from sundog.errors import SchemaError


def test_all_are_missing_or_none() -> None:
    columns = {name: whole(0, 2, nullable=True) for name in "abc"}
    schema = schema_of(columns, {"null_together": ["a", "b", "c"]})
    codes = every_record(schema)
    expected = [[value is None for value in row] in ([True] * 3, [False] * 3) for row in values_of(schema, codes)]
    assert only(schema.bind_rules()).holds(codes).tolist() == expected


@pytest.mark.parametrize(
    ("names", "problem"),
    [(["a", "b"], "column 'b' is never missing"), (["a"], "name two or more"), (["a", "a"], "names column 'a' twice")],
)
def test_columns_that_are_never_missing_are_refused(names: list[str], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        schema_of({"a": whole(nullable=True), "b": whole()}, {"null_together": names})
