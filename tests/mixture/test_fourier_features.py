"""Fourier features: products that are kernels, the same by every way to them, never longer than one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.contracts.material import KINDS, random_records, schema_of

from sundog.data.records import Records
from sundog.mixture import fourier_features as module
from sundog.mixture.fourier_features import (
    FourierFeatures,
    Kernel,
    balance_columns,
    bound_distance,
    compute_median_distance,
    measure_median_distance,
)
from sundog.models.neural.features import Features
from sundog.privacy.ledger import Ledger

IMAGES = schema_of({"image": {"type": "image", "shape": [3, 4], "levels": 5}})


def draw(width: int, dimension: int, *, kernel: Kernel = "gaussian", distance: float = 2.0) -> FourierFeatures:
    rng = np.random.default_rng(width + dimension)
    return FourierFeatures.draw(width=width, dimension=dimension, distance=distance, kernel=kernel, rng=rng)


@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_products_approach_the_kernel(kernel: Kernel) -> None:
    rng = np.random.default_rng(0)
    x = (rng.integers(0, 257, (12, 6)) / 256) * rng.random((12, 1)).round(1) * 4
    x = np.rint(x * 256) / 256  # what the features tell apart
    squared = np.square(x[:, None] - x[None]).sum(axis=2)
    distance = 3.0
    wanted = np.exp(-squared / distance) if kernel == "gaussian" else np.exp(-np.sqrt(squared / distance))
    errors = []
    for dimension in (200, 20_000):
        z = draw(6, dimension, kernel=kernel, distance=distance)(x)
        errors.append(np.abs(z @ z.T - wanted).max())
    assert errors[1] < 0.04
    assert errors[1] < errors[0]
    other = np.exp(-np.sqrt(squared / distance)) if kernel == "gaussian" else np.exp(-squared / distance)
    assert np.abs(z @ z.T - other).max() > 0.1  # it is this kernel, and not the other one


@pytest.mark.parametrize("kind", KINDS)
def test_compact_records_and_dense_ones_agree(kind: str) -> None:
    schema = schema_of(KINDS[kind])
    records, features = random_records(schema, 40), Features(schema)
    fourier = draw(features.width, 30)
    dense = features.to_dense(features.to_examples(records).take(np.arange(40))).numpy()
    streamed = np.concatenate(list(fourier.stream(features, records)))
    np.testing.assert_array_equal(streamed * fourier.scale, fourier(dense))


def test_neighbours_change_nothing_not_even_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    records, features = random_records(IMAGES, 301), Features(IMAGES)
    fourier = draw(features.width, 64)
    whole = np.concatenate(list(fourier.stream(features, records)))
    monkeypatch.setattr(module, "_NUMBERS", 64 * 7)
    parts = list(fourier.stream(features, records.take(slice(1, None))))
    assert len(parts[0]) == 7
    np.testing.assert_array_equal(np.concatenate(parts), whole[1:])


wild = arrays.arrays(np.float64, (5, 3), elements=st.floats(-1e6, 1e6))


@given(wild, st.integers(1, 40), st.floats(1e-6, 1e6), st.sampled_from(["gaussian", "exponential"]))
def test_no_vector_is_longer_than_one(x: npt.NDArray[Any], dimension: int, distance: float, kernel: Kernel) -> None:
    z = draw(3, dimension, distance=distance, kernel=kernel)(x)
    lengths = np.linalg.norm(z, axis=1)
    assert (lengths <= 1 + 1e-12).all()
    assert (lengths > 0.999).all()


def test_more_frequencies_than_features() -> None:
    fourier = draw(3, 20)
    assert fourier.weight.shape == (3, 10)
    assert fourier.dimension == 20
    np.testing.assert_array_equal(fourier.weight, np.rint(fourier.weight))


def test_arrays_bring_the_same_features_back() -> None:
    fourier = draw(5, 8, kernel="exponential")
    again = FourierFeatures(fourier.weight.astype(np.float32))
    np.testing.assert_array_equal(again.weight, fourier.weight)


# --- distances ------------------------------------------------------------------------------------------------------


def measure_pairs(records: Records) -> npt.NDArray[np.float64]:
    features = Features(records.schema)
    rows = features.to_dense(features.to_examples(records).take(np.arange(len(records)))).numpy()
    found = (np.square(rows[:, None] - rows[None]) * balance_columns(features)).sum(axis=2)
    return np.asarray(found[np.triu_indices(len(rows), 1)])


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_records_are_farther_than_the_largest_distance(kind: str) -> None:
    schema = schema_of(KINDS[kind])
    assert measure_pairs(random_records(schema, 60)).max() <= bound_distance(schema)


@pytest.mark.parametrize("kind", ["labelled_images", "numbered_set", "mix"])
def test_medians_are_about_the_median_of_all_pairs(kind: str) -> None:
    schema = schema_of(KINDS[kind])
    records, features = random_records(schema, 600), Features(schema)
    low, high = np.quantile(measure_pairs(records), [0.35, 0.65])
    assert low - 1e-3 <= compute_median_distance(features, records, np.random.default_rng(0)) <= high + 1e-3
    ledger = Ledger(epsilon=3.0, delta=1e-6)
    noisy = measure_median_distance(features, records, epsilon=2.0, ledger=ledger, purpose="width")
    assert low - 0.01 <= noisy <= high + 0.01
    assert [charge.purpose for charge in ledger.charges] == ["width"]


def test_no_record_is_in_two_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    class Watched(Features):
        def to_examples(self, records: Records, device: Any = None) -> Any:
            rows = super().to_examples(records, device)
            take = rows.take
            rows.take = lambda index: taken.extend(index.tolist()) or take(index)  # type: ignore[method-assign,func-returns-value]
            return rows

    records = random_records(IMAGES, 41)
    monkeypatch.setattr(module, "_NUMBERS", 5 * 12)
    ledger = Ledger(epsilon=3.0, delta=1e-6)
    measure_median_distance(Watched(IMAGES), records, epsilon=1.0, ledger=ledger, purpose="width")
    assert len(taken) == len(set(taken)) == 40
    assert taken != sorted(taken)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_records_and_equal_ones_have_a_width_too(count: int) -> None:
    records, features = random_records(IMAGES, 1).take([0] * count), Features(IMAGES)
    ledger = Ledger(epsilon=3.0, delta=1e-6)
    noisy = measure_median_distance(features, records, epsilon=1.0, ledger=ledger, purpose="width")
    for distance in (noisy, compute_median_distance(features, records, np.random.default_rng(0))):
        assert 0 < distance <= bound_distance(IMAGES)


pytestmark = pytest.mark.usefixtures("one_thread")


def test_an_image_does_not_outweigh_its_label() -> None:
    image, label = {"type": "image", "shape": [28, 28], "tones": 2}, {"type": "categorical", "values": ["a", "b"]}
    features = Features(schema_of({"image": image, "label": label}))
    weights = balance_columns(features)
    assert weights[features.at("label")].tolist() == [1.0, 1.0]
    assert 1 <= weights.sum() - 2 <= 4  # of all pixels together
    assert (np.log2(weights) % 1 == 0).all()  # powers of two: sums of squares stay exact
