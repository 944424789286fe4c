"""Walker's alias method: a draw from any finite distribution for one uniform number and one look-up."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class AliasTable:
    """One distribution, or one at each of several positions (rows of p).

    >>> table = AliasTable(np.array([0.0, 1.0, 0.0]))
    >>> table.draw(3, np.random.default_rng(0)).tolist()
    [1, 1, 1]
    """

    def __init__(self, p: npt.NDArray[np.float64]) -> None:
        self.cells = p.shape[-1]
        self.positions = p.shape[:-1]
        rows = p.reshape(-1, self.cells)
        tables = [_alias(row) for row in rows]
        self._accept = np.concatenate([accept for accept, _ in tables])
        self._other = np.concatenate([other for _, other in tables])
        self._offset = np.arange(len(rows)).reshape(self.positions) * self.cells

    def draw(self, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Draws n times at every position: shape (n,) or (n, positions)."""
        u = rng.random((n, *self.positions)) * self.cells
        slot = u.astype(np.int64)
        u -= slot  # what is left decides between the slot and its alias
        index: Any = slot + self._offset if self.positions else slot
        return np.asarray(np.where(u < self._accept[index], slot, self._other[index]))


def _alias(p: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Vose's construction: pair every slot that is too small with one that is too large."""
    k = len(p)
    accept = p * k
    other = np.arange(k)
    small = [i for i in range(k) if accept[i] < 1]
    large = [i for i in range(k) if accept[i] >= 1]
    while small and large:
        i, j = small.pop(), large[-1]
        other[i] = j
        accept[j] -= 1 - accept[i]
        if accept[j] < 1:
            small.append(large.pop())
    accept[small + large] = 1.0  # what rounding left over
    return accept, other
