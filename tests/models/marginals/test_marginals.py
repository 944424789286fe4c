"""The model of marginals: its contract, what it learns, conditions, and what it costs."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.contracts.material import KINDS, constant_records, join_records, random_records, schema_of
from tests.contracts.model_contract import ModelContract, every_kind

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.models.marginals.bucket_tree import Clique
from sundog.models.marginals.configuration import MarginalsConfiguration
from sundog.models.marginals.estimation import Measurement
from sundog.models.marginals.learner import Learner
from sundog.models.marginals.marginals import Marginals
from sundog.models.protocol import FitContext, State
from sundog.models.registry import read_model
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge, DiscreteGaussian, Gaussian
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource


class TestMarginals(ModelContract):
    model = Marginals

    @every_kind
    def test_one_extreme_record_more_changes_no_shape_and_no_key(self, kind: str) -> None:
        """Marginals have the shapes of their columns; groups and cliques follow from noisy counts, and may differ."""
        schema = schema_of(KINDS[kind])
        few = constant_records(schema, 200)
        states = [self.fit(r)[0].state() for r in (few, join_records(few, constant_records(schema, 1, last=True)))]
        shapes = [
            {name: t.shape for name, t in state.tensors.items() if name.startswith(("marginal.", "groups."))}
            for state in states
        ]
        assert shapes[0] == shapes[1]
        assert states[0].config.keys() == states[1].config.keys()


# --- what it learns ---


def make_table(n: int, seed: int = 0) -> Records:
    """Return records in which b follows a, c follows b, and d is by itself."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, n)
    b = (a + rng.integers(0, 2, n)) % 4
    c = (b + rng.integers(0, 2, n)) % 4
    columns = {name: {"type": "integer", "min": 0, "max": 3} for name in "abcd"}
    codes = dict(zip("abcd", (a, b, c, rng.integers(0, 4, n)), strict=True))
    return Records(schema_of(columns), {name: each.astype(np.uint8) for name, each in codes.items()}, n)


def fit(records: Records, *, epsilon: float = 5.0, seed: int = 0) -> Marginals:
    configuration = MarginalsConfiguration()
    plan = Marginals.plan(records.schema, Budget(epsilon, 1e-6), configuration, already=(), records=None)
    ledger = Ledger(epsilon=epsilon, delta=1e-6, noise=NoiseSource.seeded(seed))
    return Marginals.fit(records, plan, ledger, FitContext(seed=seed))


def measure_distance(records: Records, codes: dict[str, Any], first: str, second: str) -> float:
    """Return the total variation between the real and the drawn pairs of two columns of four values."""
    tables = [
        np.bincount(4 * each[first].astype(np.int64) + each[second], minlength=16) / len(each[first])
        for each in (records.codes, codes)
    ]
    return float(np.abs(tables[0] - tables[1]).sum() / 2)


def test_pairs_are_learned_also_those_that_were_not_measured() -> None:
    records = make_table(20_000)
    model = fit(records)
    codes = model.sample(20_000, np.random.default_rng(0), {})
    for first, second in itertools.combinations("abcd", 2):
        assert measure_distance(records, codes, first, second) < 0.02, (first, second)
    measured = {clique for clique in model.potentials if len(clique) == 2}
    assert {(0, 1), (1, 2)} <= measured


def test_conditions_are_exact() -> None:
    """The share of a value given another is what the model says without the condition, and so is its probability."""
    model = fit(make_table(20_000))
    free = model.sample(400_000, np.random.default_rng(1), {})
    given = model.sample(50_000, np.random.default_rng(2), {"b": 1, "d": 2})
    assert set(given["b"].tolist()) == {1}
    assert set(given["d"].tolist()) == {2}
    chosen = (free["b"] == 1) & (free["d"] == 2)
    shares = [np.bincount(each, minlength=4) / len(each) for each in (free["a"][chosen], given["a"])]
    assert np.abs(shares[0] - shares[1]).max() < 0.02
    assert model.log_evidence({"b": 1, "d": 2}) == pytest.approx(math.log(chosen.mean()), abs=0.05)


def test_rare_values_come_out_as_often_as_they_went_in() -> None:
    """They are one group in pairs; which of them a record has follows from the column's own marginal."""
    rng = np.random.default_rng(0)
    values = [f"v{i}" for i in range(300)]
    p = 1 / np.arange(1, 301)
    schema = schema_of({"long": {"type": "categorical", "values": values}, "x": {"type": "boolean"}})
    long = rng.choice(300, 30_000, p=p / p.sum())
    records = Records(schema, {"long": long.astype(np.uint16), "x": (long % 2).astype(np.uint8)}, 30_000)
    model = fit(records)
    assert model.groups["long"].max() + 1 < 300
    drawn = model.sample(30_000, np.random.default_rng(0), {})["long"]
    shares = [np.bincount(each, minlength=300) / 30_000 for each in (long, drawn)]
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.05


