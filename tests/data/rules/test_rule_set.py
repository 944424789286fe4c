"""Rules together: their order, derived columns, conditions on these, and which cells are possible."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.data.rules.material import (
    cut,
    day,
    every_record,
    listed,
    only,
    possible_by_counting,
    rules_of,
    schema_of,
    values_of,
    whole,
)

from sundog.data.code_set import CodeSet
from sundog.data.rules import Derivation
from sundog.errors import SchemaError

CHAIN = {"a": whole(0, 3), "b": whole(0, 3), "sum": whole(0, 6), "kind": listed("low", "high"), "code": whole(0, 1)}
RULES: list[Any] = [
    {"column": "code", "from": "kind", "table": {"low": 0, "high": 1}},
    {"column": "kind", "from": "sum", "table": {n: "low" if n < 4 else "high" for n in range(7)}},
    {"when": "code = 1", "then": "a > 1"},
    "sum = a + b",
]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::5])
def test_the_order_in_which_rules_are_written_does_not_matter(order: tuple[int, ...]) -> None:
    schema = schema_of(CHAIN, *(RULES[place] for place in order))
    rules = schema.bind_rules()
    assert [each.derived for each in rules.derivations] == ["sum", "kind", "code"]
    codes, known = rules.derive(every_record(schema.modelled))
    assert known is None
    rows = values_of(schema, codes)
    assert all(total == a + b and kind == ["low", "high"][code] == ("low" if total < 4 else "high")
               for a, b, total, kind, code in rows)  # fmt: skip
    assert rules.holds(codes).tolist() == [code == 0 or a > 1 for a, _, _, _, code in rows]


def test_a_condition_is_followed_back_to_what_is_drawn() -> None:
    given, later = rules_of(CHAIN, *RULES).translate({"code": CodeSet.of([1]), "b": CodeSet.of([2])})
    assert given == {"b": CodeSet.of([2])}
    assert later == {"sum": CodeSet.between(4, 6)}  # to be checked after a and b are drawn


def test_models_learn_what_is_not_derived() -> None:
    modelled = schema_of(CHAIN, "a <= b", *RULES).modelled
    assert list(modelled.columns) == ["a", "b"]
    assert [str(rule) for rule in modelled.rules] == ["a <= b"]
    assert modelled.modelled is modelled


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        (["a = b", "b = a"], "are derived from each other"),
        (["sum = a + b", "sum = a"], "column 'sum' is derived twice"),
        (["a = sum - b", "sum = a + b"], "are derived from each other"),
        (["a <= b", "a <= b"], "rule 2 (a <= b): is given twice"),
        (["a <= b", "b > a", "b >= a"], "rule 3 (a <= b): is given twice"),
    ],
)
def test_rules_that_contradict_each_other_are_refused(rules: list[str], problem: str) -> None:
    with pytest.raises(SchemaError) as error:
        schema_of(CHAIN, *rules)
    assert problem in str(error.value)


# --- which cells are possible ---

KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "order": ({"a": whole(2, 8, nullable=True), "b": whole(0, 9, step=3)}, "a <= b"),
    "strict": ({"a": whole(2, 8), "b": whole(0, 9, nullable=True)}, "a < b"),
    "days": ({"a": day(), "b": day("2020-01-05", "2020-01-15")}, "b <= a"),
    "combinations": (
        {"a": listed(*"wxyz", nullable=True), "b": whole(0, 4)},
        {"columns": ["a", "b"], "allowed": [["w", 0], ["w", 4], ["z", 1], [None, 2]]},
    ),
    "three": (
        {"a": whole(0, 4), "b": whole(0, 4), "c": listed("x", "y")},
        {"columns": ["c", "a", "b"], "allowed": [["x", 0, 0], ["y", 2, 3]]},
    ),
    "nulls": ({name: whole(0, 3, nullable=True) for name in "ab"}, {"null_together": ["b", "a"]}),
    "when": ({"a": whole(), "b": listed("x", "y", "z", nullable=True)}, {"when": "a >= 5", "then": "b in x, y"}),
    "whens": (
        {"a": whole(0, 4), "b": whole(0, 4), "c": whole(0, 4)},
        {"when": ["a < 2", "b != 3"], "then": ["c > 1", "b < 4"]},
    ),
    "table": ({"a": whole(0, 2), "b": whole(0, 2)}, {"column": "b", "from": "a", "table": {0: 1, 1: 1, 2: 0}}),
    "sum": ({"a": whole(0, 2), "b": whole(0, 4)}, "b = a + a"),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", KINDS)
def test_no_possible_cell_is_excluded(kind: str, seed: int) -> None:
    columns, rule = KINDS[kind]
    schema, rng = schema_of(columns, rule), np.random.default_rng(seed)
    bound = only(schema.bind_rules())
    cells = {name: cut(schema.columns[name].size, rng) for name in bound.names}
    said, counted = bound.possible(cells), possible_by_counting(schema, bound, cells)
    assert said.shape == counted.shape
    assert (said | ~counted).all()
    if not isinstance(bound, Derivation) and kind != "whens":  # which say no more than is true
        assert (said == counted).all()


def test_impossible_cells_are_found() -> None:
    bound = only(rules_of({"a": whole(), "b": whole()}, "a <= b"))
    halves = [CodeSet.between(0, 4), CodeSet.between(5, 9)]
    assert bound.possible({"a": halves, "b": halves}).tolist() == [[True, True], [False, True]]
