"""Rules that only some records of a cell satisfy: what is kept has the marginals that were measured."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.contracts.material import schema_of

from sundog.data.records import Records
from sundog.data.rules import RuleSet
from sundog.data.schema import Schema
from sundog.models.marginals import learner
from sundog.models.marginals.axes import Axes
from sundog.models.marginals.configuration import MarginalsConfiguration
from sundog.models.marginals.impossible_cells import find_impossible
from sundog.models.marginals.marginals import Marginals
from sundog.models.marginals.rule_acceptance import estimate_acceptance
from sundog.models.marginals.variable import Variable
from sundog.models.protocol import Codes, FitContext
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.rejection_sampling import RejectionSampler

DIGIT = {"type": "integer", "min": 0, "max": 5}
WIDE = {"type": "integer", "min": 0, "max": 99, "bins": 25}
NAMES = "abc"


def make_ordered(n: int = 40_000) -> Records:
    """Return records with a < b, most of them near each other, so that few cells are all possible."""
    schema = schema_of(dict.fromkeys(NAMES, WIDE), rules=["a < b"])
    rng = np.random.default_rng(0)
    a = rng.triangular(0, 30, 90, n).astype(np.int64)
    b = np.minimum(a + 1 + rng.geometric(0.15, n) - 1, 99)
    c = np.clip(a + rng.integers(-8, 9, n), 0, 99)
    return Records(schema, {name: each.astype(np.uint8) for name, each in zip(NAMES, (a, b, c), strict=True)}, n)


def fit(records: Records) -> Marginals:
    """Return a model of wide groups, of whose cells a rule excludes parts."""
    configuration = MarginalsConfiguration(groups=5)
    plan = Marginals.plan(records.schema, Budget(5.0, 1e-6), configuration, already=(), records=None)
    ledger = Ledger(epsilon=5.0, delta=1e-6, noise=NoiseSource.seeded(1))
    return Marginals.fit(records, plan, ledger, FitContext(seed=0))


def draw(model: Marginals, n: int = 40_000) -> Codes:
    sampler = RejectionSampler(model, model.schema, model.schema.bind_rules(), {}, most=100_000)
    return sampler.draw(n, np.random.default_rng(0))


def measure_distance(real: Records, model: Marginals) -> float:
    """Return the mean total variation of the columns' bins between real records and those that are kept."""
    drawn = draw(model)
    found = []
    for name in NAMES:
        counts = [np.bincount(codes[name] // 4, minlength=25) / len(codes[name]) for codes in (real.codes, drawn)]
        found.append(0.5 * np.abs(counts[0] - counts[1]).sum())
    return float(np.mean(found))


def test_shares_equal_those_of_all_records_of_a_cell() -> None:
    schema = schema_of(dict.fromkeys("ab", DIGIT), rules=["a < b"])
    groups, shares = np.array([0, 0, 0, 1, 1, 1]), np.array([0.1, 0.2, 0.1, 0.2, 0.3, 0.1])
    axes = Axes({name: Variable(column, groups, shares) for name, column in schema.columns.items()}, {})
    found = np.exp(estimate_acceptance(schema, axes, find_impossible(schema, axes))[0, 1])
    joint = np.outer(shares, shares)
    kept = np.where(np.arange(6)[:, None] < np.arange(6), joint, 0.0)
    exact = [
        [table[3 * i : 3 * i + 3, 3 * j : 3 * j + 3].sum() for j in range(2)]
        for table in (kept, joint)
        for i in range(2)
    ]
    np.testing.assert_allclose(found, np.divide(exact[:2], exact[2:]), atol=0.03)
    assert found[0, 1] == 1.0
    assert found[1, 0] == 0.0


def test_a_rule_that_cells_decide_has_no_partial_shares() -> None:
    schema = schema_of(dict.fromkeys("ab", DIGIT), rules=["a < b"])
    coarse = {name: Variable(column, np.arange(6), np.full(6, 1 / 6)) for name, column in schema.columns.items()}
    axes = Axes(coarse, {})
    impossible = find_impossible(schema, axes)
    np.testing.assert_array_equal(estimate_acceptance(schema, axes, impossible)[0, 1], impossible[0, 1])


def test_kept_records_have_the_measured_marginals(monkeypatch: pytest.MonkeyPatch) -> None:
    records = make_ordered()
    found = measure_distance(records, fit(records))
    monkeypatch.setattr(learner, "_RAKINGS", 0)
    without_raking = measure_distance(records, fit(records))
    monkeypatch.setattr(learner, "estimate_acceptance", lambda schema, axes, possible: dict(possible))
    without_shares = measure_distance(records, fit(records))
    assert found < without_raking / 2
    assert found < without_shares / 2


def test_all_rules_hold() -> None:
    model = fit(make_ordered(5000))
    rules: RuleSet = model.schema.bind_rules()
    assert rules.holds(draw(model, 5000)).all()
    assert not math.isnan(model.log_evidence({"a": 3}))


def test_a_release_draws_the_same() -> None:
    model = fit(make_ordered(5000))
    again = Marginals.from_state(Schema.from_dict(model.schema.to_dict()), model.state())
    one, other = (draw(each, 300) for each in (model, again))
    assert all((one[name] == other[name]).all() for name in NAMES)