def test_people_with_several_records_cost_more_noise() -> None:
    columns = {name: {"type": "integer", "min": 0, "max": 3} for name in "ab"}
    plans = [
        Marginals.plan(
            Schema.from_dict({"columns": columns, **people}),
            Budget(1.0, 1e-6),
            MarginalsConfiguration(),
            already=(),
            records=None,
        )
        for people in ({}, {"unit": "who", "cap": 4})
    ]
    deviations = [plan.rounds[0].sigma * math.sqrt(cap) for plan, cap in zip(plans, (1, 4), strict=True)]
    assert deviations[1] / deviations[0] == pytest.approx(4, rel=0.01)  # of each cell, as for one with four records


# --- what it costs ---


@pytest.mark.parametrize("public", [("a",), ("a", "b", "c", "d")], ids=["one public", "all public"])
def test_public_columns_are_counted_exactly_and_the_release_verifies(public: tuple[str, ...]) -> None:
    exact = make_table(500)
    columns = {name: {**column.to_dict(), "public": name in public} for name, column in exact.schema.columns.items()}
    records = Records(Schema.from_dict({"columns": columns}), exact.codes, 500)
    plan = Marginals.plan(records.schema, Budget(1.0, 1e-6), MarginalsConfiguration(), already=(), records=None)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    model = Marginals.fit(records, plan, ledger, FitContext(seed=0))
    assert model.marginals["a"] == pytest.approx(np.bincount(exact.codes["a"], minlength=4) / 500, abs=0.002)
    assert read_model("marginals", records.schema, model.state()).find_unpaid(ledger.charges) == []
    assert bool(plan.charges) == (len(public) < 4)


def test_a_round_that_chose_no_pair_is_resumed(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "")
    checkpoint.save_tensors("choice 0", {})
    assert checkpoint.load_tensors("choice 0") == {}


def test_the_cost_is_that_of_one_gaussian() -> None:
    """All noise is Gaussian, so that its cost is 1/σ² added up, as in Gaussian differential privacy."""
    records = make_table(10)
    plan = Marginals.plan(records.schema, Budget(1.0, 1e-5), MarginalsConfiguration(), already=(), records=None)
    precision = sum(c.count / c.event.sigma**2 for c in plan.charges if isinstance(c.event, DiscreteGaussian))
    one = Charge(event=Gaussian(noise_multiplier=1 / math.sqrt(precision)), purpose="all of it")
    assert compute_epsilon(plan.charges, delta=1e-5) == pytest.approx(compute_epsilon([one], delta=1e-5), rel=1e-3)


def test_wide_tables_choose_by_the_exponential_mechanism() -> None:
    columns = {f"c{i}": {"type": "boolean"} for i in range(200)}
    plan = Marginals.plan(schema_of(columns), Budget(1.0, 1e-5), MarginalsConfiguration(), already=(), records=None)
    assert [each.choice.event.kind for each in plan.rounds] == ["pure", "pure"]
    assert 0.99 <= compute_epsilon(plan.charges, delta=1e-5) <= 1.0


