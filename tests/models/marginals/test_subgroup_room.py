"""Where subgroups meet rules and public records: the tree stays small, rules are kept, and units are those paid for."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contracts.material import schema_of
from tests.models.marginals.test_axes import NUMBER, VALUES, fit, make_followers

from sundog.data.records import Records
from sundog.models.marginals import impossible_cells
from sundog.models.marginals.axes import Axes
from sundog.models.marginals.impossible_cells import find_impossible
from sundog.models.marginals.variable import Variable
from sundog.models.registry import read_model


def make_star(length: int, n: int = 8000) -> Records:
    """Return a number, and others that are a little larger, as rules say."""
    rng, names = np.random.default_rng(0), [f"c{place}" for place in range(length)]
    first = rng.integers(0, VALUES - 3, n)
    columns = [first, *(first + rng.integers(0, 3, n) for _ in names[1:])]
    codes = {name: own.astype(np.uint8) for name, own in zip(names, columns, strict=True)}
    return Records(schema_of(dict.fromkeys(names, NUMBER), rules=[f"c0 <= {name}" for name in names[1:]]), codes, n)


def test_the_tree_of_columns_that_rules_relate_stays_small() -> None:
    model, _ = fit(make_star(4))
    assert "c0" in model.subgroups
    assert model._tree.cells < 100_000  # more than 200,000 with all subgroups summed out first


def test_columns_that_rules_relate_are_not_divided_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def choose(axes: Axes) -> tuple[int, ...] | None:
        tried.append(sorted(axes.divided))
        return None if "c0" in axes.divided else tuple(range(len(axes.sizes)))

    tried: list[list[str]] = []
    monkeypatch.setattr("sundog.models.marginals.learner.Learner._order_divided", lambda _, axes: choose(axes))
    model, _ = fit(make_star(3))
    assert tried == [["c0", "c1", "c2"], []]
    assert not model.subgroups


def test_with_public_records_units_are_those_that_were_paid_for() -> None:
    private, public = make_followers(), make_followers(3000)
    public.codes["b"] = np.random.default_rng(9).integers(0, VALUES, 3000).astype(np.uint8)
    model, charges = fit(private, public)
    assert model.subgroups
    assert {(0,), (0, 3)} <= set(model.potentials)  # that of public records, and the private one
    assert read_model("marginals", model.schema, model.state()).find_unpaid(charges) == []


def test_a_rule_without_room_for_subgroups_keeps_its_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schema_of(dict.fromkeys("ab", NUMBER), rules=["a <= b"])
    groups, shares = np.repeat(np.arange(6), VALUES // 6), np.full(VALUES, 1 / VALUES)
    coarse = {name: Variable(schema.columns[name], groups, shares) for name in "ab"}
    axes = Axes(coarse, dict.fromkeys("ab", np.tile([0, 1, 2, 3], 6)))
    assert list(find_impossible(schema, axes)) == [(0, 1, 2, 3)]
    monkeypatch.setattr(impossible_cells, "_MOST_OF_ALL", 200)
    assert list(find_impossible(schema, axes)) == [(0, 1)]
