"""Sketches: their sizes, their guarantees, that they add up, and that they refuse what they cannot hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundog.errors import ArgumentError
from sundog.tally.modulus import decode, encode
from sundog.tally.sketches import CountMin, CountSketch, tabulation
from sundog.tally.sketches.sketch import Sketch

SEED = bytes(range(32))
KINDS = [CountMin(4, 11, SEED), CountSketch(5, 13, SEED)]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)


# --- sizes ---


@pytest.mark.parametrize(("keys", "rows"), [(700 * 700 // 2, 18), (100**2, 14)])
def test_the_sizes_of_the_text_are_those_of_one_percent(keys: int, rows: int) -> None:
    """Both of its errors are 0.01, over all of its keys: of co-views of 700 programmes, and of a map of 100 × 100."""
    sketch = CountMin.for_error(keys=keys, epsilon=0.01, delta=0.01, seed=SEED)
    assert (sketch.rows, sketch.width) == (rows, 272)
    for epsilon, delta in ((0.011, 0.01), (0.01, 0.03), (0.0099, 0.01), (0.01, 0.003)):
        other = CountMin.for_error(keys=keys, epsilon=epsilon, delta=delta, seed=SEED)
        assert (other.rows, other.width) != (rows, 272)


# --- what is in them ---


def sketch_slowly(kind: Sketch, keys: list[int], counts: list[int]) -> list[int]:
    total = [0] * kind.size
    for key, count in zip(keys, counts, strict=True):
        for row in range(kind.rows):
            sign = int(kind.choose_signs([key])[row, 0]) if isinstance(kind, CountSketch) else 1
            total[int(kind.locate([key])[row, 0])] += sign * count
    return [value % 2**32 for value in total]


pairs = st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(-(2**20), 2**20)), max_size=12)


@every_kind
@settings(max_examples=60, deadline=None, database=None)
@given(pairs, pairs)
def test_a_sketch_is_that_of_a_slow_loop_and_adds_up(
    kind: Any, one: list[tuple[int, int]], two: list[tuple[int, int]]
) -> None:
    vectors = [kind.sketch([key for key, _ in part], [count for _, count in part]) for part in (one, two, one + two)]
    assert vectors[2].dtype == np.uint32
    assert vectors[2].tolist() == sketch_slowly(
        kind, *map(list, zip(*(one + two), strict=True)) if one + two else ([], [])
    )
    assert (vectors[0] + vectors[1] == vectors[2]).all()


@every_kind
def test_each_row_has_each_key_once_in_its_own_cells(kind: Any) -> None:
    cells = kind.locate(np.arange(500))
    assert cells.shape == (kind.rows, 500)
    for row, places in enumerate(cells):
        assert set(places.tolist()) == set(range(row * kind.width, (row + 1) * kind.width))


def test_signs_are_balanced_and_independent_of_buckets() -> None:
    sketch = CountSketch(32, 8, SEED)
    keys = np.arange(4000)
    signs, buckets = sketch.choose_signs(keys), sketch.locate(keys) % 8
    assert set(np.unique(signs)) == {-1, 1}
    assert abs(signs.sum()) < 7 * math.sqrt(signs.size)
    for bucket in range(8):
        of_bucket = signs[buckets == bucket]
        assert abs(of_bucket.sum()) < 7 * math.sqrt(of_bucket.size)
    assert (np.abs(signs @ signs.T - 4000 * np.eye(32)) < 7 * math.sqrt(4000)).all()  # rows of each other, too


# --- estimates ---


def make_counts() -> npt.NDArray[np.int64]:
    return np.random.default_rng(5).zipf(1.6, 2000).clip(max=500).astype(np.int64)


def test_count_min_keeps_its_guarantee() -> None:
    """Never too small; too large by more than ε of the total for some key in fewer than δ of the seeds."""
    counts = make_counts()
    broken = 0
    for seed in range(60):
        sketch = CountMin.for_error(keys=len(counts), epsilon=0.05, delta=0.05, seed=bytes([seed]) * 32)
        errors = sketch.estimate(decode(sketch.sketch(np.arange(2000), counts)), np.arange(2000)) - counts
        assert errors.min() >= 0
        broken += bool(errors.max() > 0.05 * counts.sum())
    assert broken <= 3
    narrow = CountMin(2, 5, SEED)  # and a table that is too small does break it
    assert narrow.estimate(decode(narrow.sketch(np.arange(2000), counts)), np.arange(2000)).min() > 0.05 * counts.sum()


@pytest.mark.parametrize("deviation", [0.0, 30.0])
def test_count_sketches_have_no_bias_and_the_error_that_theory_says(deviation: float) -> None:
    """The variance is that of the other keys in a cell, ΣC²/w, and of the noise, over the rows."""
    counts, keys = make_counts(), np.arange(2000)
    generator = np.random.default_rng(7)
    errors = []
    for seed in range(60):
        sketch = CountSketch(6, 200, bytes([seed]) * 32)
        noise = np.rint(generator.normal(0, deviation, sketch.size))
        totals = decode(sketch.sketch(keys, counts)) + noise.astype(np.int64)
        errors.append(sketch.estimate(totals, keys[:200]) - counts[:200])
    expected = math.sqrt(((counts**2).sum() / 200 + deviation**2) / 6)
    flat = np.array(errors)
    assert abs(flat.mean()) < 6 * expected / math.sqrt(60)
    assert flat.std() == pytest.approx(expected, rel=0.1)


def test_noise_makes_the_smallest_of_the_rows_too_small() -> None:
    """By the expected minimum of 18 normals, 1.82 standard deviations, where cells hold nothing else."""
    sketch = CountMin(18, 272, SEED)
    noise = np.rint(np.random.default_rng(2).normal(0, 100, sketch.size)).astype(np.int64)
    assert sketch.estimate(noise, np.arange(20_000)).mean() == pytest.approx(-182, abs=8)


def test_the_texts_estimate_of_a_count_sketch_is_wrong() -> None:
    """Bucket minus neighbour, summed over rows: too large by a factor of the rows."""
    sketch = CountMin(8, 256, SEED)  # without signs, as in the text
    totals = decode(sketch.sketch([3], [1000]))
    cells = sketch.locate([3])[:, 0]
    assert int((totals[cells] - totals[cells ^ 1]).sum()) == 8 * 1000
    signed = CountSketch(8, 256, SEED)
    assert signed.estimate(decode(signed.sketch([3], [1000])), [3]).tolist() == [1000.0]


def measure_range_error() -> float:
    """The error of sums over neighbouring keys, in units of that with random functions."""
    domain, length = 1024, 400
    counts = np.random.default_rng(3).poisson(10, domain)
    squares = []
    for seed in range(120):
        sketch = CountSketch(8, 40, bytes([seed]) * 32)
        errors = sketch.estimate(decode(sketch.sketch(np.arange(domain), counts)), np.arange(domain)) - counts
        below = np.concatenate([[0.0], np.cumsum(errors)])
        squares.append(np.mean((below[length:] - below[:-length]) ** 2))
    # two keys share a cell with probability 1/w; a pair inside adds both counts, others one
    inside = length * (length - 1) * (np.mean(counts**2) + np.mean(counts) ** 2)
    expected = (inside + length * (domain - length) * np.mean(counts**2)) / 40 / 8
    return math.sqrt(float(np.mean(squares)) / float(expected))


def test_sums_over_neighbouring_keys_are_as_good_as_with_random_functions() -> None:
    assert measure_range_error() == pytest.approx(1, abs=0.15)


def test_without_the_factor_sums_over_neighbouring_keys_are_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabulation, "_FACTOR", 1)
    assert measure_range_error() > 1.2


def test_with_linear_hashing_sums_over_neighbouring_keys_are_far_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    def hash_linearly(self: tabulation.TabulationHash, keys: Any) -> npt.NDArray[np.uint32]:
        generator = np.random.default_rng([*self.seed, *self.label.encode()])
        a, b = generator.integers(1, 2**31 - 1, (2, self.rows, 1), dtype=np.uint64)
        factor = 1 if "signs" in self.label else 2  # a sign is one of the low bits, a bucket the high ones
        return np.asarray((a * np.asarray(keys, np.uint64) + b) % (2**31 - 1) * factor, np.uint32)

    monkeypatch.setattr(tabulation.TabulationHash, "hash", hash_linearly)
    assert measure_range_error() > 3


# --- hostile input ---


@pytest.mark.parametrize(("rows", "width"), [(0, 5), (33, 5), (1, 0), (1, 2**21 + 1)])
@pytest.mark.parametrize("kind", [CountMin, CountSketch])
def test_sizes_beyond_the_limits_are_refused(kind: Any, rows: int, width: int) -> None:
    with pytest.raises(ArgumentError, match="a sketch has 1 to 32 rows"):
        kind(rows, width, SEED)


@pytest.mark.parametrize(
    ("keys", "epsilon", "delta"), [(0, 0.1, 0.1), (5, 0.0, 0.1), (5, 0.1, 1.0), (5, math.nan, 0.1)]
)
def test_guarantees_that_no_sketch_has_are_refused(keys: int, epsilon: float, delta: float) -> None:
    with pytest.raises(ArgumentError, match="a sketch is for one key or more"):
        CountMin.for_error(keys=keys, epsilon=epsilon, delta=delta, seed=SEED)


@every_kind
@pytest.mark.parametrize("counts", [[1], [1, 2, 3], [0.5, 1.0], ["1", "2"], [[1, 2]]])
def test_counts_that_do_not_fit_the_keys_are_refused(kind: Any, counts: Any) -> None:
    with pytest.raises(ArgumentError, match="a whole number for each key"):
        kind.sketch([1, 2], counts)


@every_kind
def test_totals_of_another_sketch_or_not_decoded_are_refused(kind: Any) -> None:
    for totals in (np.zeros(kind.size + 1, np.int64), encode(np.zeros(kind.size)), [[0]]):
        with pytest.raises(ArgumentError, match="decoded numbers"):
            kind.estimate(totals, [1])


@every_kind
def test_nobody_and_nothing_are_vectors_of_zeros(kind: Any) -> None:
    assert kind.sketch([]).tolist() == [0] * kind.size
    assert kind.estimate(np.zeros(kind.size, np.int64), []).tolist() == []
