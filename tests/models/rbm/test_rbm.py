"""The Boltzmann machine: its contract, then what it samples, learns and refuses."""

from __future__ import annotations

import math
import resource
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import sparse, stats
from tests.contracts.material import KINDS, decode_records, schema_of
from tests.contracts.model_contract import ModelContract
from tests.contracts.resumption import assert_resumes

from sundog.data.code_set import CodeSet
from sundog.data.records import Records
from sundog.errors import ReleaseError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.neural import network_training
from sundog.models.neural.features import Features
from sundog.models.protocol import FitContext, Parts, State
from sundog.models.rbm import rbm
from sundog.models.rbm.configuration import RbmConfiguration
from sundog.models.rbm.network import RbmNetwork
from sundog.models.rbm.rbm import Rbm
from sundog.models.rbm.released import ReleasedRbm
from sundog.privacy.events import Charge, Gaussian, SampledGaussian
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release

QUICK: dict[str, Any] = {"hidden": 20, "chains": 20, "batch": 50, "epochs": 1, "learning_rate": 0.3}  # it varies
COLUMNS: dict[str, dict[str, Any]] = {
    "kind": {"type": "categorical", "values": ["a", "b", "c"]},
    "twin": {"type": "categorical", "values": ["x", "y", "z"]},
    "basket": {"type": "set", "universe": 3, "max_size": 3},
}
TABLE = schema_of(COLUMNS, records=4000)
STATES = torch.tensor(
    [
        [float(kind == i) for i in range(3)]
        + [float(twin == i) for i in range(3)]
        + [float(b >> i & 1) for i in range(3)]
        for kind in range(3)
        for twin in range(3)
        for b in range(8)
    ]
)


class TestRbm(ModelContract):
    model = Rbm
    settings = QUICK


def table(n: int = 4000, seed: int = 0) -> Records:
    """The twin says what the kind is nine times in ten, and the items of a basket follow it."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.2, 0.3, 0.5])
    twin = np.where(rng.random(n) < 0.9, kind, rng.integers(0, 3, n))
    basket = rng.random((n, 3)) < np.where(np.eye(3, dtype=bool)[kind], 0.8, 0.1)
    codes = {
        "kind": kind.astype(np.uint8),
        "twin": twin.astype(np.uint8),
        "basket": sparse.csr_array(basket, dtype="u1"),
    }
    return Records(TABLE, codes, n)


def fit_rbm(records: Records, **settings: Any) -> Rbm:
    """With so much budget that hardly any noise is left."""
    given = {"hidden": 12, "chains": 400, "batch": 400, "epochs": 30, **settings}
    plan = Rbm.plan(records.schema, Budget(50.0, 1e-5), RbmConfiguration.parse(given), already=(), records=len(records))
    ledger = Ledger(epsilon=50.0, delta=1e-5, noise=NoiseSource.seeded(1))
    return Rbm.fit(records, plan, ledger, FitContext(seed=2))


@cache
def fit_table() -> Rbm:
    return fit_rbm(table())


def places(codes: dict[str, Any]) -> npt.NDArray[np.int64]:
    """Which of all states each record is."""
    baskets = codes["basket"].toarray().astype(np.int64) @ [1, 2, 4]
    return np.asarray(codes["kind"].astype(np.int64) * 24 + codes["twin"] * 8 + baskets)


def compute_probabilities(model: Rbm) -> npt.NDArray[np.float64]:
    """The probability of each state."""
    with torch.no_grad():
        return (-model.network.free_energy(STATES).double()).softmax(dim=0).numpy()


def make_sticky() -> Rbm:
    """Kinds that go with their twins and baskets, strongly: a chain seldom changes them, and begins without knowing."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        network = RbmNetwork(Features(TABLE), torch.full((9,), 1 / 3), hidden=4, chains=5000)
        network.hidden.weight.normal_(std=0.3)
        network.hidden.bias.normal_(std=0.3)
        for unit in range(3):
            network.hidden.weight[unit, unit::3] += 4.5
            network.visible.weight[0, 4 * unit] += 0.7  # not all of them as often
    return Rbm(TABLE, network, 100)


