"""Poisson sampling, really: each record is in each step with probability `sample_rate`, by itself.

A batch may be empty. Which records are drawn must be as hard to guess as the noise, so the draws come from the
ledger's noise source. How many are in is binomial, and given how many, all sets of that size are alike: two draws
instead of one for each record.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sundog.privacy.noise import NoiseSource

Index = npt.NDArray[np.int64]


def poisson_batch(records: int, sample_rate: float, noise: NoiseSource) -> Index:
    """The places of the records in one step, sorted.

    >>> len(poisson_batch(1000, 0.0, NoiseSource())), len(poisson_batch(1000, 1.0, NoiseSource()))
    (0, 1000)
    """
    size = noise.binomial(records, sample_rate)
    return np.sort(noise.subset(records, size))


def pieces(index: Index, largest: int) -> list[Index]:
    """A large batch in parts that fit into memory; an empty batch is one empty part."""
    return [index[start : start + largest] for start in range(0, len(index), largest)] or [index]
