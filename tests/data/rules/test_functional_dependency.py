"""A column that follows from another by a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.data.rules.material import every_record, listed, only, rules_of, schema_of, values_of, whole

from sundog.data.code_set import CodeSet
from sundog.errors import SchemaError

COLUMNS = {"school": listed("none", "high", "uni"), "years": whole(0, 20)}
RULE = {"column": "years", "from": "school", "table": {"none": 0, "high": 12, "uni": 12}}


def test_the_table_is_looked_up() -> None:
    schema = schema_of(COLUMNS, RULE)
    rules = schema.bind_rules()
    codes, known = rules.derive({"school": np.array([0, 1, 2, 0])})
    assert known is None
    assert values_of(schema, codes) == [("none", 0), ("high", 12), ("uni", 12), ("none", 0)]
    assert not rules.rejects
    every = every_record(schema)
    expected = [
        (school, years) in {("none", 0), ("high", 12), ("uni", 12)} for school, years in values_of(schema, every)
    ]
    assert only(rules).holds(every).tolist() == expected


def test_a_condition_on_the_column_is_one_on_its_source() -> None:
    rules = rules_of(COLUMNS, RULE)
    assert rules.translate({"years": CodeSet.between(10, 20)}) == ({"school": CodeSet.of([1, 2])}, {})
    assert rules.translate({"years": CodeSet.between(10, 20), "school": CodeSet.of([0, 2])}) == (
        {"school": CodeSet.of([2])},
        {},
    )
    assert rules.translate({"years": CodeSet.of([3])}) == ({"school": CodeSet(())}, {})


def test_a_missing_source_gives_a_missing_value_unless_the_table_says_otherwise() -> None:
    columns = {"school": listed("none", "high", nullable=True), "years": whole(0, 20, nullable=True)}
    table: dict[Any, Any] = {"none": 0, "high": 12}
    for rule, missing in ((table, None), ({**table, None: 7}, 7), ({**table, "none": None, "": 5}, 5)):
        schema = schema_of(columns, {**RULE, "table": rule})
        codes, _ = schema.bind_rules().derive({"school": np.array([0, 1, 2])})
        assert values_of(schema, codes) == [("none", rule["none"]), ("high", 12), (None, missing)]


@pytest.mark.parametrize(
    ("source", "table"),
    [
        ({"type": "boolean", "true": "ja", "false": "nein"}, {"ja": 1, "nein": 2}),
        ({"type": "boolean"}, {True: 1, False: 2}),
        (whole(1, 2), {1: 1, 2: 2}),
        (whole(1000, 1001, format="1,234"), {"1,000": 1, "1001": 2}),
        ({"type": "datetime", "min": "2020-01-01", "max": "2020-01-02", "resolution": "day", "format": "%d.%m.%Y"},
         {"2020-01-01": 1, "2020-01-02": 2}),
    ],
    ids=["spelled", "boolean", "whole", "format", "times"],
)  # fmt: skip
def test_values_are_written_as_columns_read_them(source: dict[str, Any], table: dict[Any, Any]) -> None:
    schema = schema_of({"a": source, "b": whole(0, 5)}, {"column": "b", "from": "a", "table": table})
    codes, _ = schema.bind_rules().derive({"a": np.array([0, 1])})
    assert sorted(b for _, b in values_of(schema, codes)) == [1, 2]
    again = type(schema).from_dict(schema.to_dict())
    assert again == schema


def test_files_have_a_mapping_and_json_has_pairs() -> None:
    schema = schema_of({"a": whole(1, 2), "b": whole()}, {"column": "b", "from": "a", "table": {1: 3, 2: 4}})
    assert schema.to_dict()["rules"] == [{"column": "b", "from": "a", "table": [[1, 3], [2, 4]]}]
    assert "{column: b, from: a, table: {1: 3, 2: 4}}" in schema.to_yaml()


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({**RULE, "table": {"none": 0}}, "its table lacks high and 1 more of column 'school'; list every value"),
        ({**RULE, "table": {"none": 0, "high": 1, "unni": 2}}, "column 'school': 'unni' is not a declared value"),
        ({**RULE, "table": {"none": 0, "high": 1, "uni": 99}}, "column 'years': 99 is above max (20)"),
        ({**RULE, "table": {"none": 0, "high": 1, "uni": None}}, "column 'years' is not nullable"),
        ({**RULE, "table": [["none", 0], ["high", 1], ["uni", 2], ["uni", 3]]}, "table lists uni twice"),
        ({**RULE, "from": "years"}, "derives column 'years' from itself"),
        ({**RULE, "from": "schol"}, "there is no column 'schol'; did you mean 'school'?"),
        ({**RULE, "table": {}}, "table must be a list of at least one"),
        ({**RULE, "table": {"none": [1]}}, "table must be"),
        ({"column": "years", "from": "school"}, "table is missing; add it"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit_are_refused(rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError) as error:
        schema_of(COLUMNS, rule)
    assert problem in str(error.value)
    assert str(error.value).startswith("schema: rule 1")


def test_a_source_with_too_many_values_is_refused() -> None:
    columns = {"a": whole(0, 10**6), "b": whole()}
    with pytest.raises(SchemaError, match="has more than 65,536 values"):
        schema_of(columns, {"column": "b", "from": "a", "table": {0: 0}})