# --- sampling ---


def is_drawn_from(codes: dict[str, Any], p: npt.NDArray[np.float64]) -> bool:
    """By a χ² test; rare states count as one."""
    found = np.bincount(places(codes), minlength=len(p))
    expected = p * found.sum()
    common = expected >= 5
    rest = [part[~common].sum() for part in (found, expected)]
    square = float(
        ((found - expected)[common] ** 2 / expected[common]).sum() + (rest[0] - rest[1]) ** 2 / (rest[1] + 1)
    )
    return bool(stats.chi2.sf(square, common.sum()) > 1e-4)


@pytest.mark.parametrize(("moves", "is_enough"), [(None, True), (5, False)], ids=["as set", "too few"])
def test_samples_are_those_of_the_distribution(
    moves: int | None, is_enough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rbm, "_MOVES", moves or rbm._MOVES)
    model = make_sticky()
    assert is_drawn_from(model.sample(20_000, np.random.default_rng(0), {}), compute_probabilities(model)) is is_enough


def test_conditional_samples_are_those_of_the_conditional_distribution() -> None:
    model = make_sticky()
    drawn = model.sample(10_000, np.random.default_rng(1), {"twin": 1})
    assert set(drawn["twin"].tolist()) == {1}
    p = compute_probabilities(model) * (STATES[:, 4] == 1).numpy()
    assert is_drawn_from(drawn, p / p.sum())


def test_samples_under_a_set_of_values_are_those_of_the_conditional_distribution() -> None:
    model = make_sticky()
    where = {"twin": CodeSet.of([0, 2]), "kind": CodeSet.of([1, 2])}
    drawn = model.sample(10_000, np.random.default_rng(1), where)
    p = compute_probabilities(model) * ((STATES[:, 4] == 0) & (STATES[:, 0] == 0)).numpy()
    assert is_drawn_from(drawn, p / p.sum())
    assert abs(math.exp(model.log_evidence(where)) - p.sum()) < 6 * math.sqrt(p.sum() / rbm._EVIDENCE)


def test_conditions_have_their_probability() -> None:
    model = make_sticky()
    p = compute_probabilities(model)
    for where, held in (({"twin": 1}, STATES[:, 4]), ({"kind": 0, "twin": 2}, STATES[:, 0] * STATES[:, 5])):
        expected = float(p[(held == 1).numpy()].sum())
        found = math.exp(model.log_evidence(where))
        assert abs(found - expected) < 6 * math.sqrt(expected / rbm._EVIDENCE)
    assert model.log_evidence({}) == pytest.approx(0.0)


def test_conditions_have_the_same_probability_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [make_sticky().log_evidence({"twin": 1}) for _ in range(2)]
    assert found[0] == found[1]
    monkeypatch.setattr(network_training, "_NUMBERS", 9 * 100)  # 100 chains at a time
    model = make_sticky()
    assert math.exp(model.log_evidence({"twin": 1}) - found[0]) == pytest.approx(1, rel=0.2)
    model.network.move = None  # type: ignore[assignment, method-assign]
    assert model.log_evidence({"kind": 1}) < 0.0  # no chain moves again


def test_more_records_than_one_chunk_has() -> None:
    drawn = make_sticky().sample(12_001, np.random.default_rng(6), {"kind": 2})
    assert drawn["kind"].tolist() == [2] * 12_001
    assert drawn["basket"].shape == (12_001, 3)
    assert not np.array_equal(drawn["twin"][:2001], drawn["twin"][10_000:])


# --- what it learns ---


def distance(p: npt.NDArray[np.float64], q: npt.NDArray[np.float64]) -> float:
    return 0.5 * float(np.abs(p - q).sum())


