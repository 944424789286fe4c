"""Rules in a schema: how they are read and written, and that strangers' rules cost little."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.data.rules.material import day, listed, schema_of, whole

from sundog.data.rules import Implication, NullTogether, Ordering
from sundog.data.schema import Schema
from sundog.errors import SchemaError

FILE = """\
sundog: 1
columns:
  education: {type: ordinal, values: [none, high, uni]}
  years: {type: integer, min: 0, max: 16}
  rent: {type: integer, min: 0, max: 900}
  food: {type: integer, min: 0, max: 900}
  total: {type: integer, min: 0, max: 1800}
  came: {type: datetime, min: 2020-01-01, max: 2020-12-31, resolution: day}
  left: {type: datetime, min: 2020-01-01, max: 2020-12-31, resolution: day}
  city: {type: categorical, values: [Lyon, Rome]}
  country: {type: categorical, values: [FR, IT]}
  high: {type: integer, min: 0, max: 300, nullable: true}
  low: {type: integer, min: 0, max: 300, nullable: true}
rules:
  - {column: years, from: education, table: {none: 0, high: 12, uni: 16}}
  - total = rent + food
  - came <= left
  - {columns: [city, country], allowed: [[Lyon, FR], [Rome, IT]]}
  - {null_together: [high, low]}
  - {when: city = Rome, then: [rent < 500, 'education in high, uni']}
"""


def test_a_file_reads_and_writes_rules(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(FILE)
    schema = Schema.load(path)
    assert [str(rule) for rule in schema.rules] == [
        "years from education",
        "total = rent + food",
        "came <= left",
        "one of 2 combinations of city, country",
        "high, low missing together",
        "when city = Rome then rent < 500 and education in high, uni",
    ]
    assert schema.to_yaml().partition("rules:")[2] == FILE.partition("rules:")[2]
    schema.save(tmp_path / "b.yaml")
    assert Schema.load(tmp_path / "b.yaml") == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert "when city = Rome" in schema._repr_html_()


def test_rules_stay_when_columns_change() -> None:
    schema = schema_of({"a": whole(), "b": whole()}, "a <= b")
    changed = schema.with_columns({"b": schema.columns["b"].replace(max=20)})
    assert changed.rules == schema.rules
    with pytest.raises(SchemaError, match="no values satisfy it"):
        schema.with_columns({"b": schema.columns["b"].replace(min=-9, max=-5)})


def test_rules_may_be_objects() -> None:
    rules = [
        Ordering(low="a", high="b"),
        NullTogether(null_together=("a", "b")),
        Implication(when=("a < 3",), then=("b > 1",)),
    ]
    columns = {"a": whole(nullable=True), "b": whole(nullable=True)}
    assert Schema.from_dict({"columns": columns, "rules": rules}).rules == tuple(rules)


def test_a_schema_without_rules_says_nothing_of_them() -> None:
    schema = Schema.from_dict({"columns": {"a": whole()}})
    assert "rules" not in schema.to_dict()
    assert "rules" not in schema.to_yaml()
    assert schema.modelled is schema


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("a <= b", "rules must be a list, got 'a <= b'; begin each rule with a dash"),
        ({"a": "b"}, "rules must be a list, got a mapping"),
        ([3], "rule 1: must be text such as a <= b, or a mapping"),
        ([None], "rule 1: must be text such as a <= b, or a mapping"),
        ([{}], "rule 1: unknown key nothing"),
        ([{"wen": "a < 3", "thn": "b > 1"}], "rule 1: unknown key 'wen'; did you mean 'when'?"),
        (["a <= b", "a <= c"], "rule 2: there is no column 'c'"),
    ],
)  # fmt: skip
def test_what_is_no_rule_is_told_in_one_line(rules: Any, problem: str) -> None:
    with pytest.raises(SchemaError) as error:
        Schema.from_dict({"columns": {"a": whole(), "b": whole()}, "rules": rules})
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_a_misspelled_key_of_the_schema_is_named() -> None:
    with pytest.raises(SchemaError, match="unknown key 'rule'; did you mean 'rules'"):
        Schema.from_dict({"columns": {"a": whole()}, "rule": []})


# --- rules of strangers ---

MANY = {f"c{place}": whole(0, 2**40) for place in range(64)}
HOSTILE: dict[str, tuple[dict[str, Any], Any]] = {
    "many rules": (MANY, ["c0 <= c1"] * 10**6),
    "signs": (MANY, ["c0 = " + "-" * 4000] * 200),
    "long text": (MANY, ["c0 <= " + "c1" * 10**6]),
    "large table": (MANY, [{"column": "c1", "from": "c0", "table": [[n, n] for n in range(10**5)]}] * 20),
    "large list": (MANY, [{"columns": ["c0", "c1"], "allowed": [[n, n] for n in range(10**5)]}] * 20),
    "many tables": (
        MANY,
        [{"columns": [f"c{place}", "c63"], "allowed": [[n, n] for n in range(20_000)]} for place in range(60)],
    ),
    "wide list": (MANY, [{"columns": [f"c{n % 64}" for n in range(10**5)], "allowed": [[0]]}]),
    "two ways": (
        {"a": day("1900-01-01", "2100-01-01", format="%d.%m.%Y"), "b": whole()},
        [{"columns": ["a", "b"], "allowed": [["2020-01-01", 0], ["01.01.2020", 1]] * 8000}],
    ),
    "long conditions": (
        {"a": whole(0, 2**40), "b": listed("x")},
        [{"when": f"a in {','.join(map(str, range(n, n + 500)))}", "then": "b = x"} for n in range(200)],
    ),
    "deep": (MANY, [[[[[[]]]]]]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_absurd_rules_cost_little(name: str) -> None:
    columns, rules = HOSTILE[name]
    with pytest.raises(SchemaError) as error:
        Schema.from_dict({"columns": columns, "rules": rules})
    assert len(str(error.value)) < 500


def test_as_much_as_is_allowed_costs_little() -> None:
    """The largest table and list that a schema may have."""
    columns = {"a": whole(0, 16_000), "b": whole(0, 16_000), "c": whole(0, 16_000)}
    table = {"column": "b", "from": "a", "table": [[n, n] for n in range(16_001)]}
    listed_pairs = {"columns": ["a", "c"], "allowed": [[n, n] for n in range(16_000)]}
    assert schema_of(columns, table, listed_pairs).modelled.bind_rules()
    assert schema_of(MANY, *(f"c{n} = " + " + ".join(["c60"] * 60) for n in range(59))).bind_rules()
