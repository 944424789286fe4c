"""Ample budgets, and noise that is zero."""

import numpy as np
import numpy.typing as npt

from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

DELTA = 1e-5


class Silent(NoiseSource):
    """A source of integer noise that is always zero, to see what it would have hidden."""

    def discrete_gaussian(self, *, sigma: float, size: int | tuple[int, ...]) -> Integers:
        return np.zeros(size, dtype=np.int64)

    def discrete_laplace(self, *, epsilon: float, size: int | tuple[int, ...]) -> Integers:
        return np.zeros(size, dtype=np.int64)


COUNTS = np.array([5, 0, 7])


def make_ample_ledger(noise: NoiseSource | None = None) -> Ledger:
    return Ledger(epsilon=1e3, delta=DELTA, noise=noise)
