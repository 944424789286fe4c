"""The bootstrap: right sums and averages, and errors as large as theory says, whichever way records are resampled."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from sundog.evaluation.bootstrap import (
    PAIRED_BLOCKS,
    Blocks,
    PairedBlocks,
    bootstrap_mean,
    bootstrap_rows,
    compute_error,
    measure_estimates,
)

# --- blocks --------------------------------------------------------------------------------------------------------


def test_blocks_hold_every_row_once_and_are_of_one_size() -> None:
    blocks = Blocks.deal(1007, np.random.default_rng(0))
    sizes = np.bincount(blocks.of_row)
    assert len(sizes) == 50
    assert set(sizes) == {20, 21}
    assert (blocks.weights[0] == 1).all()
    assert (blocks.weights.sum(axis=1) == 50).all()


def test_sums_and_extremes_leave_out_what_is_missing() -> None:
    rng = np.random.default_rng(0)
    blocks = Blocks.deal(120, rng)
    labels, values = rng.integers(-1, 3, 120), rng.normal(size=120)
    sums = blocks.sum_labels(labels, 3, values)
    least, greatest = blocks.find_extremes(np.where(labels < 0, np.nan, values))
    for place in (0, 31):
        times = blocks.weights[place][blocks.of_row]
        assert sums[place] == pytest.approx([(values * times)[labels == label].sum() for label in range(3)])
        drawn = values[(times > 0) & (labels >= 0)]
        assert (least[place], greatest[place]) == (drawn.min(), drawn.max())


# --- two tables ----------------------------------------------------------------------------------------------------


def test_averages_are_those_of_all_records() -> None:
    rng = np.random.default_rng(0)
    real, synthetic = rng.normal(size=(1003, 3)), rng.normal(size=(77, 3))
    pair = PairedBlocks(real=1003, synthetic=77, rng=rng).average(real, synthetic)
    np.testing.assert_allclose(pair.real, real.mean(axis=0))
    np.testing.assert_allclose(pair.synthetic, synthetic.mean(axis=0))


def test_sparse_rows_are_summed_like_dense_ones() -> None:
    dense = np.random.default_rng(0).integers(0, 2, (50, 4))
    pair = PairedBlocks(real=50, synthetic=50, rng=np.random.default_rng(1)).average(sparse.csr_array(dense), dense)
    np.testing.assert_array_equal(pair.real, pair.synthetic)


def test_the_error_of_a_difference_of_means_is_that_of_theory() -> None:
    rng = np.random.default_rng(0)
    real, synthetic = rng.normal(0, 1, (4000, 1)), rng.normal(5, 3, (1000, 1))
    errors = []
    for seed in range(20):
        blocks = PairedBlocks(real=4000, synthetic=1000, rng=np.random.default_rng(seed))
        found = blocks.average(real, synthetic).measure(lambda p, q: float(abs(p - q)[0]))
        assert found.value == pytest.approx(abs(real.mean() - synthetic.mean()))
        errors.append((found.high - found.value) / 1.96)
    assert np.mean(errors) == pytest.approx(np.sqrt(1 / 4000 + 9 / 1000), rel=0.1)


def test_records_compared_with_themselves_differ_by_nothing() -> None:
    values = np.random.default_rng(0).normal(size=(1000, 5))
    found = PairedBlocks(real=1000, synthetic=1000, rng=np.random.default_rng(1)).average(values, values)
    assert found.measure(lambda p, q: float(abs(p - q).max())).value == 0.0


@pytest.mark.parametrize("counts", [(1, 1), (1, 500), (3, 2), (PAIRED_BLOCKS, PAIRED_BLOCKS + 1)])
def test_few_records_make_few_groups(counts: tuple[int, int]) -> None:
    real, synthetic = (np.ones((count, 2)) for count in counts)
    blocks = PairedBlocks(real=counts[0], synthetic=counts[1], rng=np.random.default_rng(0))
    assert blocks.average(real, synthetic).measure(lambda p, q: float(abs(p - q).sum())).value == 0.0
    assert blocks.count == min(PAIRED_BLOCKS, *counts)


# --- rows ----------------------------------------------------------------------------------------------------------


def test_groups_are_resampled_by_themselves() -> None:
    groups = np.array([0] * 17 + [4] * 3)
    drawn = []
    bootstrap_rows(lambda rows: float(drawn.append(groups[rows]) or 0), 20, np.random.default_rng(0), strata=groups)  # type: ignore[func-returns-value]
    assert all(np.bincount(each).tolist() == [17, 0, 0, 0, 3] for each in drawn)


def test_undefined_resamples_are_ignored() -> None:
    found = measure_estimates(np.array([0.5, 0.4, math.nan, 0.6]))
    assert found.high == pytest.approx(0.5 + 1.96 * math.sqrt(0.02), abs=1e-4)
    assert measure_estimates(np.array([0.5, math.nan, math.nan])).low == 0.5


def test_there_is_no_mean_of_nothing() -> None:
    assert math.isnan(bootstrap_mean(np.empty(0), np.random.default_rng(0)).value)


# --- all ways agree ------------------------------------------------------------------------------------------------


def test_blocks_pairs_and_rows_find_the_error_of_a_mean() -> None:
    """Averaged over seeds, within 5% of each other and of the standard error of the mean."""
    values = np.random.default_rng(0).gamma(2.0, size=3000)
    nothing = np.zeros((len(values), 1))
    errors: dict[str, list[float]] = {"blocks": [], "pairs": [], "rows": []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sums = Blocks.deal(len(values), rng).sum_labels(np.zeros(len(values), np.int64), 1, values)[:, 0]
        errors["blocks"].append(compute_error(sums / len(values)))
        pairs = PairedBlocks(real=len(values), synthetic=len(values), rng=rng).average(values[:, None], nothing)
        errors["pairs"].append(compute_error(pairs.real_estimates[:, 0]))
        mean = bootstrap_mean(values, rng)
        errors["rows"].append((mean.high - mean.value) / 1.96)
    expected = values.std(ddof=1) / math.sqrt(len(values))
    for way, found in errors.items():
        assert np.mean(found) == pytest.approx(expected, rel=0.05), way
