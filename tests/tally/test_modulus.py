"""Vectors modulo 2³²: coding, and room for a total."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundog.errors import ArgumentError
from sundog.tally.modulus import check_room, decode, encode


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_coding_is_exact(values: list[int]) -> None:
    vector = encode(values)
    assert vector.dtype == np.uint32
    assert vector.tolist() == [value % 2**32 for value in values]
    assert decode(vector).tolist() == values


@given(st.lists(st.tuples(st.integers(-(2**40), 2**40), st.integers(-(2**40), 2**40)), min_size=1))
def test_sums_of_vectors_are_sums_modulo(pairs: list[tuple[int, int]]) -> None:
    one, two = (encode(list(part)) for part in zip(*pairs, strict=True))
    assert (one + two).tolist() == [(a + b) % 2**32 for a, b in pairs]


def test_room_ends_where_a_total_could_change_its_sign() -> None:
    check_room(users=2**20, largest=2**10, deviation=(2**30 - 1) / 12)
    for users, largest, deviation in ((2**20, 2**10, 2**30 / 12), (2**21, 2**10, 0.0), (1, 1, 2.0**31)):
        with pytest.raises(ArgumentError, match="do not fit into 32 bits; lower the largest change"):
            check_room(users=users, largest=largest, deviation=deviation)