@pytest.mark.parametrize("factor", [2 / 3, 1.0, 3 / 2])
def test_noise_has_the_scale_that_was_charged(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of squared noise over its variance is chi-squared; two thirds or three halves of the noise are found."""
    draw = NoiseSource.discrete_gaussian
    monkeypatch.setattr(
        NoiseSource, "discrete_gaussian", lambda self, *, sigma, size: draw(self, sigma=sigma * factor, size=size)
    )
    schema = schema_of({name: {"type": "integer", "min": 0, "max": 99} for name in "ab"})
    records = Records(schema, {name: np.zeros(0, np.uint8) for name in "ab"}, 0)
    plan = Marginals.plan(schema, Budget(1.0, 1e-6), MarginalsConfiguration(), already=(), records=None)
    each = plan.rounds[0]
    columns = {name: Measurement(np.full(100, 1e9), np.array(1.0)) for name in "ab"}  # each value a group of its own
    learner = Learner(records, columns, MarginalsConfiguration(groups=100), plan.scale, np.random.default_rng(0))
    ledger = Ledger(epsilon=1.0, delta=1e-6, noise=NoiseSource.seeded(3))
    noise = learner.measure(each, (0, 1), 5, ledger)
    statistic = float((noise.astype(np.float64) ** 2).sum() / (5 * each.sigma**2))
    low, high = stats.chi2(noise.size).ppf([1e-9, 1 - 1e-9])
    assert (low < statistic < high) == (factor == 1.0)


@pytest.mark.parametrize("people", [{}, {"unit": "who", "cap": 4}], ids=["records", "people"])
def test_the_noise_that_is_listed_is_that_of_the_measurements(
    people: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of pairs all there is; of a column what the rounds added to its own marginal."""
    exact = make_table(5000)
    learners: list[Learner] = []
    finish = Learner.finish

    def keep(learner: Learner) -> dict[Clique, Any]:
        learners.append(learner)
        return finish(learner)

    schema = Schema.from_dict({**exact.schema.to_dict(), **people})
    records = Records(schema, exact.codes, 5000)
    monkeypatch.setattr(Learner, "finish", keep)
    plan = Marginals.plan(schema, Budget(5.0, 1e-6), MarginalsConfiguration(), already=(), records=None)
    ledger = Ledger(epsilon=5.0, delta=1e-6, noise=NoiseSource.seeded(0))
    model = Marginals.fit(records, plan, ledger, FitContext(seed=0))
    measured = read_model("marginals", schema, model.state()).list_measured(ledger.charges)
    found = {each.columns: each.deviation for each in measured}
    (learner,) = learners
    for clique, measurement in learner.measured.items():
        deviation = found.pop(tuple("abcd"[v] for v in clique))
        assert deviation == pytest.approx(math.sqrt(float(measurement.variance)))
    assert sorted(found) == [("a",), ("b",), ("c",), ("d",)]
    for (name,), deviation in found.items():
        first = schema.cap * plan.sigma[name] ** 2
        assert 1 / deviation**2 + 1 / first == pytest.approx(1 / float(learner.columns[name].variance))


def test_a_release_that_needs_too_much_memory_is_refused() -> None:
    columns = {f"c{i}": {"type": "integer", "min": 0, "max": 99} for i in range(6)}
    records = random_records(schema_of(columns), 20)
    state = fit(records, epsilon=0.1).state()
    groups = {f"groups.{place}": np.arange(100) for place in range(6)}
    cliques = [list(pair) for pair in itertools.combinations(range(6), 2)]
    potentials = {f"potential.{place}": np.zeros((100, 100)) for place in range(len(cliques))}
    kept = {name: tensor for name, tensor in state.tensors.items() if name.startswith("marginal")}
    config = {**state.config, "cliques": cliques, "units": []}
    with pytest.raises(ReleaseError, match="memory"):
        Marginals.from_state(records.schema, State({**kept, **groups, **potentials}, config))


def test_columns_that_noise_leaves_no_values_of_take_few_axes() -> None:
    """Each is one group, so that a bucket of them has one cell, however many there are."""
    records = random_records(schema_of({f"c{i}": {"type": "boolean"} for i in range(100)}), 30)
    drawn = fit(records, epsilon=0.1).sample(5, np.random.default_rng(0), {})
    assert len(drawn) == 100


def test_a_potential_that_nobody_paid_for_is_noticed() -> None:
    model = fit(random_records(make_table(10).schema, 300), epsilon=0.5)
    clique = next(pair for pair in itertools.combinations(range(4), 2) if pair not in model.potentials)
    model.potentials[clique] = np.zeros([model.axes.sizes[v] for v in clique])
    for units in model.units:
        units.append(0)
    charges = Marginals.plan(
        model.schema, Budget(0.5, 1e-6), MarginalsConfiguration(), already=(), records=None
    ).charges
    names = " and ".join("abcd"[v] for v in clique)
    assert f"marginal of {names}" in read_model("marginals", model.schema, model.state()).find_unpaid(charges)


def test_potentials_whose_sum_is_no_number_are_refused() -> None:
    state = fit(make_table(200)).state()
    huge = {name: np.full_like(t, 1e300) if name.startswith("potential") else t for name, t in state.tensors.items()}
    with pytest.raises(ReleaseError, match="potential"):
        Marginals.from_state(make_table(1).schema, State(huge, state.config))


def test_a_column_of_one_group_is_in_no_pair() -> None:
    rng = np.random.default_rng(0)
    schema = schema_of({name: {"type": "integer", "min": 0, "max": 39} for name in ("x", "still")})
    codes = {"x": rng.integers(0, 40, 2000).astype(np.uint8), "still": np.zeros(2000, np.uint8)}
    models = [fit(Records(schema, codes, 2000), epsilon=1.0, seed=seed) for seed in range(5)]
    single = [model for model in models if not model.groups["still"].any()]
    assert single
    assert [model.list_measured() for model in single] == [[]] * len(single)


def test_pairs_of_the_target_are_measured_more_often() -> None:
    exact = make_table(500)
    schema = Schema.from_dict({**exact.schema.to_dict(), "target": "b"})
    plan = Marginals.plan(schema, Budget(1.0, 1e-6), MarginalsConfiguration(), already=(), records=None)
    columns = {name: Measurement(np.full(4, 125.0), np.array(1.0)) for name in "abcd"}
    learner = Learner(
        Records(schema, exact.codes, 500), columns, MarginalsConfiguration(), plan.scale, np.random.default_rng(0)
    )
    units = learner.divide(plan.rounds[0], [(0, 1), (2, 3)])
    assert units[0, 1] == pytest.approx(2.5 * units[2, 3], rel=0.1)
    assert sum(units.values()) == plan.rounds[0].units
