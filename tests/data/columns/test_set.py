"""Set columns: round trips up to the largest size, and undeclared items."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.data.columns.round_trips import catch_message, encode

from sundog.data.columns import SetColumn


@given(st.lists(st.lists(st.integers(0, 6))), st.integers(1, 7))
def test_sets_survive_up_to_their_cap(sets: list[list[int]], max_size: int) -> None:
    numbered = SetColumn(universe=7, max_size=max_size)
    named = SetColumn(universe=tuple(f"i{item}" for item in range(7)), max_size=max_size)
    expected = np.zeros((len(sets), 7), int)
    for row, items in enumerate(sets):
        expected[row, sorted(set(items))[:max_size]] = 1
    codes = encode(numbered, pa.array(sets, pa.list_(pa.int64())))
    assert codes.dtype == np.uint8
    assert (codes.toarray() == expected).all()
    assert (numbered.decode(codes).toarray() == expected).all()
    names = [[f"i{item}" for item in items] for items in sets]
    lines = pa.array([" ".join(items) for items in names], pa.string())
    for given_as in (pa.array(names, pa.list_(pa.string())), lines):
        assert (encode(named, given_as).toarray() == expected).all()
    full = np.zeros((len(sets), 7), int)
    for row, items in enumerate(sets):
        full[row, items] = 1
    assert (encode(numbered, sparse.csr_array(full)).toarray() == expected).all()
    assert (encode(numbered, full).toarray() == expected).all()


def test_sets_refuse_and_drop() -> None:
    column = SetColumn(universe=("a", "b"), max_size=2)
    assert "row 2: item 'c' is not declared; add it to the universe" in catch_message(column, [["a"], ["b", "c"]])
    assert "row 2: item None is not declared" in catch_message(column, [["a"], ["b", None]])
    assert "row 1 is not a set; give it a list instead" in catch_message(column, [1, 2])
    assert "row 2 is missing; write an empty set instead" in catch_message(column, [["a"], None])
    assert "row 1: item 2 is not among the 2 declared" in catch_message(column, sparse.csr_array([[0, 0, 1]]))
    dropping = SetColumn(universe=("a", "b"), max_size=2, undeclared="drop")
    assert encode(dropping, [["c", "b"], ["c"]]).toarray().tolist() == [[0, 1], [0, 0]]
    assert encode(dropping, sparse.csr_array([[0, 1, 1]])).toarray().tolist() == [[0, 1]]
