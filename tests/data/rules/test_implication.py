"""`when` and `then`, in the language of `--where`."""

from __future__ import annotations

from typing import Any

import pytest
from tests.data.rules.material import every_record, listed, only, schema_of, values_of, whole

from sundog.errors import SchemaError

COLUMNS = {"age": whole(15, 20), "job": listed("none", "cook", "nurse"), "pay": whole(0, 3, nullable=True)}


def test_then_holds_wherever_when_does() -> None:
    schema = schema_of(COLUMNS, {"when": "age < 18", "then": ["job = none", "pay ="]})
    codes = every_record(schema)
    expected = [age >= 18 or (job == "none" and pay is None) for age, job, pay in values_of(schema, codes)]
    assert only(schema.bind_rules()).holds(codes).tolist() == expected


def test_several_conditions_hold_together() -> None:
    rule = {"when": ["age >= 16", "age < 18", "job in cook, nurse"], "then": "pay <= 1"}
    schema = schema_of(COLUMNS, rule)
    codes = every_record(schema)
    expected = [
        not (16 <= age < 18 and job != "none") or (pay is not None and pay <= 1)
        for age, job, pay in values_of(schema, codes)
    ]
    assert only(schema.bind_rules()).holds(codes).tolist() == expected
    assert schema.to_dict()["rules"] == [rule]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"when": "age < 18", "then": "jobb = none"}, "there is no column 'jobb'; did you mean 'job'?"),
        ({"when": "age < 18", "then": "job = cokk"}, "cokk' is not a declared value"),
        ({"when": "age < 10", "then": "job = none"}, "no value of 'age' satisfies age < 10"),
        ({"when": ["age < 17", "age > 18"], "then": "job = none"}, "no value of 'age' satisfies age < 17 and age > 18"),
        ({"when": "job < cook", "then": "age = 15"}, "column 'job' has no order"),
        ({"when": "age < 18"}, "then is missing; add it"),
        ({"when": "age < 18", "than": "job = none"}, "unknown key 'than'; did you mean 'then'?"),
        ({"when": 3, "then": "job = none"}, "when must be a list such as [a, b], got 3"),
        ({"when": [], "then": "job = none"}, "when must be a list of at least one"),
    ],
)
def test_conditions_that_do_not_fit_are_refused(rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError) as error:
        schema_of(COLUMNS, rule)
    assert problem in str(error.value)
    assert "where" not in str(error.value)
