"""The one image or series of a record, as a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from sundog.data.columns import ScalarColumn, SetColumn
from sundog.data.schema import Schema
from sundog.models.features import Features

NEARLY_NONE = 1e-4  # of a range: a root is too steep at zero
_SMALLEST = 8  # a grid of this size is not made smaller by a generator


@dataclass(frozen=True)
class Grid:
    """The one image or series of a record: where its features are, its size in each direction, its channels."""

    at: slice
    size: tuple[int, ...]
    channels: int

    @classmethod
    def of(cls, features: Features, without: slice = slice(0, 0)) -> Grid:
        """That of a schema that has one; `without` says which features, all before it, were taken out."""
        (name,) = arrays(features.schema)
        shape = features.schema.columns[name].shape
        size, channels = (shape[:2], shape[2]) if len(shape) == 3 else (shape, 1)
        at, fewer = features.at(name), without.stop - without.start
        return cls(slice(at.start - fewer, at.stop - fewer), size, channels)

    @property
    def numel(self) -> int:
        """How many features it has."""
        return math.prod(self.size) * self.channels

    @property
    def halvings(self) -> int:
        """So often it is made half as large, until it is small.

        >>> [Grid(slice(0), (size, size), 1).halvings for size in (8, 28, 32, 64)]
        [1, 2, 2, 3]
        """
        return max(1, math.ceil(math.log2(max(self.size) / _SMALLEST)))

    def halved(self, times: int) -> tuple[int, ...]:
        """The size after so many halvings, rounded up each time."""
        return tuple(math.ceil(size / 2**times) for size in self.size)

    def widths(self, channels: int, layers: int) -> list[int]:
        """Of so many layers: in an image each has half the width and height of the last, and twice the channels.

        >>> Grid(slice(0), (28, 28), 1).widths(32, 3), Grid(slice(0), (96,), 1).widths(32, 3)
        ([32, 64, 128], [32, 32, 32])
        """
        return [channels * 2 ** (layer * (len(self.size) - 1)) for layer in range(layers)]

    def cut_out(self, x: Tensor) -> Tensor:
        """(B, features) to (B, channels, *size), from −1 to 1."""
        levels = x[:, self.at].view(-1, *self.size, self.channels).movedim(-1, 1)
        return rooted(levels) if len(self.size) == 1 else 2 * levels - 1

    def others(self, x: Tensor) -> Tensor:
        """All other features."""
        return torch.cat([x[:, : self.at.start], x[:, self.at.stop :]], dim=1)

    def put_in(self, values: Tensor, others: Tensor) -> Tensor:
        """The other way round: (B, channels, *at least size), and the other features."""
        for axis, size in enumerate(self.size):
            values = values.narrow(2 + axis, 0, size)
        flat = values.movedim(1, -1).flatten(1)
        return torch.cat([others[:, : self.at.start], flat, others[:, self.at.start :]], dim=1)


def rooted(levels: Tensor) -> Tensor:
    """From −1, for the least, to 1."""
    return 2 * (levels + NEARLY_NONE).sqrt() - 1


def arrays(schema: Schema) -> list[str]:
    """The images and series of a schema."""
    return [name for name, column in schema.columns.items() if not isinstance(column, ScalarColumn | SetColumn)]
