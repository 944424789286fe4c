"""Sums of groups and of outer products: exact but for the noise, of the scale they say, whatever the rows are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import compute_count_deviation, gaussian_group_sums, gaussian_moments
from sundog.privacy.mechanisms.sums import round_to_lattice
from sundog.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ALARM = 1e-9
WRONG = (2 / 3, 3 / 2)


class Silent(NoiseSource):
    """Noise that is always zero, to see what it would have hidden."""

    def discrete_gaussian(self, *, sigma: float, size: int | tuple[int, ...]) -> Integers:
        return np.zeros(size, np.int64)


class Free(Ledger):
    """Takes any charge without thinking."""

    def spend(self, *charges: Charge) -> None:
        pass


SILENT = Free(epsilon=1.0, delta=1e-5, noise=Silent())
FREE = Free(epsilon=1.0, delta=1e-5)


def group_sums(*chunks: tuple[Any, Any], ledger: Ledger = SILENT, **changes: Any) -> tuple[Floats, Floats]:
    options = {"groups": 3, "width": 2, "clip_norm": 1.0, "noise_multiplier": 1.0, **changes}
    return gaussian_group_sums(chunks, ledger=ledger, purpose="p", **options)


def moments(*chunks: Floats, ledger: Ledger = SILENT, **changes: Any) -> tuple[Floats, Floats]:
    options = {"width": 2, "clip_norm": 1.0, "noise_multiplier": 1.0, **changes}
    return gaussian_moments(chunks, ledger=ledger, purpose="p", **options)


def right_scale(sample: Floats, deviation: float) -> None:
    """Accepts it, and rejects two thirds and three halves of it."""
    p: Callable[[float], float] = lambda scale: float(stats.kstest(sample.ravel(), "norm", (0, scale)).pvalue)  # noqa: E731
    assert p(deviation) > ALARM
    for wrong in WRONG:
        assert p(wrong * deviation) < ALARM


# --- oracles --------------------------------------------------------------------------------------------------------


def test_without_noise_they_are_counts_and_sums() -> None:
    rng = np.random.default_rng(0)
    rows, group = rng.normal(size=(5000, 7)), rng.integers(0, 3, 5000)
    chunks = [(group[:17], rows[:17]), (group[17:4000], rows[17:4000]), (group[4000:], rows[4000:])]
    counts, sums = group_sums(*chunks, width=7, clip_norm=1.5)
    clipped = rows * np.minimum(1, 1.5 / np.linalg.norm(rows, axis=1, keepdims=True))
    np.testing.assert_allclose(counts, np.bincount(group), rtol=1e-12)
    np.testing.assert_allclose(sums, [clipped[group == g].sum(axis=0) for g in range(3)], atol=0.01)


def test_how_rows_are_cut_into_chunks_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    rows, group = rng.normal(size=(3000, 5)), rng.integers(0, 3, 3000)
    whole = group_sums((group, rows), width=5)
    parts = group_sums(*((group[i : i + 7], rows[i : i + 7]) for i in range(0, 3000, 7)), width=5)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(moments(rows, width=5), moments(rows[:11], rows[11:], width=5), strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_noise_moments_are_moments() -> None:
    rows = np.random.default_rng(2).normal(size=(2000, 4)) / 2
    clipped = rows * np.minimum(1, 1 / np.linalg.norm(rows, axis=1, keepdims=True))
    total, products = moments(rows, width=4)
    np.testing.assert_allclose(total, clipped.sum(axis=0), atol=1.0)
    np.testing.assert_allclose(products, clipped.T @ clipped, atol=1.0)


def test_no_rows_at_all() -> None:
    for chunks in ([], [(np.zeros(0, int), np.zeros((0, 2)))]):
        counts, sums = group_sums(*chunks)
        assert counts.tolist() == [0, 0, 0]
        assert not sums.any()
    total, products = moments()
    assert not total.any()
    assert not products.any()


def test_counts_alone() -> None:
    counts, sums = group_sums((np.array([0, 2, 2]), np.zeros((3, 0))), width=0)
    np.testing.assert_allclose(counts, [1, 0, 2], rtol=1e-5)
    assert sums.shape == (3, 0)


def test_sums_alone() -> None:
    rows, group = np.random.default_rng(3).normal(size=(500, 4)), np.arange(500) % 3
    counts, sums = group_sums((group, rows), width=4, clip_norm=9.0, counted=False)
    assert counts.tolist() == [0, 0, 0]
    np.testing.assert_allclose(sums, [rows[group == g].sum(axis=0) for g in range(3)], atol=0.01)


# --- the scale of the noise -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("clip_norm", "noise_multiplier"), [(1.0, 1.0), (0.02, 7.0), (30.0, 0.2)])
def test_counts_and_sums_share_one_gaussian(clip_norm: float, noise_multiplier: float) -> None:
    options = {"groups": 4000, "width": 16, "clip_norm": clip_norm, "noise_multiplier": noise_multiplier}
    counts, sums = group_sums((np.array([5]), np.full((1, 16), clip_norm / 8)), ledger=FREE, **options)
    sums[5] -= clip_norm / 8
    counts[5] -= 1
    longest = math.sqrt(1 + 1 / 4)  # of (a, x): a is the fourth root of 1/16
    right_scale(sums, noise_multiplier * clip_norm * longest)
    right_scale(counts, noise_multiplier * longest * 2)
    assert compute_count_deviation(width=16, noise_multiplier=noise_multiplier) == pytest.approx(
        noise_multiplier * longest * 2
    )


@pytest.mark.parametrize(("clip_norm", "noise_multiplier"), [(1.0, 1.0), (0.02, 7.0)])
def test_counts_or_sums_alone_have_a_gaussian_to_themselves(clip_norm: float, noise_multiplier: float) -> None:
    options: dict[str, Any] = {
        "groups": 4000,
        "clip_norm": clip_norm,
        "noise_multiplier": noise_multiplier,
        "ledger": FREE,
    }
    counts, _ = group_sums(width=0, **options)
    right_scale(counts, noise_multiplier)
    assert compute_count_deviation(width=0, noise_multiplier=noise_multiplier) == pytest.approx(noise_multiplier)
    counts, sums = group_sums(width=16, counted=False, **options)
    right_scale(sums, noise_multiplier * clip_norm)
    assert not counts.any()
    _, neither = group_sums(width=0, counted=False, **options)
    assert neither.shape == (4000, 0)


@pytest.mark.parametrize(("clip_norm", "noise_multiplier"), [(1.0, 1.0), (0.1, 9.0)])
def test_moments_have_less_noise_off_the_diagonal(clip_norm: float, noise_multiplier: float) -> None:
    drawn = [moments(width=60, clip_norm=clip_norm, noise_multiplier=noise_multiplier, ledger=FREE) for _ in range(40)]
    scale = 1.25 * noise_multiplier * clip_norm**2
    products = np.stack([products for _, products in drawn])
    rows, columns = np.triu_indices(60, 1)
    np.testing.assert_array_equal(products, products.transpose(0, 2, 1))
    right_scale(products[:, np.arange(60), np.arange(60)], scale)
    right_scale(products[:, rows, columns], scale / math.sqrt(2))
    right_scale(np.stack([total for total, _ in drawn]), scale / math.sqrt(2) / (clip_norm / 2))


# --- hostile rows ---------------------------------------------------------------------------------------------------

hostile = arrays.arrays(np.float64, (1, 3), elements=st.floats(allow_nan=True, allow_infinity=True, width=64))


@settings(max_examples=200)
@given(hostile, st.integers(-5, 5), st.sampled_from([1.0, 0.003, 50.0]), st.sampled_from([1e-3, 1.0, 30.0]))
def test_one_row_moves_everything_by_no_more_than_it_may(
    row: Floats, group: int, clip_norm: float, noise_multiplier: float
) -> None:
    options: dict[str, Any] = {"width": 3, "clip_norm": clip_norm, "noise_multiplier": noise_multiplier}
    others = (np.array([0, 1, 2, 2]), np.eye(4, 3) * clip_norm)
    without, with_row = group_sums(others, **options), group_sums(others, (np.array([group]), row), **options)
    counts, sums = (new - old for new, old in zip(with_row, without, strict=True))
    weight = 3**-0.25
    moved = np.column_stack([counts * weight, sums / clip_norm])
    assert np.linalg.norm(moved) <= math.sqrt(1 + weight**2) * (1 + 1e-9)
    if not 0 <= group < 3:
        assert not moved.any()
    alone = (
        group_sums(*chunks, counted=False, **options)[1] for chunks in ([others, (np.array([group]), row)], [others])
    )
    assert np.linalg.norm(np.subtract(*alone)) <= clip_norm * (1 + 1e-9)
    old, new = moments(others[1], **options), moments(others[1], row, **options)
    total, products = (new[0] - old[0]) / clip_norm, (new[1] - old[1]) / clip_norm**2
    assert math.sqrt(1 / 16 + 2 * (total**2).sum() / 4 + (products**2).sum()) <= 1.25 * (1 + 1e-9)


@given(arrays.arrays(np.float64, (4, 6), elements=st.floats(allow_nan=True, allow_infinity=True, width=64)))
def test_rows_on_a_lattice_are_no_longer_than_the_clip(rows: Floats) -> None:
    step = 2.0**-20 / math.sqrt(6)
    whole = round_to_lattice(rows, clip_norm=1.0, step=step, slack=2.0**-20)
    np.testing.assert_array_equal(whole, np.rint(whole))
    assert (np.linalg.norm(whole * step, axis=1) <= 1).all()


def test_a_chunk_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="has shape"):
        group_sums((np.array([0]), np.zeros((1, 5))))
    with pytest.raises(ValueError, match="has shape"):
        moments(np.zeros((1, 5)))
