"""Per-example gradients of the filters of a convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from sundog.training.per_example.factors import OuterSum, compute_squared_lengths, zero_rows


class Window(NamedTuple):
    """How the filters of a convolution move over an image; each pair is along height and width."""

    kernel_size: Sequence[int]
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]


class Convolution:
    """Filters: `small` has the filter's output channels, `large` its input channels, whichever way the layer runs."""

    def __init__(self, small: Tensor, large: Tensor, shape: torch.Size, geometry: dict[str, Any]) -> None:
        self.terms = [(small, large)]
        self.shape, self.geometry = shape, geometry
        self._materialised: Tensor | None = None

    @classmethod
    def merge(cls, parts: Sequence[Convolution]) -> Convolution:
        """Return the sum of several factors of the same parameter."""
        merged = cls(*parts[0].terms[0], parts[0].shape, parts[0].geometry)
        merged.terms = [term for part in parts for term in part.terms]
        return merged

    @property
    def examples(self) -> int:
        """The number of examples."""
        return self.terms[0][0].shape[0]

    def compute_squared_norms(self) -> Tensor:
        """Return the squared norm of each example's gradient, of shape (B,)."""
        return compute_squared_lengths(self._materialise())

    def compute_squared_mass(self) -> None:
        """Return None: it equals the squared norm."""

    def sum_weighted(self, weights: Tensor) -> Tensor:
        """Return Σ weights[i] · (gradient of example i), in the shape of the parameter."""
        return (weights @ self._materialise()).reshape(self.shape)

    def zero_examples(self, selected: Tensor) -> None:
        """Set the gradients of the selected examples to zero."""
        self._materialised = zero_rows(self._materialise(), selected)

    def _materialise(self) -> Tensor:
        """Materialise the gradients, (B, numel): filters are small compared to activations."""
        if self._materialised is None:
            groups = self.geometry["groups"]
            batch = self.terms[0][0].shape[0]
            gradients = self.terms[0][0].new_zeros(batch * groups, self.shape[0] // groups, self.shape[1:].numel())
            for small, large in self.terms:
                self._add_term(gradients, small, large)
            self._materialised = gradients.view(batch, self.shape.numel())
        return self._materialised

    def choose_cheaper(self) -> Convolution | OuterSum:
        """Return outer factors if there are few positions and large filters, otherwise these ones."""
        rows, columns = self.shape[0], self.shape[1:].numel()
        positions = sum(small.shape[2:].numel() for small, _ in self.terms)
        if self.geometry["groups"] > 1 or positions * (rows + columns) >= rows * columns:
            return self
        left = torch.cat([small.flatten(2).mT for small, _ in self.terms], dim=1)
        right = torch.cat([self._extract_patches(large) for _, large in self.terms], dim=1)
        return OuterSum(left, right, self.shape)

    def _extract_patches(self, large: Tensor) -> Tensor:
        """Return the patches of each example, (B, positions, channels · kernel)."""
        window = {key: self.geometry[key] for key in Window._fields}
        if large.dim() == 3:  # one dimension is two with a height of one
            large = large[:, :, None]
            window = {key: [int(key != "padding"), *value] for key, value in window.items()}
        return extract_patches(large, Window(**window))

    def _add_term(self, gradients: Tensor, small: Tensor, large: Tensor) -> None:
        """Add the products of output channels and patches, summed over positions, for each example and group."""
        right = self._extract_patches(large)
        rows, channels, size = gradients.shape
        batch, positions, _ = right.shape
        right = right.view(batch, positions, self.geometry["groups"], size).transpose(1, 2)
        gradients.baddbmm_(small.reshape(rows, channels, positions), right.reshape(rows, positions, size))


def extract_patches(images: Tensor, window: Window) -> Tensor:
    """Return the patches that filters see: (B, channels, height, width) to (B, positions, channels · kernel).

    >>> image = torch.arange(6.0).view(1, 1, 2, 3)
    >>> extract_patches(image, Window((2, 2), stride=(1, 1), padding=(0, 0), dilation=(1, 1))).tolist()
    [[[0.0, 1.0, 3.0, 4.0], [1.0, 2.0, 4.0, 5.0]]]
    """
    if not images.is_cuda:
        return functional.unfold(images, **{key: tuple(pair) for key, pair in window._asdict().items()}).mT
    return extract_by_view(images, window)


def extract_by_view(images: Tensor, window: Window) -> Tensor:
    """Return the patches as one copy of a view: on a GPU `unfold` launches a kernel for every example."""
    height, width = window.padding
    view = functional.pad(images, (width, width, height, height))
    for axis, (size, stride, dilation) in enumerate(
        zip(window.kernel_size, window.stride, window.dilation, strict=True)
    ):
        reach = (size - 1) * dilation + 1
        view = view.unfold(2 + axis, reach, stride)[..., ::dilation]
    batch, channels, rows, columns, *kernel = view.shape
    return view.permute(0, 2, 3, 1, 4, 5).reshape(batch, rows * columns, channels * kernel[0] * kernel[1])
