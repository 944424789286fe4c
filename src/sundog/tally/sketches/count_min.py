"""The Count-Min sketch (Cormode and Muthukrishnan 2005)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sundog.errors import ArgumentError
from sundog.tally.modulus import Integers, Vector
from sundog.tally.sketches.sketch import Sketch, check_counts


@dataclass(frozen=True)
class CountMin(Sketch):
    """Each row has the total count of the keys in each cell; the smallest of a key's cells is its estimate.

    >>> sketch = CountMin.for_error(keys=245_000, epsilon=0.01, delta=0.01, seed=bytes(32))
    >>> sketch.rows, sketch.width, sketch.size
    (18, 272, 4896)
    >>> from sundog.tally.modulus import decode
    >>> total = sketch.sketch([3, 7]) + sketch.sketch([7])
    >>> sketch.estimate(decode(total), [3, 7, 9]).tolist()
    [1, 2, 0]
    """

    @classmethod
    def for_error(cls, *, keys: int, epsilon: float, delta: float, seed: bytes) -> Self:
        """Return the smallest sketch with this guarantee.

        With probability 1 − δ over the seed, no estimate of any key is too large by more than ε times the total count.

        Args:
            keys: how many there are, T in the text.
            epsilon: the error; not the ε of privacy.
            delta: the probability that some estimate is worse; not the δ of privacy.
            seed: 32 public bytes.
        """
        if keys < 1 or not (0 < epsilon < 1 and 0 < delta < 1):
            raise ArgumentError(
                f"a sketch is for one key or more, with an error and a probability of failure between 0 and 1, "
                f"not for {keys:,} keys with {epsilon:g} and {delta:g}"
            )
        return cls(math.ceil(math.log(keys / delta)), math.ceil(math.e / epsilon), seed)

    def sketch(self, keys: Any, counts: Any = None) -> Vector:
        """Return the vector of keys with these counts, 1 each by default."""
        return self._add_up(self.locate(keys), check_counts(keys, counts))

    def estimate(self, totals: Integers, keys: Any) -> Integers:
        """Return the estimated count of each key from decoded totals.

        Without noise it is never too small. With noise of standard deviation σ in each cell it is up to 1.8 σ too
        small on average, with 18 rows (docs/tally_noise.md).
        """
        return np.asarray(self._read(totals, keys).min(axis=0))