def test_it_learns_what_belongs_together() -> None:
    data = np.bincount(places(table(40_000, seed=1).codes), minlength=72) / 40_000
    cells = data.reshape(3, 3, 8)
    alone = np.einsum("i,j,k->ijk", cells.sum(axis=(1, 2)), cells.sum(axis=(0, 2)), cells.sum(axis=(0, 1))).ravel()
    drawn = np.bincount(places(fit_table().sample(40_000, np.random.default_rng(0), {})), minlength=72) / 40_000
    assert distance(data, alone) > 0.5
    assert distance(data, drawn) < 0.12
    assert distance(compute_probabilities(fit_table()), drawn) < 0.03


def test_clipping_does_not_pull_it_away() -> None:
    """Long records lose most of their gradient, and are as frequent as they were."""
    data, drawn = table().codes["basket"], fit_table().sample(20_000, np.random.default_rng(0), {})["basket"]
    sizes = [np.bincount(np.diff(sets.indptr), minlength=4) / sets.shape[0] for sets in (data, drawn)]
    assert np.abs(sizes[0] - sizes[1]).max() < 0.03


def test_parts_have_networks_of_their_own() -> None:
    records = table()
    kind = records.codes["kind"].astype(np.int64)
    sizes = tuple(float((kind == part).sum()) for part in range(3))
    settings = {"hidden": 4, "chains": 100, "batch": 400, "epochs": 5}
    plan = Rbm.plan(TABLE, Budget(20.0, 1e-5), RbmConfiguration.parse(settings), already=(), records=4000)
    ledger = Ledger(epsilon=20.0, delta=1e-5, noise=NoiseSource.seeded(1))
    models = Rbm.fit_parts(records, Parts(kind, sizes), plan, ledger, FitContext(seed=2))
    assert [model.records for model in models] == [round(size) for size in sizes]
    for part, model in enumerate(models):
        drawn = model.sample(2000, np.random.default_rng(part), {})
        assert float(np.mean(drawn["kind"] == part)) > 0.9


# --- going on ---


def fit(out: Path | None, *, resume: bool = False, seed: int = 4, settings: dict[str, Any] | None = None) -> Release:
    synthesizer = Synthesizer(
        "rbm",
        epsilon=2.0,
        delta=1e-6,
        seed=seed,
        noise=NoiseSource.seeded(1),
        settings={**QUICK, "epochs": 3, "batch": 100, **(settings or {})},
    )
    return synthesizer.fit(decode_records(table(500)), TABLE, out=out, resume=resume).release_


def test_a_fit_that_was_interrupted_ends_as_one_that_was_not(tmp_path: Path) -> None:
    """Its chains go on, too."""
    assert_resumes(fit, tmp_path, stops=lambda spends: spends in (4, 6))  # in the training, after the means


def test_a_seed_fixes_where_it_begins() -> None:
    first, same, other = (fit(None, seed=seed).model.state().tensors["hidden.weight"] for seed in (4, 4, 5))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


# --- what it refuses ---


def test_people_with_several_records_are_refused_before_anything_is_spent() -> None:
    schema = schema_of(COLUMNS, unit="person", cap=3)
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    data = {**decode_records(table(500)), "person": np.arange(500)}
    with pytest.raises(SundogError, match=r"protects single records.*set `cap: 1`.*independent"):
        Synthesizer("rbm", epsilon=2.0, ledger=ledger).fit(data, schema)
    assert ledger.charges == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden", 0),
        ("hidden", True),
        ("visible", "poisson"),
        ("visible", None),
        ("deviation", 0),
        ("deviation", 2.0),
        ("chains", 10**9),
        ("moves", 0),
        ("batch", "all"),
        ("epochs", float("inf")),
        ("clip", -1),
        ("learning_rate", None),
        ("learning_rate", 11),
        ("means", 1.0),
    ],
)
def test_invalid_settings_are_refused(name: str, value: Any) -> None:
    with pytest.raises(SundogError, match=f"model 'rbm': setting '{name}' must be"):
        RbmConfiguration.parse({name: value}).check(TABLE)


