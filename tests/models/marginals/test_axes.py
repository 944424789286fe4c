"""Subgroups: numbers that follow one another closely are measured in more groups than others."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.contracts.material import schema_of

from sundog.data.code_set import CodeSet
from sundog.data.columns import IntegerColumn
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.models.marginals import learner
from sundog.models.marginals.axes import Axes, divide_groups
from sundog.models.marginals.configuration import MarginalsConfiguration
from sundog.models.marginals.marginals import Marginals
from sundog.models.marginals.variable import Variable
from sundog.models.protocol import FitContext, State
from sundog.models.registry import read_model
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.measured_marginals import compare_marginals, list_marginals

VALUES = 24
NUMBER: dict[str, Any] = {"type": "integer", "min": 0, "max": VALUES - 1}
BUDGET = Budget(5.0, 1e-6)


def make_followers(n: int = 20_000, **extra: Any) -> Records:
    """Return two numbers that differ by one at the most, and one that has nothing to do with them."""
    rng = np.random.default_rng(0)
    a, c = rng.integers(0, VALUES - 1, n), rng.integers(0, VALUES, n)
    schema = schema_of(dict.fromkeys("abc", NUMBER), **extra)
    codes = {"a": a, "b": a + rng.integers(0, 2, n), "c": c}
    return Records(schema, {name: each.astype(np.uint8) for name, each in codes.items()}, n)


def fit(records: Records, public: Records | None = None) -> tuple[Marginals, tuple[Charge, ...]]:
    configuration = MarginalsConfiguration(groups=6, order=2, public=public is not None)
    plan = Marginals.plan(records.schema, BUDGET, configuration, already=(), records=None)
    ledger = Ledger(epsilon=BUDGET.epsilon, delta=BUDGET.delta, noise=NoiseSource.seeded(1))
    return Marginals.fit(records, plan, ledger, FitContext(seed=0, public=public)), tuple(ledger.charges)


@cache
def fit_followers() -> tuple[Marginals, tuple[Charge, ...]]:
    return fit(make_followers())


def compute_joint(model: Marginals) -> np.ndarray[Any, Any]:
    """Return the probability of each combination of values, one by one."""
    cells = np.indices((VALUES,) * 3).reshape(3, -1).astype(np.uint8)
    records = Records(model.schema, dict(zip("abc", cells, strict=True)), cells.shape[1])
    joint: np.ndarray[Any, Any] = np.exp(model.log_density(records)).reshape((VALUES,) * 3)
    return joint


def make_axes() -> Axes:
    """Return a column of three groups, of which the first has two subgroups and the last three, and one without."""
    column, shares = IntegerColumn(min=0, max=5), np.full(6, 1 / 6)
    coarse = {
        "a": Variable(column, np.array([0, 0, 1, 2, 2, 2]), shares),
        "b": Variable(column, np.arange(6), shares),
    }
    return Axes(coarse, {"a": np.array([0, 1, 0, 0, 1, 2])})


# --- variables ---


def test_values_come_back_from_their_variables() -> None:
    axes, codes = make_axes(), {"a": np.arange(6), "b": np.arange(6)[::-1]}
    drawn = dict(enumerate(axes.encode(codes)))
    assert [drawn[place].tolist() for place in range(3)] == [[0, 0, 1, 2, 2, 2], [5, 4, 3, 2, 1, 0], [0, 1, 0, 0, 1, 2]]
    for name, each in codes.items():
        assert axes.decode(name, drawn, np.random.default_rng(0)).tolist() == each.tolist()


def test_a_group_alone_is_decoded_by_all_of_its_values() -> None:
    found = make_axes().decode("a", {0: np.full(300, 2)}, np.random.default_rng(0))
    assert sorted(set(found.tolist())) == [3, 4, 5]


def test_a_table_of_subgroups_is_spread_over_variables() -> None:
    axes = make_axes()
    clique, table = axes.spread(np.arange(1.0, 7.0), ["a"], absent=-1.0)
    assert clique == (0, 2)
    assert table.tolist() == [[1, 2, -1], [3, -1, -1], [4, 5, 6]]
    clique, table = axes.spread(np.arange(36.0).reshape(6, 6), ["b", "a"])
    assert clique == (0, 1, 2)
    assert table[:, :, 0].tolist() == [[6 * b + a for b in range(6)] for a in (0, 2, 3)]


def test_subgroups_that_a_group_does_not_have_are_impossible() -> None:
    shares = np.exp(make_axes().weigh_subgroups()[0, 2])
    np.testing.assert_allclose(shares, np.array([[1 / 2, 1 / 2, 0], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]]))


def test_groups_are_divided_while_there_are_records() -> None:
    variable = Variable(IntegerColumn(min=0, max=9), np.repeat([0, 1], 5), np.full(10, 0.1))
    assert divide_groups(variable, most=5, least=0.01).tolist() == [*range(5), *range(5)]
    assert divide_groups(variable, most=2, least=0.01).tolist() == [0, 0, 1, 1, 1] * 2
    assert not divide_groups(variable, most=5, least=0.3).any()
    ending = Variable(variable.column, np.zeros(10, np.int64), np.array([0.125] * 8 + [0.0] * 2))
    assert divide_groups(ending, most=4, least=0.01).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 3, 3]


# --- what is learned ---


def test_numbers_that_follow_one_another_are_measured_by_subgroups_and_others_are_not() -> None:
    model, _ = fit_followers()
    assert {"a", "b"} <= model.subgroups.keys()
    joint = [clique for clique in model.potentials if len(model.axes.list_places(clique)) > 1]
    assert [clique for clique in joint if max(clique) > 2] == [model.axes.find_clique(["a", "b"])]


def test_they_follow_more_closely_than_groups_alone_show(monkeypatch: pytest.MonkeyPatch) -> None:
    def share_of_followers(model: Marginals) -> float:
        joint = compute_joint(model).sum(axis=2)
        return float(joint.trace() + joint.trace(offset=1))

    fine = share_of_followers(fit_followers()[0])
    monkeypatch.setattr(learner, "MOST_SUBGROUPS", 1)
    coarse = share_of_followers(fit(make_followers())[0])
    assert fine > 0.9
    assert coarse < 0.5


def test_probabilities_add_up_and_are_those_of_conditions() -> None:
    model, _ = fit_followers()
    joint = compute_joint(model)
    assert joint.sum() == pytest.approx(1.0, abs=1e-9)
    where = {"a": CodeSet.between(3, 9), "b": CodeSet.between(5, 6), "c": CodeSet.between(0, 20)}
    assert math.exp(model.log_evidence(where)) == pytest.approx(joint[3:10, 5:7, :21].sum(), rel=1e-9)


def test_samples_under_conditions_have_the_exact_distribution() -> None:
    model, _ = fit_followers()
    drawn = model.sample(40_000, np.random.default_rng(0), {"b": CodeSet.between(5, 11)})
    exact = compute_joint(model)[:, 5:12].sum(axis=2)
    counts = np.zeros((VALUES, VALUES))
    np.add.at(counts, (drawn["a"].astype(int), drawn["b"].astype(int)), 1)
    assert np.abs(counts[:, 5:12] / 40_000 - exact / exact.sum()).sum() < 0.05
    assert counts[:, 5:12].sum() == 40_000


def test_a_rule_between_them_leaves_their_marginals() -> None:
    records = make_followers(rules=["a <= b"])
    model, _ = fit(records)
    assert model.subgroups
    joint = compute_joint(model).sum(axis=2)
    kept = np.triu(joint) / np.triu(joint).sum()  # as the sampler keeps them
    counts = np.bincount(records.codes["a"], minlength=VALUES) / len(records)
    assert 0.5 * np.abs(kept.sum(axis=1) - counts).sum() < 0.04


def test_a_release_draws_the_same() -> None:
    model, _ = fit_followers()
    again = Marginals.from_state(Schema.from_dict(model.schema.to_dict()), model.state())
    one, other = (each.sample(500, np.random.default_rng(0), {"a": CodeSet.between(2, 7)}) for each in (model, again))
    assert all((one[name] == other[name]).all() for name in "abc")


# --- the release ---


def test_the_certificate_lists_a_pair_by_groups_and_by_subgroups() -> None:
    model, charges = fit_followers()
    measured = read_model("marginals", model.schema, model.state()).list_measured(charges)
    listed = list_marginals(measured)
    pairs = [str(each).partition(" ±")[0] for each in listed if each.columns == ["a", "b"]]
    assert pairs == ["a × b", "a × b, fine"]
    assert compare_marginals(listed, measured) == []
    swapped = [each.model_copy(update={"fine": not each.fine}) for each in listed]
    assert compare_marginals(swapped, measured)


def test_everything_was_paid_for() -> None:
    model, charges = fit_followers()
    released = read_model("marginals", model.schema, model.state())
    assert released.find_unpaid(charges) == []
    model_state = model.state()
    place = list(model.potentials).index(model.axes.find_clique(["a", "b"]))
    for units in model_state.config["units"]:
        units[place] = 0
    assert "marginal of a and b" in read_model("marginals", model.schema, model_state).find_unpaid(charges)


@pytest.mark.parametrize("harm", ["gap", "negative", "short", "float", "huge"])
def test_subgroups_that_divide_no_groups_are_refused(harm: str) -> None:
    model, _ = fit_followers()
    state = model.state()
    own = state.tensors["subgroups.0"].copy()
    match harm:
        case "gap":
            own[own == 1] = own.max() + 1
        case "negative":
            own[0] = -1
        case "short":
            own = own[:-1]
        case "float":
            own = own.astype(np.float64)
        case _:
            own[0] = 2**40
    with pytest.raises(ReleaseError, match="not those of a `marginals` model"):
        Marginals.from_state(model.schema, State({**state.tensors, "subgroups.0": own}, state.config))


def test_many_subgroups_are_refused() -> None:
    """A table of them has an axis for groups and one for the most subgroups, so that few groups could fill memory."""
    model, _ = fit_followers()
    state = model.state()
    arrays = {"groups.0": np.arange(VALUES) // 8, "subgroups.0": np.arange(VALUES) % 8}
    with pytest.raises(ReleaseError, match="more than 4 subgroups"):
        Marginals.from_state(model.schema, State({**state.tensors, **arrays}, state.config))
