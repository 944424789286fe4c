"""What images and series share: a number on one lattice at each position of a declared shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from sundog.data.columns.column import Column


class ArrayColumn(Column):
    """A column with an array of numbers in each record."""

    scale: ClassVar[None] = None
    default_bins: ClassVar[int]

    if TYPE_CHECKING:  # a key of each type
        bins: Any

    @property
    def bin_limit(self) -> int:
        """The declared number of bins, or a default."""
        return int(self.bins or self.default_bins)

    @property
    def feature_count(self) -> int:
        """One intensity for each position."""
        return math.prod(self.shape)

    @property
    def squared_norms(self) -> tuple[int, int]:
        """The bounds for intensities between 0 and 1; a missing one is 0, and its flag is 1."""
        return 0, math.prod(self.shape)

    @property
    def largest_distance(self) -> int:
        """The distance between the lowest and the highest intensities, or between those and missing ones."""
        return math.prod(self.shape) * (2 if self.nullable else 1)

    def to_arrow(self, codes: Any) -> Any:
        """Return lists of a fixed length."""
        flat = pa.array(np.ascontiguousarray(self.decode(codes)).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, math.prod(self.shape))

    def to_json(self, codes: Any) -> list[Any]:
        """Return lists, with None for a missing number."""
        found = super().to_json(codes)
        return [[None if number != number else number for number in row] for row in found] if self.nullable else found
