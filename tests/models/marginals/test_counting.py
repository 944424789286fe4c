"""Counts of marginals: those of a slow oracle, whatever the blocks, and added up over fragments."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sundog.models.marginals import counting
from sundog.models.marginals.bucket_tree import Clique
from sundog.models.marginals.counting import count_cliques

SIZES = (2, 300, 5, 17)
CLIQUES: list[Clique] = [(1,), *combinations(range(4), 2), (0, 2, 3)]


def draw_columns(n: int) -> list[np.ndarray[tuple[int], np.dtype[np.uint16]]]:
    rng = np.random.default_rng(n)
    return [rng.integers(0, size, n).astype(np.uint16) for size in SIZES]


@pytest.mark.parametrize("block", [1, 64, 2**22])
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_counts_are_those_of_an_oracle(n: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_BLOCK", block)
    columns = draw_columns(n)
    for clique, found in count_cliques(columns, SIZES, CLIQUES).items():
        expected = np.zeros([SIZES[v] for v in clique], np.int64)
        np.add.at(expected, tuple(columns[v] for v in clique), 1)
        assert found.dtype == np.int64
        assert np.array_equal(found, expected)


def test_fragments_add_up() -> None:
    columns = draw_columns(1000)
    whole = count_cliques(columns, SIZES, CLIQUES)
    fragments = [
        count_cliques([each[part] for each in columns], SIZES, CLIQUES) for part in (slice(300), slice(300, None))
    ]
    for clique, counts in whole.items():
        assert np.array_equal(counts, sum(each[clique] for each in fragments))


def test_large_marginals_are_not_counted_modulo_the_type() -> None:
    sizes = (300, 300, 300)  # more cells than 16 bits can number, in columns of 16 bits
    columns = [np.full(3, 299, np.uint16)] * 3
    assert count_cliques(columns, sizes, [(0, 1, 2)])[0, 1, 2][-1, -1, -1] == 3
