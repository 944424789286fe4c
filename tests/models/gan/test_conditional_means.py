"""What a generator starts from: means by value, shares of values, and series without what is noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.material import random_records, schema_of
from tests.models.gan.material import GAPS, IMAGES, LABEL, SERIES, TABLE
from torch import Tensor

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.models.gan.conditional_means import ConditionalMeans, _smooth, make_people_charge, measure_conditional_means
from sundog.models.neural.features import Features
from sundog.models.neural.noisy_means import MeansPlan
from sundog.models.protocol import FitContext
from sundog.privacy.ledger import Budget, Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource

EXACT = MeansPlan(norm_epsilon=1e4, noise_multiplier=1e-3)  # of an ε that nobody would ask for
EPSILON = 1e8


def measure_exactly(
    records: Records, condition: str | None, *, count: int | None = None, plan: MeansPlan = EXACT
) -> ConditionalMeans:
    """At an ε so large that nothing is hidden."""
    counting = [make_people_charge(Budget(1e4, 1e-5))] if records.unit is not None else []
    ledger = Ledger(epsilon=EPSILON, delta=1e-5, noise=NoiseSource.seeded(0))
    found = measure_conditional_means(
        Features(records.schema),
        records,
        plan,
        ledger,
        FitContext(),
        condition=condition,
        count=float(len(records) if count is None else count),
        people_charge=counting[0] if counting else None,
    )
    assert merge_blocks(ledger.charges) == [*counting, *plan.charges]
    return found


def take_vectors(records: Records) -> Any:
    return Features(records.schema).to_examples(records).take_vectors(np.arange(len(records))).double().numpy()


# --- means and shares ---


@pytest.mark.parametrize(("schema", "n"), [(TABLE, 300), (IMAGES, 300)], ids=["table", "images"])
def test_means_by_value_are_those_of_the_records(schema: Schema, n: int) -> None:
    records = random_records(schema, n)
    records.codes["label"][:] = np.arange(n) % 7 % 3  # 3/7, 2/7, 2/7
    found, rows = measure_exactly(records, "label"), take_vectors(records)
    of = records.codes["label"]
    np.testing.assert_allclose(found.shares.numpy(), np.bincount(of) / n, atol=1e-3)
    for value in range(3):
        np.testing.assert_allclose(found.means[value].numpy(), rows[of == value].mean(axis=0), atol=2e-3)
    logits = found.logits(Features(schema))
    assert logits.shape == (3, rows.shape[1])
    back = Features(schema).means(logits).numpy()
    for value in range(3):
        np.testing.assert_allclose(back[value], rows[of == value].mean(axis=0), atol=2e-2)


def test_means_of_all_where_nothing_is_told() -> None:
    records = random_records(TABLE, 300)
    found = measure_exactly(records, None)
    assert found.shares.shape == (0,)
    (mean,) = found.means
    np.testing.assert_allclose(mean.numpy(), take_vectors(records).mean(axis=0), atol=1e-3)


def test_logits_are_those_of_what_is_there() -> None:
    """The mean level of all records is lower, where some are missing."""
    records = random_records(GAPS, 400)
    records.codes["meter"][:] = 60
    records.codes["meter"][:200] = GAPS.columns["meter"].size - 1  # missing in one half
    features = Features(GAPS)
    found = measure_exactly(records, None)
    np.testing.assert_allclose(found.means[0][features.at("meter")].numpy(), 0.3, atol=2e-3)
    logits = found.logits(features)[0]
    np.testing.assert_allclose(logits[features.at("meter")].sigmoid().numpy(), 0.6, atol=5e-3)
    np.testing.assert_allclose(logits[features.gaps].sigmoid().numpy(), 0.5, atol=5e-3)


@pytest.mark.parametrize("multiplier", [1e-3, 0.1])
def test_a_rare_value_has_its_own_mean_and_share(multiplier: float) -> None:
    records = random_records(IMAGES, 20_000)
    rare = np.arange(20_000) % 2000 == 0  # ten of them
    records.codes["label"][:] = np.where(rare, 2, np.arange(20_000) % 2)
    records.codes["image"][rare] = 255
    records.codes["image"][~rare] = 0
    found = measure_exactly(records, "label", plan=MeansPlan(norm_epsilon=1e4, noise_multiplier=multiplier))
    at = Features(IMAGES).at("image")
    assert float(found.means[2][at].mean()) == pytest.approx(1.0, abs=0.05)
    assert float(found.means[0][at].mean()) == pytest.approx(0.0, abs=0.05)
    assert float(found.shares[2]) == pytest.approx(10 / 20_000, rel=0.2)
    assert found.scales[2] == pytest.approx(1000 * found.scales[0], rel=0.2)


def test_a_value_lost_in_the_noise_is_thought_to_be_like_all_records() -> None:
    records = random_records(IMAGES, 20_000)
    records.codes["label"][:] = np.where(np.arange(20_000) < 2, 2, np.arange(20_000) % 2)
    records.codes["image"][records.codes["label"] == 0] = 255
    records.codes["image"][records.codes["label"] == 1] = 0
    found = measure_exactly(records, "label", plan=MeansPlan(norm_epsilon=1e4, noise_multiplier=3.0))
    assert float(found.means[2][Features(IMAGES).at("image")].mean()) == pytest.approx(0.5, abs=0.02)
    assert 0 < float(found.shares[2]) < 0.005


def test_a_value_that_nobody_has_gets_a_small_share_and_a_mean() -> None:
    records = random_records(TABLE, 300)
    records.codes["label"][:] = np.arange(300) % 2
    found = measure_exactly(records, "label")
    assert found.shares.tolist() == pytest.approx([0.5, 0.5, 0.0], abs=2e-4)
    assert found.shares[2] > 0
    assert float(found.shares.sum()) == pytest.approx(1.0)
    assert all(((mean >= 0) & (mean <= 1)).all() for mean in found.means)
    assert found.logits(Features(TABLE)).isfinite().all()


@pytest.mark.parametrize("count", [1, 10**6])
def test_a_count_that_is_wrong_by_far_is_no_trouble(count: int) -> None:
    found = measure_exactly(random_records(TABLE, 50), "label", count=count)
    assert float(found.shares.sum()) == pytest.approx(1.0)
    assert found.logits(Features(TABLE)).isfinite().all()


def test_means_of_people_weigh_each_person_once() -> None:
    schema = schema_of({"label": LABEL}, unit="who", cap=4)
    unit = np.array([0] * 4 + [1, 2] + [3] * 2)
    codes = np.array([0, 0, 0, 1, 2, 2, 1, 1], np.uint8)
    records = Records(schema, {"label": np.tile(codes, 30)}, 240)
    unit = np.concatenate([unit + 4 * number for number in range(30)])
    found = measure_exactly(replace(records, unit=unit), None)
    (mean,) = found.means
    assert mean.tolist() == pytest.approx([0.75 / 4, 1.25 / 4, 2 / 4], abs=1e-2)  # and not 3, 3, 2 of 8


def test_no_records_at_all_are_a_start_too() -> None:
    for condition in ("label", None):
        found = measure_exactly(random_records(TABLE, 0), condition)
        assert found.logits(Features(TABLE)).isfinite().all()


# --- smoothing ---

LENGTH = 48
METERS = schema_of({"label": LABEL, "meter": {**SERIES, "length": LENGTH}})
HOURS = torch.arange(LENGTH) / LENGTH


def add_noise(truth: Tensor, scale: float, seed: int) -> Tensor:
    """Means of records with a label, and white noise in them."""
    noise = torch.randn(LENGTH, generator=torch.Generator().manual_seed(seed))
    return torch.cat([torch.tensor([0.2, 0.3, 0.5]), truth + scale * noise])[None]


def smooth(means: Tensor, *scales: float, schema: Schema = METERS) -> list[Tensor]:
    return list(_smooth(Features(schema), torch.zeros(0), means.clone(), np.array(scales)).means)


def compute_distance(first: Tensor, second: Tensor) -> float:
    return float((first - second).square().mean().sqrt())


@pytest.mark.parametrize("seed", range(8))
def test_a_clear_rhythm_stays_and_white_noise_goes(seed: int) -> None:
    truth = 0.5 + 0.2 * torch.sin(2 * torch.pi * HOURS) + 0.1 * torch.cos(6 * torch.pi * HOURS + 1)
    means = add_noise(truth, 0.04, seed)
    (found,) = smooth(means, 0.04)
    assert compute_distance(found[3:], truth) < 0.6 * compute_distance(
        means[0, 3:], truth
    )  # √(5/48) = 0.32 of it, if all of it is found
    assert torch.equal(found[:3], means[0, :3])  # what is no series stays as it was


def test_noise_alone_becomes_a_level() -> None:
    levels = [smooth(add_noise(torch.full((LENGTH,), 0.4), 0.05, seed), 0.05)[0][3:] for seed in range(40)]
    flat = [level for level in levels if float(level.std()) < 1e-5]
    # A wave of noise stands out once in exp(2.5²) = 518, and there are 24: nineteen in twenty are flat.
    assert len(flat) >= 33
    assert all(float(level.mean()) == pytest.approx(0.4, abs=0.04) for level in levels)


def test_each_value_is_smoothed_by_its_own_noise() -> None:
    truth = 0.5 + 0.06 * torch.sin(2 * torch.pi * HOURS)  # a wave of 0.06 · √48 / 2 = 0.21
    sure, unsure = smooth(torch.cat([add_noise(truth, 0.0, 0)] * 2), 0.05, 0.1)
    assert compute_distance(sure[3:], truth) < 1e-5
    assert compute_distance(unsure[3:], torch.full((LENGTH,), 0.5)) < 1e-5


@pytest.mark.parametrize("length", [1, 2, 7, 48])
def test_without_noise_nothing_changes_whatever_the_length(length: int) -> None:
    schema = schema_of({"meter": {**SERIES, "length": length, "nullable": True}})
    means = torch.rand(2, 2 * length, generator=torch.Generator().manual_seed(length)) * 0.8 + 0.1
    for found, mean in zip(smooth(means, 0.0, 0.0, schema=schema), means, strict=True):
        torch.testing.assert_close(found, mean)


def test_what_says_that_values_are_missing_and_images_are_left_alone() -> None:
    for schema in (GAPS, IMAGES):
        features = Features(schema)
        means = torch.rand(1, features.width, generator=torch.Generator().manual_seed(1))
        (found,) = smooth(means, 10.0, schema=schema)
        series = features.at("meter") if schema is GAPS else slice(0, 0)
        others = [column for column in range(features.width) if not series.start <= column < series.stop]
        assert torch.equal(found[others], means[0, others])
        assert schema is IMAGES or not torch.equal(found[series], means[0, series])


def test_smoothed_means_are_means() -> None:
    truth = (HOURS < 0.5).float()  # its first rhythms alone go beyond 0 and 1
    (found,) = smooth(add_noise(truth, 0.0, 0), 0.3)
    assert ((found >= 0) & (found <= 1)).all()
    assert 0.0 < compute_distance(found[3:], truth) < 0.35
