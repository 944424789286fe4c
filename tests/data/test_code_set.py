from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sundog.data.bins import Bins
from sundog.data.code_set import CodeSet

sets = st.frozensets(st.integers(0, 30))


@given(sets, sets)
def test_they_are_sets(one: frozenset[int], other: frozenset[int]) -> None:
    def codes(found: CodeSet) -> set[int]:
        return {code for first, last in found.ranges for code in range(first, last + 1)}

    assert codes(CodeSet.of(one)) == one
    assert codes(CodeSet.of(one) & CodeSet.of(other)) == one & other
    assert codes(CodeSet.of(one) - CodeSet.of(other)) == one - other
    assert all((code in CodeSet.of(one)) == (code in one) for code in range(-1, 32))
    assert bool(CodeSet.of(one)) == bool(one)


@given(st.frozensets(st.integers(0, 30), min_size=1), st.integers(0, 30), st.integers(0, 30))
def test_codes_are_counted_and_drawn_from_a_range(codes: frozenset[int], first: int, last: int) -> None:
    first, last = min(first, last), max(first, last)
    inside = [code for code in codes if first <= code <= last]
    at: tuple[Any, Any] = np.array([first]), np.array([last])
    assert CodeSet.of(codes).count(*at).tolist() == [len(inside)]
    if inside:
        assert int(CodeSet.of(codes).draw(*at, np.random.default_rng(0))[0]) in inside


def test_every_code_is_drawn_equally_often() -> None:
    allowed = CodeSet.of([2, 3, 4, 8, 11, 12])
    cells = np.zeros(60_000, np.int64)
    drawn = allowed.draw(cells, cells + 11, np.random.default_rng(0))
    counts = np.bincount(drawn, minlength=13)
    assert set(np.flatnonzero(counts)) == {2, 3, 4, 8, 11}
    assert stats.chisquare(counts[[2, 3, 4, 8, 11]]).pvalue > 1e-6


@pytest.mark.parametrize("allowed", [CodeSet.between(0, 2**63 - 1), CodeSet.of([0, 2**63 - 1])], ids=["all", "ends"])
def test_the_largest_lattice(allowed: CodeSet) -> None:
    bins = Bins(np.array([0, 2**62]), size=2**63, nullable=False)
    drawn = bins.to_codes(np.array([0, 1] * 10), np.random.default_rng(0), allowed)
    assert all(int(code) in allowed for code in drawn)
    assert bins.compute_shares(allowed) == pytest.approx([1, 1] if len(allowed.ranges) == 1 else [2.0**-62] * 2)
