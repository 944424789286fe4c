"""The size of the one image or series of a record, and of what generators make of it; arithmetic, without tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass

_SMALLEST = 8  # a grid of this size is not made smaller by a generator
FRESH = 4  # new latent variables at each step through a series
TOGETHER = 4  # values of a series that are made in one step
KERNEL = 4  # of transposed convolutions


@dataclass(frozen=True)
class Geometry:
    """An image or a series: where its features are, its size in each direction, its channels."""

    at: slice
    size: tuple[int, ...]
    channels: int

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], at: slice) -> Geometry:
        """Return the geometry of a column with this shape, whose features are at `at`."""
        size, channels = (shape[:2], shape[2]) if len(shape) == 3 else (shape, 1)
        return cls(at, size, channels)

    @property
    def numel(self) -> int:
        """The number of features."""
        return math.prod(self.size) * self.channels

    @property
    def halvings(self) -> int:
        """The number of times that it is halved until it is small.

        >>> [Geometry(slice(0), (size, size), 1).halvings for size in (8, 28, 32, 64)]
        [1, 2, 2, 3]
        """
        return max(1, math.ceil(math.log2(max(self.size) / _SMALLEST)))

    def halve(self, times: int) -> tuple[int, ...]:
        """Return the size after a number of halvings, rounded up each time."""
        return tuple(math.ceil(size / 2**times) for size in self.size)

    def choose_widths(self, channels: int, layers: int) -> list[int]:
        """Return the channels of each layer: twice those of the last in an image, which has half the width and height.

        >>> Geometry(slice(0), (28, 28), 1).choose_widths(32, 3), Geometry(slice(0), (96,), 1).choose_widths(32, 3)
        ([32, 64, 128], [32, 32, 32])
        """
        return [channels * 2 ** (layer * (len(self.size) - 1)) for layer in range(layers)]
