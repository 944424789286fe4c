"""Averages by groups: right averages, and errors as large as theory says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from sundog.evaluation.bootstrap import PAIRED_BLOCKS, PairedBlocks


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
    pair = PairedBlocks(real=counts[0], synthetic=counts[1], rng=np.random.default_rng(0)).average(real, synthetic)
    assert pair.measure(lambda p, q: float(abs(p - q).sum())).value == 0.0
    assert pair.real.tolist() == [1.0, 1.0]
