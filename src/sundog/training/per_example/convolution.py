"""The gradients of a convolution's filters, for each example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sundog.training.per_example.factors import OuterSum, squares, without
from sundog.training.per_example.patches import patches


class Convolution:
    """Filters: `small` has the filter's output channels, `large` its input channels, whichever way the layer runs."""

    def __init__(self, small: Tensor, large: Tensor, shape: torch.Size, geometry: dict[str, Any]) -> None:
        self.terms = [(small, large)]
        self.shape, self.geometry = shape, geometry
        self._written: Tensor | None = None

    @classmethod
    def join(cls, uses: Sequence[Convolution]) -> Convolution:
        """Adds up several uses of the same parameter."""
        joined = cls(*uses[0].terms[0], uses[0].shape, uses[0].geometry)
        joined.terms = [term for use in uses for term in use.terms]
        return joined

    @property
    def examples(self) -> int:
        """How many there are."""
        return self.terms[0][0].shape[0]

    def squared_norms(self) -> Tensor:
        """(B,)."""
        return squares(self._gradients())

    def squared_mass(self) -> None:
        """The squared norm: what is measured is what is summed."""

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """In the shape of the parameter."""
        return (weights @ self._gradients()).reshape(self.shape)

    def leave_out(self, bad: Tensor) -> None:
        """Zeroes these examples."""
        self._written = without(self._gradients(), bad)

    def _gradients(self) -> Tensor:
        """(B, numel): filters are small, and everything else about them is not."""
        if self._written is None:
            groups = self.geometry["groups"]
            batch = self.terms[0][0].shape[0]
            written = self.terms[0][0].new_zeros(batch * groups, self.shape[0] // groups, self.shape[1:].numel())
            for small, large in self.terms:
                self._add_term(written, small, large)
            self._written = written.view(batch, self.shape.numel())
        return self._written

    def lightest(self) -> Convolution | OuterSum:
        """Itself; or where there are few positions and large filters, the factors, from which no filter is written."""
        rows, columns = self.shape[0], self.shape[1:].numel()
        positions = sum(small.shape[2:].numel() for small, _ in self.terms)
        if self.geometry["groups"] > 1 or positions * (rows + columns) >= rows * columns:
            return self
        left = torch.cat([small.flatten(2).mT for small, _ in self.terms], dim=1)
        right = torch.cat([self._patches(large) for _, large in self.terms], dim=1)
        return OuterSum(left, right, self.shape)

    def _patches(self, large: Tensor) -> Tensor:
        """(B, positions, channels · kernel)."""
        geometry = {key: self.geometry[key] for key in ("kernel_size", "stride", "padding", "dilation")}
        if large.dim() == 3:  # one dimension is two with a height of one
            large = large[:, :, None]
            geometry = {key: [int(key != "padding"), *value] for key, value in geometry.items()}
        return patches(large, **geometry)

    def _add_term(self, written: Tensor, small: Tensor, large: Tensor) -> None:
        """Output channels × patches, summed over positions, for each example and group."""
        right = self._patches(large)
        rows, channels, size = written.shape
        batch, positions, _ = right.shape
        right = right.view(batch, positions, self.geometry["groups"], size).transpose(1, 2)
        written.baddbmm_(small.reshape(rows, channels, positions), right.reshape(rows, positions, size))
