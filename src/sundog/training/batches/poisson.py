"""Poisson sampling: each record is in each step with probability `sample_rate`, independently.

A batch may be empty. Privacy amplification relies on the batch being secret, so it is drawn from the ledger's noise
source. The batch size is binomial, and given the size all subsets are equally likely: two draws instead of one for each
record.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sundog.privacy.draws import BatchDraw
from sundog.privacy.noise import NoiseSource

Index = npt.NDArray[np.int64]


def draw_poisson_batch(records: int, sample_rate: float, noise: NoiseSource) -> Index:
    """Draw the positions of the records in one step, sorted.

    >>> len(draw_poisson_batch(1000, 0.0, NoiseSource())), len(draw_poisson_batch(1000, 1.0, NoiseSource()))
    (0, 1000)
    """

    def draw() -> Index:
        size = noise.binomial(records, sample_rate)
        return np.sort(noise.subset(records, size))

    return noise.hide(BatchDraw(records, sample_rate), draw)


def split_batch(index: Index, largest: int) -> list[Index]:
    """Split a batch into pieces that fit into memory; an empty batch is one empty piece."""
    return [index[start : start + largest] for start in range(0, len(index), largest)] or [index]
