"""Rules that are written as text."""

from __future__ import annotations

import pytest

from sundog.data.rules import ColumnSum, Ordering
from sundog.data.rules.rule_text import parse_text
from sundog.data.schema import Schema
from sundog.errors import SchemaError

KNOWN = ["a", "b", "a - b", "a <= b", "x=y", "total cost", "quoted 'name'", "-a"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a<=b", Ordering(low="a", high="b")),
        (" a  >  b ", Ordering(low="b", high="a", strict=True)),
        ("a - b < total cost", Ordering(low="a - b", high="total cost", strict=True)),
        ("total cost = a - b", ColumnSum(column="total cost", terms=(("a - b", True),))),
        ('total cost = "a" - "b"', ColumnSum(column="total cost", terms=(("a", True), ("b", False)))),
        ("'a <= b' <= a", Ordering(low="a <= b", high="a")),
        ('"x=y" = - a', ColumnSum(column="x=y", terms=(("a", False),))),
        ("b = -a", ColumnSum(column="b", terms=(("-a", True),))),
        ("quoted 'name' > a", Ordering(low="a", high="quoted 'name'", strict=True)),
    ],
)
def test_the_longest_name_that_fits_is_meant(text: str, rule: Ordering | ColumnSum) -> None:
    assert parse_text(text, KNOWN) == rule


def test_names_that_would_be_read_as_another_rule_are_refused() -> None:
    columns = {name: {"type": "integer", "min": 0, "max": 9} for name in KNOWN}
    with pytest.raises(SchemaError, match="rule 1: the names of its columns are too much alike"):
        Schema.from_dict({"columns": columns, "rules": ['"total cost" = "a" - "b"']})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a", "'a' is not a rule"),
        ("a <= ", "there is no column ''"),
        ("a <= 3", "there is no column '3'"),
        ("totl cost = a", "there is no column 'totl cost'; did you mean 'total cost'?"),
        ("b = a + totl cost", "did you mean 'total cost'?"),
        ("a = " + " + ".join(["b"] * 200), "is too long"),
    ],
)
def test_what_is_no_rule_is_told(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"column|rule|long") as error:
        parse_text(text, KNOWN)
    assert problem in str(error.value)
