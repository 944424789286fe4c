"""Combinations of values that are listed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.data.rules.material import every_record, listed, only, schema_of, values_of, whole

from sundog.errors import SchemaError

COLUMNS = {
    "city": listed("Lyon", "Nice", "Rome", nullable=True),
    "country": listed("FR", "IT", nullable=True),
    "zone": whole(1, 4),
}
ALLOWED = [["Lyon", "FR", 1], ["Nice", "FR", 2], ["Rome", "IT", 1], [None, None, 4], ["Lyon", "FR", 3]]


def test_only_what_is_listed_is_allowed() -> None:
    schema = schema_of(COLUMNS, {"columns": list(COLUMNS), "allowed": ALLOWED})
    codes = every_record(schema)
    assert only(schema.bind_rules()).holds(codes).tolist() == [list(row) in ALLOWED for row in values_of(schema, codes)]


def test_many_columns_of_many_values_do_not_overflow() -> None:
    columns = {f"c{place}": whole(0, 2**62) for place in range(16)}
    rng = np.random.default_rng(0)
    allowed = rng.integers(0, 2**62, (500, 16))
    schema = schema_of(columns, {"columns": list(columns), "allowed": allowed.tolist()})
    bound = only(schema.bind_rules())
    assert bound.holds(dict(zip(columns, allowed.T, strict=True))).all()
    other = allowed.copy()
    other[np.arange(500), rng.integers(0, 16, 500)] = allowed[np.roll(np.arange(500), 1), 0]  # of another row
    assert not bound.holds(dict(zip(columns, other.T, strict=True))).any()


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"columns": ["city"], "allowed": [["Lyon"]]}, "is about one column; name two or more"),
        ({"columns": ["city", "city"], "allowed": [["Lyon", "Lyon"]]}, "names column 'city' twice"),
        ({"columns": ["city", "zone"], "allowed": []}, "allowed must be a list of at least one"),
        ({"columns": ["city", "zone"], "allowed": [["Lyon"]]}, "combination 1 has 1 values for 2 columns"),
        ({"columns": ["city", "zone"], "allowed": [["Lyon", None]]}, "column 'zone' is not nullable"),
        ({"columns": ["city", "zonne"], "allowed": [["Lyon", 1]]}, "no column 'zonne'; did you mean 'zone'?"),
        ({"columns": ["city", "zone"], "allowd": [["Lyon", 1]]}, "unknown key 'allowd'; did you mean 'allowed'?"),
    ],
)
def test_lists_that_do_not_fit_are_refused(rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError) as error:
        schema_of(COLUMNS, rule)
    assert problem in str(error.value)
