"""Rules in the model of marginals: what no record can be has probability zero, also after noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.contracts.material import schema_of

from sundog.data.code_set import CodeSet
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.marginals.axes import Axes
from sundog.models.marginals.configuration import MarginalsConfiguration
from sundog.models.marginals.impossible_cells import find_impossible
from sundog.models.marginals.marginals import Marginals
from sundog.models.marginals.variable import Variable
from sundog.models.protocol import FitContext
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource

DIGIT = {"type": "integer", "min": 0, "max": 5}
RULES: dict[str, Any] = {
    "order": "a <= b",
    "combinations": {"columns": ["b", "a"], "allowed": [[value, 5 * value % 6] for value in range(6)]},
    "implication": {"when": "a >= 3", "then": ["b < 3", "c = 1"]},
}


def make_records(rule: Any, n: int = 2000) -> Records:
    """Return random records that satisfy a rule."""
    schema = schema_of(dict.fromkeys("abc", DIGIT), rules=[rule])
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, 6, 20 * n).astype(np.uint8) for name in "abc"}
    kept = np.flatnonzero(schema.bind_rules().holds(codes))[:n]
    return Records(schema, {name: each[kept] for name, each in codes.items()}, len(kept))


def fit(records: Records, epsilon: float = 3.0) -> Marginals:
    plan = Marginals.plan(records.schema, Budget(epsilon, 1e-6), MarginalsConfiguration(), already=(), records=None)
    ledger = Ledger(epsilon=epsilon, delta=1e-6, noise=NoiseSource.seeded(1))
    return Marginals.fit(records, plan, ledger, FitContext(seed=0))


def make_axes(schema: Schema) -> Axes:
    """Return variables in which each value is a group."""
    coarse = {name: Variable(column, np.arange(6), np.full(6, 1 / 6)) for name, column in schema.columns.items()}
    return Axes(coarse, {})


@pytest.mark.parametrize("kind", RULES)
def test_no_record_that_is_drawn_breaks_a_rule(kind: str) -> None:
    model = fit(make_records(RULES[kind]))
    assert all(variable.size == 6 for variable in model.axes.coarse.values())  # no group straddles what a rule says
    for where in ({}, {"a": CodeSet.between(1, 4)}):
        codes = model.sample(20_000, np.random.default_rng(0), where)
        assert model.schema.bind_rules().holds(codes).all()


@pytest.mark.parametrize("kind", RULES)
def test_a_release_finds_the_same_cells(kind: str) -> None:
    model = fit(make_records(RULES[kind]))
    again = Marginals.from_state(model.schema, model.state())
    drawn = [each.sample(500, np.random.default_rng(0), {}) for each in (model, again)]
    assert all((drawn[0][name] == drawn[1][name]).all() for name in "abc")


def test_cells_are_found_whatever_the_order_of_columns() -> None:
    schema = schema_of(dict.fromkeys("abc", DIGIT), rules=["c <= a", "a < b"])
    found = find_impossible(schema, make_axes(schema))
    a, other = np.meshgrid(np.arange(6), np.arange(6), indexing="ij")
    assert np.isneginf(found[0, 2]).tolist() == (other > a).tolist()
    assert np.isneginf(found[0, 1]).tolist() == (a >= other).tolist()


def test_two_rules_about_the_same_columns_exclude_what_either_does() -> None:
    schema = schema_of(dict.fromkeys("ab", DIGIT), rules=["a <= b", {"when": "a = 2", "then": "b = 5"}])
    found = find_impossible(schema, make_axes(schema))[0, 1]
    assert np.isfinite(found[2]).tolist() == [False] * 5 + [True]
    assert np.isfinite(found[1]).tolist() == [False] + [True] * 5


def test_rules_over_too_many_cells_are_left_to_rejection() -> None:
    names = [f"c{place}" for place in range(8)]
    schema = schema_of(dict.fromkeys(names, DIGIT), rules=[{"columns": names, "allowed": [[0] * 8, [1] * 8]}])
    assert find_impossible(schema, make_axes(schema)) == {}


def test_rules_that_exclude_every_record_are_left_to_rejection() -> None:
    rules = [
        {"when": "a < 3", "then": "b < 2"},
        {"when": "a >= 3", "then": "b < 2"},
        {"when": "b < 2", "then": "c = 0"},
    ]
    schema = schema_of(dict.fromkeys("abc", DIGIT), rules=[*rules, {"when": "b < 2", "then": "c = 1"}])
    assert find_impossible(schema, make_axes(schema)) == {}


def test_a_mixture_says_what_no_record_can_satisfy() -> None:
    records = make_records("a <= b", 400)
    frame = pd.DataFrame({name: codes.astype(int) for name, codes in records.codes.items()})
    synthesizer = Synthesizer("marginals", 5.0, 1e-6, clusters=2, seed=0, noise=NoiseSource.seeded(0))
    release = synthesizer.fit(frame, records.schema).release_
    with pytest.raises(DataError, match="no record can satisfy"):
        release.sample(5, where=["a = 5", "b = 0"])


def test_categories_that_are_scattered_over_a_group_are_left_to_rejection() -> None:
    values = [f"v{place}" for place in range(10_000)]
    columns: dict[str, Any] = {"a": {"type": "categorical", "values": values}, "b": {"type": "boolean"}}
    schema = schema_of(columns, rules=[{"when": "b = true", "then": "a in v1, v3"}])
    long, flag = (schema.columns[name] for name in "ab")
    variables = {
        "a": Variable(long, np.arange(10_000) % 2, np.full(10_000, 1e-4)),
        "b": Variable(flag, np.arange(2), np.full(2, 0.5)),
    }
    assert find_impossible(schema, Axes(variables, {})) == {}
