"""The Count Sketch (Charikar, Chen and Farach-Colton 2002), with an estimate that is linear."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.tally.modulus import Integers, Vector
from sundog.tally.sketches.sketch import Sketch, check_counts
from sundog.tally.sketches.tabulation import TabulationHash


@dataclass(frozen=True)
class CountSketch(Sketch):
    """Each row adds a key to one cell with a random sign; the mean over the rows of sign × cell is its estimate.

    The estimate has no bias, with noise or without, and the estimate of a set of keys is the sum of theirs.

    >>> sketch = CountSketch(rows=5, width=272, seed=bytes(32))
    >>> from sundog.tally.modulus import decode
    >>> total = sketch.sketch([3, 8]) + sketch.sketch([8], counts=[40])
    >>> sketch.estimate(decode(total), [3, 8]).tolist()
    [1.0, 41.0]
    """

    @functools.cached_property
    def _signs(self) -> TabulationHash:
        return TabulationHash("sundog tally: signs of a sketch, 1", self.seed, rows=1)

    def choose_signs(self, keys: Any) -> npt.NDArray[np.int64]:
        """Return +1 or −1 for each key in each row: row r takes bit r of a word, 0 for +1."""
        bits = self._signs.hash(keys) >> np.arange(self.rows, dtype=np.uint32)[:, None]
        return 1 - 2 * (bits & 1).astype(np.int64)

    def sketch(self, keys: Any, counts: Any = None) -> Vector:
        """Return the vector of keys with these counts, 1 each by default."""
        return self._add_up(self.locate(keys), self.choose_signs(keys) * check_counts(keys, counts))

    def estimate(self, totals: Integers, keys: Any) -> npt.NDArray[np.float64]:
        """Return the estimated count of each key from decoded totals."""
        return np.asarray((self._read(totals, keys) * self.choose_signs(keys)).mean(axis=0))