def test_only_means_and_a_training_pay_for_weights() -> None:
    released = ReleasedRbm(TABLE, make_sticky().state())
    event = SampledGaussian(noise_multiplier=1.0, sample_rate=0.1)
    plan = Rbm.plan(TABLE, Budget(1.0, 1e-6), RbmConfiguration.parse({**QUICK}), already=(), records=100)
    *means, training = plan.charges
    assert released.find_unpaid(plan.charges) == []
    assert released.find_unpaid([training]) != []
    assert released.find_unpaid([*means, Charge(event=event, count=3, purpose="something else")]) != []
    assert released.find_unpaid([*means, Charge(event=Gaussian(noise_multiplier=1.0), purpose="training")]) != []


@pytest.mark.parametrize(
    "config",
    [
        {"hidden": 5},
        {"hidden": 2**62},
        {"chains": 7},
        {"records": 0},
        {"more": 1},
        {"deviation": 0.0},
        {"deviation": "wide"},
    ],
)
def test_a_configuration_of_other_weights_is_refused(config: dict[str, Any]) -> None:
    state = make_sticky().state()
    with pytest.raises(ReleaseError):
        Rbm.from_state(TABLE, State(state.tensors, {**state.config, **config}))


@pytest.mark.parametrize("value", [-0.5, 2.0])
def test_a_centre_that_no_mean_can_be_is_refused(value: float) -> None:
    state = make_sticky().state()
    centre = np.full_like(state.tensors["centre"], value)
    with pytest.raises(ReleaseError, match="centre"):
        Rbm.from_state(TABLE, State({**state.tensors, "centre": centre}, state.config))


@pytest.mark.parametrize("deviation", [None, 0.001])
@pytest.mark.parametrize("size", [1e30, 3e38])
def test_enormous_weights_draw_records_all_the_same(size: float, deviation: float | None) -> None:
    schema = schema_of(KINDS["mix"])
    features = Features(schema)
    network = RbmNetwork(features, torch.rand(features.width), hidden=5, chains=6, deviation=deviation)
    state = Rbm(schema, network, 100).state()
    harmed = {
        name: tensor if name in ("centre", "particles") else (np.where(tensor < 0, -1, 1) * size).astype(np.float32)
        for name, tensor in state.tensors.items()
    }
    model = Rbm.from_state(schema, State(harmed, state.config))
    for where in ({}, {"integer": 3}):
        codes = model.sample(20, np.random.default_rng(0), where)
        for name, column in schema.columns.items():
            column.decode(codes[name])
    assert model.log_evidence({"integer": 3}) <= 0.0


@pytest.mark.parametrize(("chains", "is_right"), [(4096, True), (65_536, False)])
def test_a_small_file_takes_little_memory(chains: int, is_right: bool) -> None:
    """Many hidden units and many particles of few features: each hidden unit of each particle would be 17 GB."""
    schema, hidden = schema_of({"old": {"type": "boolean"}}), 2**16
    tensors: dict[str, npt.NDArray[Any]] = {
        "hidden.weight": np.zeros((hidden, 2), np.float32),
        "hidden.bias": np.zeros(hidden, np.float32),
        "visible.weight": np.zeros((1, 2), np.float32),
        "centre": np.full((1, 2), 0.5, np.float32),
        "particles": np.tile(np.array([255, 0], np.uint8), (chains, 1)),
    }
    state = State(tensors, {"hidden": hidden, "chains": chains, "deviation": None, "records": 10})
    if not is_right:
        with pytest.raises(ReleaseError):
            Rbm.from_state(schema, state)
        return
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = Rbm.from_state(schema, state)
    assert model._rows * hidden <= 2**23
    assert len(model.sample(5, np.random.default_rng(0), {})["old"]) == 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**19  # kB
