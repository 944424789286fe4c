"""The one image or series of a record, as a grid."""

from __future__ import annotations

import torch
from torch import Tensor

from sundog.models.gan.architectures import list_arrays
from sundog.models.gan.geometry import Geometry
from sundog.models.neural.features import Features

NEARLY_NONE = 1e-4  # of a range: a root is too steep at zero


class Grid(Geometry):
    """The one image or series of a record, cut out of its features and put back."""

    @classmethod
    def of(cls, features: Features, without: slice = slice(0, 0)) -> Grid:
        """Return the grid of a schema with one array; the features `without`, all before it, were removed."""
        (name,) = list_arrays(features.schema)
        at, fewer = features.at(name), without.stop - without.start
        found = Geometry.of_shape(features.schema.columns[name].shape, slice(at.start - fewer, at.stop - fewer))
        return cls(found.at, found.size, found.channels)

    def cut_out(self, x: Tensor) -> Tensor:
        """Return the grid, from −1 to 1: (B, features) to (B, channels, *size)."""
        levels = x[:, self.at].view(-1, *self.size, self.channels).movedim(-1, 1)
        return take_root(levels) if len(self.size) == 1 else 2 * levels - 1

    def select_others(self, x: Tensor) -> Tensor:
        """Return all other features."""
        return torch.cat([x[:, : self.at.start], x[:, self.at.stop :]], dim=1)

    def put_in(self, values: Tensor, others: Tensor) -> Tensor:
        """Return the features of a grid of (B, channels, *at least size) and of the other features: (B, features)."""
        for axis, size in enumerate(self.size):
            values = values.narrow(2 + axis, 0, size)
        flat = values.movedim(1, -1).flatten(1)
        return torch.cat([others[:, : self.at.start], flat, others[:, self.at.start :]], dim=1)


def take_root(levels: Tensor) -> Tensor:
    """Return 2√x − 1: from −1 for the smallest level to 1."""
    return 2 * (levels + NEARLY_NONE).sqrt() - 1
