"""The independent model: its contract, then its marginals against oracles."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from tests.contracts.material import KINDS, constant_records, random_records, schema_of
from tests.contracts.model_contract import ModelContract

from sundog.data.bins import make_bins
from sundog.data.columns import SetColumn
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.models.independent.column_marginals import to_simplex
from sundog.models.independent.configuration import IndependentConfiguration
from sundog.models.independent.independent import Independent, IndependentPlan
from sundog.models.protocol import FitContext, State
from sundog.privacy.events import DiscreteGaussian
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]


class TestIndependent(ModelContract):
    model = Independent


def plan(schema: Schema, *, epsilon: float = 1.0, delta: float = 1e-6) -> IndependentPlan:
    return Independent.plan(schema, Budget(epsilon, delta), IndependentConfiguration(), already=(), records=None)


def fit(records: Records, plan: IndependentPlan, *, seed: int | None = None) -> Independent:
    noise = None if seed is None else NoiseSource.seeded(seed)
    ledger = Ledger(epsilon=1e6, delta=1e-6, noise=noise)
    return Independent.fit(records, plan, ledger, FitContext())


def scale_noise(plan: IndependentPlan, factor: float) -> IndependentPlan:
    """The same plan with all noise multiplied."""
    sigma = {name: factor * value for name, value in plan.sigma.items()}
    charges = tuple(
        charge.model_copy(update={"event": DiscreteGaussian(sigma=factor * charge.event.sigma)})
        for charge in plan.charges
        if isinstance(charge.event, DiscreteGaussian)
    )
    return replace(plan, charges=charges, sigma=sigma)


def true_marginals(records: Records) -> dict[str, Floats]:
    """By brute force: one record, one position, one count at a time."""
    marginals: dict[str, Floats] = {}
    for name, column in records.schema.columns.items():
        codes = records.codes[name]
        if isinstance(column, SetColumn):
            marginals[name] = codes.toarray().mean(axis=0)
            continue
        bins = make_bins(column)
        counts = np.zeros((math.prod(column.shape), bins.count))
        for record in codes.reshape(len(records), -1):
            for position, bin_ in enumerate(bins.to_bins(record)):
                counts[position, int(bin_)] += 1
        marginals[name] = (counts if column.shape else counts[0]) / len(records)
    return marginals


# --- without noise ---


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_huge_budget_the_marginals_are_the_true_ones(kind: str) -> None:
    records = random_records(schema_of(KINDS[kind]), 80)
    exact = scale_noise(plan(records.schema), 1e-3)  # discrete noise this small is zero
    model = fit(records, exact)
    assert model.records == 80
    for name, marginal in true_marginals(records).items():
        assert np.allclose(model.marginals[name], marginal, atol=1e-12), name


def test_epsilon_of_two_hundred_is_as_good_as_no_noise() -> None:
    columns: dict[str, dict[str, Any]] = {
        "colour": {"type": "categorical", "values": ["r", "g"]},
        "n": {"type": "integer", "min": 0, "max": 4},
    }
    records = random_records(schema_of(columns), 200)
    model = fit(records, plan(records.schema, epsilon=200.0))
    for name, marginal in true_marginals(records).items():
        assert np.allclose(model.marginals[name], marginal, atol=1e-12), name


def test_the_samples_have_the_marginals_of_the_model() -> None:
    records = random_records(schema_of(KINDS["mix"]), 400)
    model = fit(records, plan(records.schema), seed=1)
    codes = model.sample(20_000, np.random.default_rng(2), {})
    drawn = true_marginals(Records(records.schema, codes, 20_000).take(slice(0, 4000)))
    for name, marginal in model.marginals.items():
        if not isinstance(records.schema.columns[name], SetColumn):  # capping sets moves theirs
            assert np.abs(drawn[name] - marginal).max() < 5 * 0.5 / math.sqrt(4000), name


def test_a_bin_is_filled_evenly() -> None:
    schema = schema_of({"n": {"type": "integer", "min": 0, "max": 999, "bins": 10}})
    model = fit(constant_records(schema, 1000), scale_noise(plan(schema), 1e-3))
    drawn = model.sample(50_000, np.random.default_rng(0), {})["n"]
    assert stats.chisquare(np.bincount(drawn, minlength=100)).pvalue > 1e-6
    assert drawn.max() == 99


# --- with noise: the bundled real data ---


@cache
def _adult() -> tuple[Records, dict[str, Floats]]:
    folder = resources.files("sundog.demo")
    with resources.as_file(folder / "adult.csv.gz") as data, resources.as_file(folder / "adult.schema.yaml") as schema:
        declared = Schema.load(schema)
        records = encode(read(data, declared), declared)
    counts = {
        name: np.bincount(make_bins(column).to_bins(records.codes[name]), minlength=make_bins(column).count)
        for name, column in declared.columns.items()
    }
    return records, {name: count / len(records) for name, count in counts.items()}


@cache
def _adult_plan() -> IndependentPlan:
    return plan(_adult()[0].schema, epsilon=1.0, delta=1e-5)


def _mean_tvd(factor: float, seed: int) -> float:
    records, truth = _adult()
    model = fit(records, scale_noise(_adult_plan(), factor), seed=seed)
    return float(np.mean([0.5 * np.abs(model.marginals[name] - p).sum() for name, p in truth.items()]))


def _expected_tvd() -> float:
    """What the noise alone does to the marginals before they are made consistent: E|noise| = σ·√(2/π) a cell."""
    records, truth = _adult()
    sigma = _adult_plan().sigma
    parts = [0.5 * len(p) * math.sqrt(2 / math.pi) * sigma[name] / len(records) for name, p in truth.items()]
    return float(np.mean(parts))


@pytest.mark.parametrize(("factor", "right"), [(1 / 3, False), (2 / 3, False), (1, True), (1.5, False), (3, False)])
def test_at_epsilon_one_the_marginals_of_real_data_are_as_close_as_the_noise_allows(factor: float, right: bool) -> None:
    # Over 40 seeds the mean distance is 0.89 ± 0.05 of what is expected before projection (which takes noise off empty
    # cells), so the mean of four has a standard error of 0.025: the bounds are six of those away.
    expected = _expected_tvd()
    assert expected < 0.012
    found = float(np.mean([_mean_tvd(factor, seed) for seed in range(4)]))
    assert (0.74 * expected < found < 1.04 * expected) is right


# --- the plan ---


def test_noise_is_dealt_out_by_the_cube_root_of_the_cells() -> None:
    columns: dict[str, dict[str, Any]] = {
        "two": {"type": "categorical", "values": ["a", "b"]},
        "sixteen": {"type": "integer", "min": 1, "max": 16},
        "null": {"type": "integer", "min": 0, "max": 125, "nullable": True},
    }
    sigma = plan(schema_of(columns)).sigma
    assert sigma["two"] / sigma["sixteen"] == pytest.approx(2.0)
    assert sigma["two"] / sigma["null"] == pytest.approx((127 / 2) ** (1 / 3))


def test_a_record_is_charged_once_for_each_cell_it_touches() -> None:
    charges = {charge.purpose: charge.count for charge in plan(schema_of(KINDS["mix"])).charges}
    assert charges == {
        "marginal of categorical": 1,
        "marginal of integer": 1,
        "marginal of day": 1,
        "marginal of image": 2 * 3,
        "marginal of colour_image": 2 * 2 * 3,
        "marginal of series": 3,
        "marginal of numbered_set": 2 + 1,  # its items, and that it exists
        "marginal of named_set": 3 + 1,
    }


def test_the_cap_of_a_unit_multiplies_the_charge_and_the_noise() -> None:
    columns = KINDS["labelled_images"]
    alone, capped = plan(schema_of(columns)), plan(schema_of(columns, unit="person", cap=5))
    assert [charge.count for charge in capped.charges] == [5 * charge.count for charge in alone.charges]
    for name, sigma in alone.sigma.items():
        assert capped.sigma[name] / sigma == pytest.approx(math.sqrt(5), rel=0.02)


def test_the_noise_of_a_capped_unit_has_the_standard_deviation_it_is_charged_for() -> None:
    schema = schema_of({"n": {"type": "integer", "min": 0, "max": 4999, "bins": 4999}}, unit="person", cap=4)
    big = Records(schema, {"n": np.tile(np.arange(5000, dtype=schema.columns["n"].dtype), 40)}, 200_000)
    sigma = 2.5
    model = fit(big, scale_noise(plan(schema), sigma / plan(schema).sigma["n"]), seed=3)
    noise = model.marginals["n"] * model.records - 200_000 * true_counts(big) / 200_000
    assert noise.std() == pytest.approx(sigma * math.sqrt(4), rel=0.08)  # the error of the estimate is 1%


def true_counts(records: Records) -> Floats:
    bins = make_bins(records.schema.columns["n"])
    return np.bincount(bins.to_bins(records.codes["n"]), minlength=bins.count).astype(float)


# --- public columns ---


def test_public_columns_are_exact_and_cost_nothing() -> None:
    columns = {
        "region": {"type": "categorical", "values": ["north", "south"], "public": True},
        "income": {"type": "integer", "min": 0, "max": 9},
    }
    records = random_records(schema_of(columns), 90)
    public = plan(records.schema)
    assert [charge.purpose for charge in public.charges] == ["marginal of income"]
    model = fit(records, public, seed=0)
    truth = true_marginals(records)
    assert model.records == 90  # a public column tells how many there are
    assert np.array_equal(model.marginals["region"], truth["region"])
    assert not np.array_equal(model.marginals["income"], truth["income"])


def test_a_schema_of_public_columns_alone_spends_nothing() -> None:
    columns = {name: {**column, "public": True} for name, column in KINDS["mix"].items()}
    records = random_records(schema_of(columns), 60)
    free = plan(records.schema)
    ledger = Ledger(epsilon=1e-9, delta=1e-9)
    model = Independent.fit(records, free, ledger, FitContext())
    assert ledger.charges == ()
    for name, marginal in true_marginals(records).items():
        assert np.allclose(model.marginals[name], marginal), name


# --- the number of records ---


def test_the_number_of_records_is_averaged_by_precision() -> None:
    columns: dict[str, dict[str, Any]] = {
        "few": {"type": "categorical", "values": ["a", "b"]},
        "many": {"type": "integer", "min": 0, "max": 9999, "bins": 2000},
    }
    records = random_records(schema_of(columns), 5000)
    calibrated = plan(records.schema)
    errors = [fit(records, calibrated, seed=seed).records - 5000 for seed in range(60)]
    few = math.sqrt(2) * calibrated.sigma["few"]
    many = math.sqrt(2000) * calibrated.sigma["many"]
    best = 1 / math.sqrt(few**-2 + many**-2)
    # A variance out of 60 is good to a factor of 0.55 … 1.6, with three chances in a thousand to be wrong.
    assert 0.5 < float(np.mean(np.square(errors))) / best**2 < 1.8
    assert best < 0.6 * few or best < 0.6 * many


# --- projection ---


@settings(max_examples=60)
@given(st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=7))
def test_projection_onto_the_simplex_is_the_nearest_point(values: list[float]) -> None:
    p = np.array(values)
    found = to_simplex(p)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    # The nearest point is the one from which no other is in the direction of p: it is enough to look at the corners.
    corners = np.eye(len(p))
    assert ((corners - found) @ (p - found)).max() <= 1e-6


def test_projection_goes_row_by_row_and_leaves_probabilities_alone() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 5))
    assert np.allclose(to_simplex(rows), [to_simplex(row) for row in rows])
    p = rng.dirichlet(np.ones(6))
    assert np.allclose(to_simplex(p), p)


# --- sets ---


def _sets(p: list[float], max_size: int, n: int = 4000) -> Any:
    schema = schema_of({"s": {"type": "set", "universe": len(p), "max_size": max_size}})
    model = Independent.from_state(schema, State({"marginal.0": np.array(p)}, {"records": 10}))
    return model.sample(n, np.random.default_rng(0), {})["s"]


def test_sets_hold_each_item_as_often_as_its_probability_says() -> None:
    p = [0.0, 0.1, 0.5, 0.9, 1.0]
    drawn = _sets(p, max_size=5)
    assert sparse.issparse(drawn)
    assert np.abs(drawn.sum(axis=0) - drawn.shape[0] * np.array(p)).max() < 1  # that is no matter of chance
    together = drawn.toarray()[:, [1, 2]].all(axis=1).mean()
    assert together == pytest.approx(0.05, abs=0.02)  # items are independent


@pytest.mark.parametrize("max_size", [1, 2, 3])
def test_sets_never_exceed_their_largest_size(max_size: int) -> None:
    drawn = _sets([1.0, 1.0, 1.0, 1.0], max_size=max_size).toarray()
    assert drawn.max() == 1
    assert (drawn.sum(axis=1) == max_size).all()
    assert np.abs(drawn.mean(axis=0) - max_size / 4).max() < 0.04  # which items go is left to chance


@pytest.mark.parametrize("value", [1.0 + 1e-6, 5.0])
def test_a_set_item_with_a_probability_above_one_is_refused(value: float) -> None:
    with pytest.raises(ReleaseError):
        _sets([0.5, value], max_size=2)


# --- malformed marginals ---


def test_negative_and_unnormalised_marginals_are_refused() -> None:
    schema = schema_of({"n": {"type": "integer", "min": 0, "max": 2}, "i": KINDS["image"]["image"]})
    state = fit(random_records(schema, 50), plan(schema)).state()
    for name, p in (
        ("n", np.array([-0.5, 0.5, 1.0])),
        ("n", np.array([0.5, 0.5, 0.5])),
        ("n", np.zeros(3)),
        ("i", state.tensors["marginal.1"] * 2),
        ("i", state.tensors["marginal.1"].reshape(2, 3, -1)),
    ):
        key = f"marginal.{list(schema.columns).index(name)}"
        with pytest.raises(ReleaseError, match=f"'{name}'"):
            Independent.from_state(schema, State({**state.tensors, key: p}, state.config))
