"""Noisy means of features by part: right without noise, with the noise that is paid for, whatever the records are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse, stats
from tests.contracts.material import KINDS, constant_records, random_records, schema_of

from sundog.data.records import Records
from sundog.errors import BudgetExceededError
from sundog.models.neural import noisy_means as module
from sundog.models.neural.features import FeatureRows, Features
from sundog.models.neural.noisy_means import MeansPlan, measure_means, measure_sums, plan_means
from sundog.models.protocol import FitContext, Parts
from sundog.models.released import find_unpaid_means
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]

ALARM = 1e-9
PLAN = MeansPlan(norm_epsilon=0.01, noise_multiplier=18.0)
EXACT = MeansPlan(norm_epsilon=50.0, noise_multiplier=1e-9)
BASKETS = schema_of({"basket": {"type": "set", "universe": 400, "max_size": 20}})


class Free(Ledger):
    """Takes any charge, and remembers it."""

    def __init__(self, noise: NoiseSource | None = None) -> None:
        super().__init__(epsilon=1.0, delta=1e-5, noise=noise)
        self.taken: list[Charge] = []

    def spend(self, *charges: Charge) -> None:
        self.taken += charges


def means_of(
    records: Records, parts: Parts, plan: MeansPlan = EXACT, ledger: Ledger | None = None, **options: Any
) -> tuple[Floats, Floats]:
    features = Features(records.schema)
    context = FitContext(**options)
    return measure_means(features, features.to_examples(records), parts, plan, ledger or Free(), context)


def rows_of(records: Records) -> Floats:
    features = Features(records.schema)
    rows = features.to_dense(features.to_examples(records).take(np.arange(len(records))))
    return np.asarray(rows.numpy().astype(np.float64))


def by_part(records: Records, owner: npt.NDArray[np.int64], count: int) -> tuple[Parts, Floats]:
    """The parts with their exact sizes, and the exact means."""
    rows = rows_of(records)
    sizes = np.bincount(owner, minlength=count)
    sums = np.array([rows[owner == part].sum(axis=0) for part in range(count)])
    return Parts(owner, tuple(sizes.astype(float))), sums / np.maximum(sizes, 1)[:, None]


# --- an oracle ---


@pytest.mark.parametrize("kind", ["mix", "all_scalars", "labelled_images"])
def test_with_hardly_any_noise_they_are_the_means_of_each_part(kind: str) -> None:
    """All records are as long as the longest, or nearly: a quantile that is too short would shorten some."""
    schema = schema_of(KINDS[kind])
    records = random_records(schema, 300)
    owner = np.random.default_rng(1).integers(0, 3, 300)
    parts, expected = by_part(records, owner, 3)
    found, scales = means_of(records, parts)
    rows = rows_of(records)
    longest = math.sqrt(float(np.quantile(np.ceil(np.square(rows).sum(axis=1)), 0.9)) + 1)
    shortened = rows * np.minimum(1, longest / np.linalg.norm(rows, axis=1, keepdims=True))
    lost = np.abs(shortened - rows).mean(axis=0).max()
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 3 * lost + 0.02
    assert (scales < 1e-6).all()


def test_records_of_one_length_lose_nothing() -> None:
    schema = schema_of({name: KINDS[name][name] for name in ("ordinal", "boolean", "integer")})
    records = random_records(schema, 500)
    parts, expected = by_part(records, np.random.default_rng(1).integers(0, 4, 500), 4)
    found, _ = means_of(records, parts)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("count", [0, 100])
def test_records_of_a_table_are_all_of_one_length_whatever_the_noise(count: int, last: bool) -> None:
    schema = schema_of(KINDS["all_scalars"])
    records = constant_records(schema, count, last=last)
    _, (scale,) = means_of(records, Parts.whole(100.0), MeansPlan(norm_epsilon=1e-6, noise_multiplier=50.0))
    assert scale == pytest.approx(math.sqrt(len(schema.columns)) * 50.0 / 100)


@pytest.mark.parametrize("kind", KINDS)
def test_no_record_is_shorter_or_longer_than_a_schema_allows(kind: str) -> None:
    schema = schema_of(KINDS[kind])
    least, most = module._bound_squares(schema)
    extreme = [constant_records(schema, 1, last=last) for last in (False, True)]
    for records in (random_records(schema, 50), *extreme):
        squares = np.square(rows_of(records)).sum(axis=1)
        assert least <= squares.min()
        assert squares.max() <= most + 1e-6


def test_how_many_are_looked_at_together_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(schema_of(KINDS["mix"]), 100)
    parts, _ = by_part(records, np.arange(100) % 3, 3)
    whole, _ = means_of(records, parts, PLAN, Free(NoiseSource.seeded(1)))
    monkeypatch.setattr(module, "_NUMBERS", 7 * Features(records.schema).width)
    few, _ = means_of(records, parts, PLAN, Free(NoiseSource.seeded(1)))
    assert np.array_equal(whole, few)


def test_one_part_is_all_records() -> None:
    records = random_records(schema_of(KINDS["ordinal"]), 200)
    found, _ = means_of(records, Parts.whole(200.0))
    np.testing.assert_allclose(found, rows_of(records).mean(axis=0)[None], atol=1e-4)


def test_sums_are_divided_by_what_is_public_and_not_by_the_exact_size() -> None:
    records = random_records(schema_of(KINDS["ordinal"]), 200)
    owner = np.arange(200) % 2
    right, _ = means_of(records, Parts(owner, (100.0, 100.0)))
    twice, _ = means_of(records, Parts(owner, (200.0, 50.0)))
    np.testing.assert_allclose(twice, np.stack([right[0] / 2, np.minimum(1, 2 * right[1])]), atol=1e-4)


# --- the noise ---


def test_the_noise_has_the_scale_that_was_paid_for() -> None:
    """Sets of at most 20 items, as most of them are; the count that is measured along makes the noise a little more."""
    rng = np.random.default_rng(0)
    dense = rng.random((3000, 400)).argsort(axis=1) < np.repeat([10, 19, 20], 1000)[:, None]
    records = Records(BASKETS, {"basket": sparse.csr_array(dense.astype(np.uint8))}, 3000)
    owner = rng.integers(0, 10, 3000)
    parts, expected = by_part(records, owner, 10)
    # far from 0 and 1 nothing is cut off
    sizes = np.full(10, 100.0)
    plan = MeansPlan(norm_epsilon=50.0, noise_multiplier=0.25)
    found, scales = means_of(records, Parts(owner, tuple(sizes)), plan)
    expected = expected * np.array(parts.sizes)[:, None] / sizes[:, None]
    deviation = 0.25 * math.sqrt(20) * math.sqrt(1 + 400**-0.5) / 100
    noise = (found - expected).ravel()
    inside = ((expected > 5 * deviation) & (expected < 1 - 5 * deviation)).ravel()
    assert inside.mean() > 0.9
    for factor, is_right in ((1.0, True), (2 / 3, False), (3 / 2, False)):
        p = stats.kstest(noise[inside], "norm", (0, factor * deviation)).pvalue
        assert (p > ALARM) == is_right, factor
    np.testing.assert_allclose(scales, deviation, rtol=0.03)


def test_the_noise_of_each_part_is_another() -> None:
    records = constant_records(schema_of(KINDS["all_scalars"]), 0)
    found, _ = means_of(records, Parts(np.zeros(0, np.int64), (1e3,) * 5), PLAN)
    assert len({part.tobytes() for part in found}) == 5


# --- odd data ---


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("kind", ["mix", "series", "named_set", "all_scalars"])
def test_hardly_any_record(kind: str, count: int) -> None:
    schema = schema_of(KINDS[kind])
    found, scales = means_of(random_records(schema, count), Parts(np.zeros(count, np.int64), (1.0, 1e-7)), PLAN)
    assert found.shape == (2, Features(schema).width)
    assert ((found >= 0) & (found <= 1)).all()
    assert np.isfinite(scales).all()
    assert (scales > 0).all()


def test_an_empty_part_beside_a_full_one() -> None:
    records = random_records(schema_of(KINDS["ordinal"]), 300)
    parts, expected = by_part(records, np.ones(300, np.int64), 3)
    found, _ = means_of(records, parts)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert not expected[[0, 2]].any()


@pytest.mark.parametrize("last", [False, True])
def test_the_same_record_over_and_over(last: bool) -> None:
    records = constant_records(schema_of(KINDS["mix"]), 200, last=last)
    found, _ = means_of(records, Parts.whole(200.0))
    np.testing.assert_allclose(found, rows_of(records)[:1], atol=1e-4)


# --- what it costs ---


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_a_plan_costs_its_share(share: float) -> None:
    budget = Budget(2.0, 1e-5)
    plan = plan_means(budget, share=share)
    whole = plan_means(budget, share=1 - 1e-12)
    assert plan.noise_multiplier == pytest.approx(whole.noise_multiplier / math.sqrt(share))
    assert compute_epsilon(plan.charges, delta=1e-5) < 2.0


@pytest.mark.parametrize("parts", [1, 7])
def test_all_parts_are_paid_for_once(parts: int) -> None:
    ledger = Free()
    records = random_records(schema_of(KINDS["mix"]), 50)
    means_of(records, Parts(np.arange(50) % parts, (50.0 / parts,) * parts), PLAN, ledger)
    assert tuple(ledger.taken) == PLAN.charges
    assert find_unpaid_means(ledger.taken) == []
    assert find_unpaid_means(ledger.taken[:1]) == ["means of features"]
    assert find_unpaid_means([]) == ["length of records", "means of features"]


def test_a_refusal_comes_before_anything_is_drawn() -> None:
    ledger = Ledger(epsilon=0.005, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        means_of(random_records(schema_of(KINDS["mix"]), 50), Parts.whole(50.0), PLAN, ledger)
    assert ledger.charges == ()


def test_a_second_process_finds_what_the_first_one_measured(tmp_path: Path) -> None:
    checkpoint = Checkpoint.begin(tmp_path / "o.sundog", {})
    ledger, records = Ledger(epsilon=1.0, delta=1e-5), random_records(schema_of(KINDS["mix"]), 50)
    first, again = (means_of(records, Parts.whole(50.0), PLAN, ledger, checkpoint=checkpoint) for _ in range(2))
    checkpoint.remove()
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one, other)
    assert ledger.charges == PLAN.charges


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("parts", [1, 10])
def test_the_length_is_one_that_records_have(parts: int, epsilon: float) -> None:
    """One above the longest would be nothing but noise, and where it falls is anybody's guess."""
    schema = schema_of({"image": {"type": "image", "shape": [28, 28]}})
    rng, count = np.random.default_rng(0), 20_000
    bright = rng.integers(60, 140, count)  # pixels of each image
    codes = (np.arange(784) < bright[:, None]).astype(np.uint8).reshape(-1, 28, 28) * 255
    features, records = Features(schema), Records(schema, {"image": codes}, count)
    rows, plan = FeatureRows(features, records), plan_means(Budget(epsilon, 1e-5), share=0.05)
    each = Parts(np.arange(count) % parts, (count / parts,) * parts)
    for _ in range(5):
        ledger = Ledger(epsilon=100.0, delta=1e-5)
        _, scale = measure_sums(features, rows, each, plan, ledger, FitContext())
        norm = scale / plan.noise_multiplier
        assert np.sqrt(60) < norm <= np.sqrt(140)
