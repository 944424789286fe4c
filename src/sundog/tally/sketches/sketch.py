"""What both sketches share: rows of buckets, and where a key is in each row."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.errors import ArgumentError
from sundog.tally.modulus import Integers, Vector, encode
from sundog.tally.sketches.tabulation import TabulationHash

LARGEST_WIDTH = 2**21  # so that the product of a width and a word is exact as a double, which browsers count with
MOST_ROWS = 32  # a word has a sign for each


@dataclass(frozen=True)
class Sketch:
    """A table of `rows` × `width` cells, as one vector, row after row.

    Sketches add up: the sum of the vectors of many people is the vector of all their keys together.

    Args:
        rows: hash functions, d in the text; each adds a key to one cell.
        width: cells a row, w in the text.
        seed: 32 public bytes, the same for everybody whose vectors are added.
    """

    rows: int
    width: int
    seed: bytes

    def __post_init__(self) -> None:
        if not (1 <= self.rows <= MOST_ROWS and 1 <= self.width <= LARGEST_WIDTH):
            raise ArgumentError(
                f"a sketch has 1 to {MOST_ROWS} rows and 1 to {LARGEST_WIDTH:,} cells a row, "
                f"not {self.rows} and {self.width:,}"
            )

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.rows * self.width

    @functools.cached_property
    def _buckets(self) -> TabulationHash:
        return TabulationHash("sundog tally: buckets of a sketch, 1", self.seed, self.rows)

    def locate(self, keys: Any) -> Integers:
        """Return the cell of each key in each row, an array of (rows, keys) of places in the vector."""
        buckets = (self._buckets.hash(keys).astype(np.int64) * self.width) >> 32
        return buckets + self.width * np.arange(self.rows)[:, None]

    def _add_up(self, cells: Integers, changes: npt.NDArray[np.int64]) -> Vector:
        total = np.zeros(self.size, np.int64)
        np.add.at(total, cells, np.broadcast_to(changes, cells.shape))
        return encode(total)

    def _read(self, totals: Any, keys: Any) -> Integers:
        values = np.asarray(totals)
        if values.shape != (self.size,) or values.dtype != np.int64:
            raise ArgumentError(f"the totals of this sketch are {self.size:,} decoded numbers")
        return np.asarray(values[self.locate(keys)])


def check_counts(keys: Any, counts: Any) -> npt.NDArray[np.int64]:
    """Return the counts of keys, 1 each by default, as an array."""
    found = np.ones(len(keys), np.int64) if counts is None else np.asarray(counts)
    if found.shape != (len(keys),) or (found.size and found.dtype.kind not in "iu"):
        raise ArgumentError("a sketch needs a whole number for each key as its count")
    return found.astype(np.int64)
