"""The autoencoder: its contract, then what it learns, how it goes on, and what it refuses."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.material import KINDS, decode_records, random_records, schema_of
from tests.contracts.model_contract import ModelContract
from tests.contracts.resumption import assert_resumes
from tests.models.twin_columns import COLUMNS, TABLE, pair_distance, table

from sundog.data.code_set import CodeSet
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ReleaseError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.independent.configuration import IndependentConfiguration
from sundog.models.independent.independent import Independent
from sundog.models.neural import network_training
from sundog.models.neural.features import Features
from sundog.models.neural.noisy_means import MeansPlan
from sundog.models.protocol import FitContext, State
from sundog.models.released import LATENT
from sundog.models.vae.configuration import VaeConfiguration
from sundog.models.vae.latent_moments import make_latent_charge
from sundog.models.vae.released import ReleasedVae
from sundog.models.vae.vae import Vae
from sundog.privacy.events import Charge, Gaussian, SampledGaussian
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release

QUICK: dict[str, Any] = {"hidden": 8, "latent": 3, "batch": 50, "epochs": 4, "learning_rate": 0.1}


class TestVae(ModelContract):
    model = Vae
    settings = QUICK


@cache
def fit_table() -> Vae:
    settings = {"hidden": 40, "latent": 4, "batch": 200, "epochs": 30, "beta": 0.5}
    plan = Vae.plan(TABLE, Budget(50.0, 1e-5), VaeConfiguration.parse(settings), already=(), records=4000)
    ledger = Ledger(epsilon=50.0, delta=1e-5, noise=NoiseSource.seeded(1))
    return Vae.fit(table(), plan, ledger, FitContext(seed=2))


# --- what it learns ---


def test_it_learns_what_belongs_together() -> None:
    plan = Independent.plan(TABLE, Budget(50.0, 1e-5), IndependentConfiguration(), already=(), records=None)
    independent = Independent.fit(table(), plan, Ledger(epsilon=50.0, delta=1e-5), FitContext())
    far = pair_distance(independent.sample(20_000, np.random.default_rng(0), {}), table().codes)
    near = pair_distance(fit_table().sample(20_000, np.random.default_rng(0), {}), table().codes)
    assert far > 0.4
    assert near < 0.5 * far


def test_conditions_change_the_other_columns() -> None:
    drawn = fit_table().sample(4000, np.random.default_rng(3), {"kind": 0})
    assert set(drawn["kind"].tolist()) == {0}
    assert float(np.mean(drawn["twin"] == 0)) > 0.5  # 0.925 in the data, 0.17 without the condition
    assert float(np.mean(drawn["size"] < 250)) > 0.5  # 1 in the data, 0.1 without
    both = fit_table().sample(2000, np.random.default_rng(3), {"twin": 3, "size": 800})
    assert set(both["size"].tolist()) == {800}
    assert float(np.mean(both["kind"] == 3)) > 0.85


def test_conditional_samples_are_those_of_the_joint_distribution() -> None:
    free = fit_table().sample(40_000, np.random.default_rng(4), {})
    chosen = free["twin"] == 1
    bound = fit_table().sample(8000, np.random.default_rng(5), {"twin": 1})
    p = np.bincount(free["kind"][chosen], minlength=4) / chosen.sum()
    q = np.bincount(bound["kind"], minlength=4) / 8000
    assert 0.5 * np.abs(p - q).sum() < 0.04


@pytest.mark.parametrize("where", [{"twin": CodeSet.of([1, 2])}, {"size": CodeSet.between(130, 613)}], ids=str)
def test_sets_of_values_have_their_share_of_the_joint_distribution(where: dict[str, CodeSet]) -> None:
    """Values that are chosen out of free samples are the slow way to the same distribution."""
    ((name, allowed),) = where.items()
    free = fit_table().sample(40_000, np.random.default_rng(4), {})
    chosen = np.isin(free[name], [code for first, last in allowed.ranges for code in range(first, last + 1)])
    bound = fit_table().sample(8000, np.random.default_rng(5), where)
    assert all(code in allowed for code in bound[name].tolist())
    for column, cells in (("kind", 4), ("twin", 4)):
        p = np.bincount(free[column][chosen], minlength=cells) / chosen.sum()
        q = np.bincount(bound[column], minlength=cells) / 8000
        assert 0.5 * np.abs(p - q).sum() < 0.04
    assert math.exp(fit_table().log_evidence(where)) == pytest.approx(chosen.mean(), abs=0.02)


def test_more_records_than_one_chunk_has() -> None:
    drawn = fit_table().sample(25_001, np.random.default_rng(6), {})
    assert {len(codes) for codes in drawn.values()} == {25_001}
    assert not np.array_equal(drawn["size"][:10_000], drawn["size"][10_000:20_000])
    bound = fit_table().sample(10_001, np.random.default_rng(6), {"kind": 2})
    assert bound["kind"].tolist() == [2] * 10_001


def test_values_that_are_often_missing_are_as_large_as_they_were() -> None:
    """A mean over all records counts what is missing as 0; a decoder is about what is there."""
    column = {"type": "series", "length": 3, "min": 0, "max": 100, "resolution": 1, "nullable": True}
    schema = schema_of({"meter": column}, records=2000)
    codes = np.full((2000, 3), 80, schema.columns["meter"].dtype)
    codes[np.random.default_rng(0).random(codes.shape) < 0.5] = schema.columns["meter"].null_code
    plan = Vae.plan(schema, Budget(20.0, 1e-5), VaeConfiguration.parse({**QUICK}), already=(), records=2000)
    ledger = Ledger(epsilon=20.0, delta=1e-5, noise=NoiseSource.seeded(1))
    drawn = Vae.fit(Records(schema, {"meter": codes}, 2000), plan, ledger, FitContext(seed=2)).sample(
        4000, np.random.default_rng(0), {}
    )["meter"]
    there = drawn != schema.columns["meter"].null_code
    assert there.mean(axis=0) == pytest.approx(0.5, abs=0.06)
    assert drawn[there].mean() == pytest.approx(80, abs=3)


def test_conditions_have_the_same_probability_whoever_asks() -> None:
    found = [fit_table().log_evidence({"kind": kind}) for kind in range(4)]
    assert np.exp(found) == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.03)
    again = Vae.from_state(TABLE, fit_table().state())
    assert [again.log_evidence({"kind": kind}) for kind in range(4)] == found
    object.__setattr__(again.sampler, "decoder", None)
    assert again.log_evidence({"kind": 2}) == found[2]  # is remembered


def test_few_candidates_at_a_time_are_as_good_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = []
    for numbers in (2**23, 40 * 500):  # 500 at a time
        monkeypatch.setattr(network_training, "_NUMBERS", numbers)
        model = Vae.from_state(TABLE, fit_table().state())
        drawn = model.sample(4000, np.random.default_rng(3), {"kind": 0})
        shares.append(np.bincount(drawn["twin"], minlength=4) / 4000)
    assert model.sampler.rows == 500
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.06


# --- going on, and watching ---


def fit(out: Path | None, *, resume: bool = False, progress: Any = None, **options: Any) -> Release:
    settings = {**QUICK, "epochs": 3, "batch": 100}
    options = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "seed": 4,
        "noise": NoiseSource.seeded(1),
        "settings": settings,
        **options,
    }
    also = {} if progress is None else {"progress": progress}
    return Synthesizer("vae", **options).fit(decode_records(table(500)), TABLE, out=out, resume=resume, **also).release_


def test_a_fit_that_was_interrupted_ends_as_one_that_was_not(tmp_path: Path) -> None:
    assert_resumes(fit, tmp_path, stops=lambda spends: spends % 3 == 0)


def test_the_loss_is_shown_to_those_who_insist_and_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sundog.training.progress_messages._INTERVAL", 0.0)
    messages: list[str] = []
    fit(None, progress=lambda text, done: messages.append(text))
    assert any("training: step" in text for text in messages)
    assert not any("loss" in text for text in messages)
    fit(None, progress=lambda text, done: messages.append(text), show_loss=True)
    assert any("loss" in text and "NOT PRIVATE" in text for text in messages)


def test_a_seed_fixes_where_it_begins() -> None:
    first, same, other = (fit(None, seed=seed).model.state().tensors["0.weight"] for seed in (4, 4, 5))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


# --- the plan ---


def test_a_batch_is_a_thirty_second_of_the_records() -> None:
    plan = Vae.plan(TABLE, Budget(1.0, 1e-6), VaeConfiguration(), already=(), records=64_000)
    assert plan.network.training.expected_batch == 2000
    assert plan.network.records == 64_000


@pytest.mark.parametrize("records", [-20, 0, 1])
def test_a_noisy_count_may_be_anything(records: int) -> None:
    plan = Vae.plan(TABLE, Budget(1.0, 1e-6), VaeConfiguration.parse({**QUICK}), already=(), records=records)
    assert plan.network.records == 1
    assert plan.network.training.sample_rate == 1.0


def test_moments_of_many_latent_variables_are_not_measured() -> None:
    for latent, is_due in ((64, True), (65, False)):
        settings = {**QUICK, "latent": latent}
        plan = Vae.plan(TABLE, Budget(1.0, 1e-6), VaeConfiguration.parse(settings), already=(), records=200)
        assert any(charge.purpose == LATENT for charge in plan.charges) is is_due
        ledger = Ledger(epsilon=1.0, delta=1e-6)
        model = Vae.fit(table(200), plan, ledger, FitContext())
        assert {charge.purpose for charge in ledger.charges} == {charge.purpose for charge in plan.charges}
        released = ReleasedVae(TABLE, model.state())
        assert released.find_unpaid(plan.charges) == []
        rest = [charge for charge in plan.charges if charge.purpose != LATENT]
        assert bool(released.find_unpaid(rest)) is is_due


# --- what it refuses ---


def test_people_with_several_records_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    schema = schema_of(COLUMNS, unit="person", cap=3)
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    data = {**decode_records(table(500)), "person": np.arange(500)}
    with pytest.raises(SundogError, match=r"protects single records.*set `cap: 1`.*independent"):
        Synthesizer("vae", epsilon=2.0, ledger=ledger).fit(data, schema)
    assert ledger.charges == ()


def test_people_with_one_record_each_are_not(tmp_path: Path) -> None:
    schema = schema_of(COLUMNS, unit="person", records=400)
    data = {**decode_records(table(500)), "person": np.arange(500) // 2}
    release = Synthesizer("vae", epsilon=2.0, delta=1e-6, settings=QUICK).fit(data, schema).release_
    assert release.verify() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden", 0),
        ("hidden", 1.5),
        ("latent", 10**9),
        ("latent", True),
        ("batch", 0),
        ("batch", "all"),
        ("epochs", 0),
        ("epochs", float("inf")),
        ("clip", -1),
        ("learning_rate", None),
        ("learning_rate", 11),
        ("beta", float("nan")),
        ("warmup", 2),
    ],
)
def test_invalid_settings_are_refused_before_anything_is_spent(name: str, value: Any) -> None:
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    with pytest.raises(SundogError, match=f"setting '{name}' must be"):
        Synthesizer("vae", epsilon=2.0, ledger=ledger, settings={name: value}).fit(decode_records(table(50)), TABLE)
    assert ledger.charges == ()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(SundogError, match="no CUDA device here; leave the device out"):
        fit(None, device="cuda")
    with pytest.raises(SundogError, match="no device 'abacus'; choose cpu or cuda"):
        fit(None, device="abacus")


def test_only_a_training_pays_for_weights() -> None:
    released = ReleasedVae(TABLE, _state())
    event = SampledGaussian(noise_multiplier=1.0, sample_rate=0.1)
    means = (*MeansPlan(0.01, 20.0).charges, make_latent_charge(20.0))
    assert released.find_unpaid([*means, Charge(event=event, count=3, purpose="training")]) == []
    assert released.find_unpaid([*means, Charge(event=event, count=3, purpose="something else")]) != []
    assert released.find_unpaid([*means, Charge(event=Gaussian(noise_multiplier=1.0), purpose="training")]) != []
    assert released.find_unpaid([*means[1:], Charge(event=event, count=3, purpose="training")]) == ["length of records"]
    assert released.find_unpaid([*means[:2], Charge(event=event, count=3, purpose="training")]) != []


def _state(schema: Schema = TABLE, *, hidden: int = 5, latent: int = 2) -> State:
    width = Features(schema).width
    shapes = {"0.weight": (hidden, latent), "0.bias": (hidden,), "2.weight": (width, hidden), "2.bias": (width,)}
    rng = np.random.default_rng(0)
    tensors = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return State(tensors, {"hidden": [hidden], "latent": latent, "condition": None, "records": 100})


@pytest.mark.parametrize(
    "config",
    [
        {"hidden": [6]},
        {"hidden": 5},
        {"hidden": []},
        {"hidden": [5, 5]},
        {"latent": 3},
        {"hidden": [2], "latent": 5},
        {"records": 0},
        {"more": 1},
        {"hidden": [2**62]},
        {"hidden": [2**16] * 4},
        {"condition": "no such column"},
        {"condition": "size"},
        {"condition": 3},
    ],
)
def test_a_configuration_of_other_weights_is_refused(config: dict[str, Any]) -> None:
    state = _state()
    with pytest.raises(ReleaseError):
        Vae.from_state(TABLE, State(state.tensors, {**state.config, **config}))


@pytest.mark.parametrize("size", [1e30, 3e38])
def test_enormous_weights_draw_records_all_the_same(size: float) -> None:
    schema = schema_of(KINDS["mix"])
    state = _state(schema)
    harmed = {name: (np.sign(tensor) * size).astype(np.float32) for name, tensor in state.tensors.items()}
    model = Vae.from_state(schema, State(harmed, state.config))
    for where in ({}, {"integer": 3}):
        codes = model.sample(20, np.random.default_rng(0), where)
        for name, column in schema.columns.items():
            column.decode(codes[name])


def test_random_records_fit_a_release_of_every_kind_at_once(tmp_path: Path) -> None:
    schema = schema_of({**KINDS["all_scalars"], **KINDS["mix"]}, records=100)
    data = decode_records(random_records(schema, 80))
    Synthesizer("vae", epsilon=1.0, delta=1e-6, settings=QUICK).fit(data, schema, out=tmp_path / "o.sundog")
    assert Release.load(tmp_path / "o.sundog").verify() == []
