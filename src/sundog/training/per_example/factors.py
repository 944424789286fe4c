"""Per-example gradients of one parameter, stored as factors.

The gradient of a parameter for one example is a sum of a few outer products of a layer's inputs and output gradients.
The factors give the norm of each example's gradient (small Gram matrices) and any weighted sum over the batch (one
matrix product), so the gradients themselves are rarely materialised. A layer that is used several times in one loss, or
differentiated twice (a gradient penalty), records several factors for one parameter; they are merged before norms are
computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, Self

import torch
from torch import Tensor


class Factors(Protocol):
    """The gradients of one parameter for each of B examples."""

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Factors:
        """Return the sum of several factors of the same parameter."""

    @property
    def examples(self) -> int:
        """The number of examples, B."""

    def compute_squared_norms(self) -> Tensor:
        """Return the squared norm of each example's gradient, of shape (B,)."""

    def compute_squared_mass(self) -> Tensor | None:
        """Return (Σ norms of the terms)², (B,), which bounds rounding errors; None if it equals the squared norm."""

    def sum_weighted(self, weights: Tensor) -> Tensor:
        """Return Σ weights[i] · (gradient of example i), in the shape of the parameter."""

    def zero_examples(self, selected: Tensor) -> None:
        """Set the gradients of the selected examples to zero, NaN included."""


class Dense:
    """Materialised gradients, where they are small: biases, scales."""

    def __init__(self, gradients: Tensor, shape: torch.Size) -> None:
        self.gradients = gradients.reshape(gradients.shape[0], shape.numel())  # (B, numel)
        self.shape = shape

    @classmethod
    def merge(cls, parts: Sequence[Dense]) -> Dense:
        """Return the sum of several factors of the same parameter."""
        return cls(torch.stack([part.gradients for part in parts]).sum(dim=0), parts[0].shape)

    @property
    def examples(self) -> int:
        """The number of examples."""
        return self.gradients.shape[0]

    def compute_squared_norms(self) -> Tensor:
        """Return the squared norm of each example's gradient, of shape (B,)."""
        return compute_squared_lengths(self.gradients)

    def compute_squared_mass(self) -> None:
        """Return None: it equals the squared norm."""

    def sum_weighted(self, weights: Tensor) -> Tensor:
        """Return Σ weights[i] · (gradient of example i), in the shape of the parameter."""
        if self.gradients.is_cuda:  # a compiler fuses this with what else is done to the gradients
            return (weights[:, None] * self.gradients).sum(dim=0).reshape(self.shape)
        return (weights @ self.gradients).reshape(self.shape)

    def zero_examples(self, selected: Tensor) -> None:
        """Set the gradients of the selected examples to zero."""
        self.gradients = zero_rows(self.gradients, selected)


class Outer:
    """Rank-one terms of a matrix: example i adds Σₖ leftₖ[i] ⊗ rightₖ[i]."""

    def __init__(self, left: Tensor, right: Tensor) -> None:
        self.terms = [(left, right)]  # (B, rows), (B, columns)

    @classmethod
    def merge(cls, parts: Sequence[Outer]) -> Outer | OuterSum:
        """Return the sum of several factors of the same parameter."""
        terms = [term for part in parts for term in part.terms]
        if len(terms) > 4:  # a recurrent layer has one term per time step: compute them in one product
            left, right = (torch.stack(side, dim=1) for side in zip(*terms, strict=True))
            return OuterSum(left, right)
        return cls.of(terms)

    @classmethod
    def of(cls, terms: list[tuple[Tensor, Tensor]]) -> Outer:
        """Return the sum of these terms."""
        whole = cls(*terms[0])
        whole.terms = terms
        return whole

    @property
    def examples(self) -> int:
        """The number of examples."""
        return self.terms[0][0].shape[0]

    def compute_squared_norms(self) -> Tensor:
        """Return the squared norm of each example's gradient, of shape (B,)."""
        total = self.terms[0][0].new_zeros(self.terms[0][0].shape[0])
        for k, (left, right) in enumerate(self.terms):
            total.add_((_compute_lengths(left) * _compute_lengths(right)).square_())
            for other_left, other_right in self.terms[:k]:
                total.addcmul_(_multiply_rows(left, other_left), _multiply_rows(right, other_right), value=2)
        return total.clamp_min_(0.0)

    def compute_squared_mass(self) -> Tensor | None:
        """Return (Σₖ ‖leftₖ‖ ‖rightₖ‖)²; None if there is one term."""
        if len(self.terms) == 1:
            return None
        return (
            torch.stack([_compute_lengths(left) * _compute_lengths(right) for left, right in self.terms])
            .sum(dim=0)
            .square_()
        )

    def sum_weighted(self, weights: Tensor) -> Tensor:
        """Return Σ weights[i] · (gradient of example i), in the shape of the parameter."""
        first, *rest = self.terms
        total = _multiply_scaled(*first, weights)
        for left, right in rest:
            total += _multiply_scaled(left, right, weights)
        return total

    def zero_examples(self, selected: Tensor) -> None:
        """Set the gradients of the selected examples to zero."""
        self.terms = [(zero_rows(left, selected), zero_rows(right, selected)) for left, right in self.terms]


class StackedOuter:
    """Rank-one terms of a stack of k matrices: example (j, i) adds Σ left[j, i] ⊗ right[j, i] to matrix j alone."""

    def __init__(self, left: Tensor, right: Tensor) -> None:
        self.terms = [(left, right)]  # (k, B, rows), (k, B, columns)

    @classmethod
    def merge(cls, parts: Sequence[StackedOuter]) -> StackedOuter:
        """Return the sum of several factors of the same parameter."""
        merged = cls(*parts[0].terms[0])
        merged.terms = [term for part in parts for term in part.terms]
        return merged

    @property
    def examples(self) -> int:
        """The number of examples."""
        return self.terms[0][0].shape[0] * self.terms[0][0].shape[1]

    def compute_squared_norms(self) -> Tensor:
        """Return the squared norm of each example's gradient, of shape (k·B,)."""
        return self._flatten().compute_squared_norms()

    def compute_squared_mass(self) -> Tensor | None:
        """Return (Σₖ ‖leftₖ‖ ‖rightₖ‖)²; None if there is one term."""
        return self._flatten().compute_squared_mass()

    def _flatten(self) -> Outer:
        return Outer.of([(left.flatten(0, 1), right.flatten(0, 1)) for left, right in self.terms])

    def sum_weighted(self, weights: Tensor) -> Tensor:
        """Return Σ weights[i] · (gradient of example i), in the shape of the parameter."""
        first, *rest = ((_scale_examples(left, weights).mT, right) for left, right in self.terms)
        total = torch.bmm(*first)
        for left, right in rest:
            total.baddbmm_(left, right)
        return total

    def zero_examples(self, selected: Tensor) -> None:
        """Set the gradients of the selected examples to zero."""
        selected = selected.view(self.terms[0][0].shape[:2])
        self.terms = [(zero_rows(left, selected), zero_rows(right, selected)) for left, right in self.terms]


class StackedDense:
    """Biases of a stack: example (j, i) adds gradients[j, i] to row j."""

    def __init__(self, gradients: Tensor) -> None:
        self.gradients = gradients  # (k, B, width)

    @classmethod
    def merge(cls, parts: Sequence[StackedDense]) -> StackedDense:
        """Return the sum of several factors of the same parameter."""
        return cls(torch.stack([part.gradients for part in parts]).sum(dim=0))

    @property
    def examples(self) -> int:
        """The number of examples."""
        return self.gradients.shape[0] * self.gradients.shape[1]

    def compute_squared_norms(self) -> Tensor:
        """Return the squared norm of each example's gradient, of shape (k·B,)."""
        return compute_squared_lengths(self.gradients.flatten(0, 1))

    def compute_squared_mass(self) -> None:
        """Return None: it equals the squared norm."""

    def sum_weighted(self, weights: Tensor) -> Tensor:
        """Return Σ weights[i] · (gradient of example i), in the shape of the parameter."""
        return torch.bmm(weights.view(self.gradients.shape[:2])[:, None], self.gradients)[:, 0]

    def zero_examples(self, selected: Tensor) -> None:
        """Set the gradients of the selected examples to zero."""
        self.gradients = zero_rows(self.gradients, selected.view(self.gradients.shape[:2]))


class OuterSum:
    """Rank-one terms at T positions: example i adds Σₜ left[i, t] ⊗ right[i, t]."""

    def __init__(self, left: Tensor, right: Tensor, shape: torch.Size | None = None) -> None:
        self.left, self.right = left, right  # (B, T, rows), (B, T, columns)
        self.shape = shape if shape is not None else torch.Size((left.shape[2], right.shape[2]))

    @classmethod
    def merge(cls, parts: Sequence[OuterSum]) -> OuterSum:
        """Return the sum of several factors of the same parameter."""
        left = torch.cat([part.left for part in parts], dim=1)
        right = torch.cat([part.right for part in parts], dim=1)
        return cls(left, right, parts[0].shape)

    @property
    def examples(self) -> int:
        """The number of examples."""
        return self.left.shape[0]

    def compute_squared_norms(self) -> Tensor:
        """Return the squared norm of each example's gradient, of shape (B,)."""
        _, positions, rows = self.left.shape
        columns = self.right.shape[2]
        if positions * (rows + columns) < rows * columns:  # Gram matrices are smaller than the gradient
            gram = (self.left @ self.left.mT) * (self.right @ self.right.mT)
            return gram.sum(dim=(1, 2)).clamp_min_(0.0)
        return compute_squared_lengths((self.left.mT @ self.right).flatten(1))

    def compute_squared_mass(self) -> Tensor | None:
        """Return (Σₜ ‖left[t]‖ ‖right[t]‖)²."""
        return _multiply_rows(_compute_lengths(self.left), _compute_lengths(self.right)).square_()

    def sum_weighted(self, weights: Tensor) -> Tensor:
        """Return Σ weights[i] · (gradient of example i), in the shape of the parameter."""
        scaled = self.left * weights[:, None, None]
        product = scaled.flatten(0, 1).T @ self.right.flatten(0, 1)
        return product.reshape(self.shape)

    def zero_examples(self, selected: Tensor) -> None:
        """Set the gradients of the selected examples to zero."""
        self.left, self.right = zero_rows(self.left, selected), zero_rows(self.right, selected)


class Lookup:
    """Rows of an embedding: example i adds gradient[i, t] to row index[i, t]."""

    def __init__(self, index: Tensor, gradient: Tensor, rows: int) -> None:
        self.index, self.gradient, self.rows = index, gradient, rows  # (B, T), (B, T, width)

    @classmethod
    def merge(cls, parts: Sequence[Lookup]) -> Lookup:
        """Return the sum of several factors of the same parameter."""
        index = torch.cat([part.index for part in parts], dim=1)
        return cls(index, torch.cat([part.gradient for part in parts], dim=1), parts[0].rows)

    @property
    def examples(self) -> int:
        """The number of examples."""
        return self.index.shape[0]

    def compute_squared_norms(self) -> Tensor:
        """Return the squared norm of each example's gradient, of shape (B,)."""
        same = self.index[:, :, None] == self.index[:, None, :]  # repeated rows add before squaring
        return ((self.gradient @ self.gradient.mT) * same).sum(dim=(1, 2)).clamp_min_(0.0)

    def compute_squared_mass(self) -> Tensor | None:
        """Return (Σₜ ‖gradient[t]‖)²."""
        return _compute_lengths(self.gradient).sum(dim=1).square_()

    def sum_weighted(self, weights: Tensor) -> Tensor:
        """Return Σ weights[i] · (gradient of example i), in the shape of the parameter."""
        scaled = (self.gradient * weights[:, None, None]).flatten(0, 1)
        total = scaled.new_zeros(self.rows, scaled.shape[1])
        return total.index_add_(0, self.index.flatten(), scaled)

    def zero_examples(self, selected: Tensor) -> None:
        """Set the gradients of the selected examples to zero."""
        self.gradient = zero_rows(self.gradient, selected)


def can_merge(parts: Sequence[Any]) -> bool:
    """Return whether factors of one parameter can be merged: not if it is both a matrix and an embedding table."""
    kinds = {type(part) for part in parts}
    return len(kinds) < 2 or kinds == {Outer, OuterSum}


def merge_factors(parts: Sequence[Any]) -> Factors:
    """Return the sum of all factors of one parameter."""
    if {type(part) for part in parts} == {Outer, OuterSum}:  # a layer that is used on vectors and on sequences
        vectors = [
            OuterSum(left[:, None], right[:, None])
            for part in parts
            if isinstance(part, Outer)
            for left, right in part.terms
        ]
        parts = [*vectors, *(part for part in parts if isinstance(part, OuterSum))]
    whole: Factors = parts[0] if len(parts) == 1 else type(parts[0]).merge(parts)
    return whole


def _compute_lengths(a: Tensor) -> Tensor:
    """Return norms along the last dimension, (…, n) → (…), rounded up so that squares do not underflow to zero."""
    lengths: Tensor = a[..., 0].abs() if a.shape[-1] == 1 else torch.linalg.vector_norm(a, dim=-1)
    return lengths.add_(math.sqrt(a.shape[-1]) * torch.finfo(a.dtype).tiny ** 0.5)


def compute_squared_lengths(a: Tensor) -> Tensor:
    """Return the squared norm of every row: (B, n) → (B,)."""
    return _compute_lengths(a).square_()


def zero_rows(a: Tensor, selected: Tensor) -> Tensor:
    """Set the selected rows to zero; a product with zero would keep NaN."""
    return a.masked_fill(selected.view(*selected.shape, *[1] * (a.dim() - selected.dim())), 0.0)


def _scale_examples(a: Tensor, weights: Tensor) -> Tensor:
    """Scale the examples of a stack: (k, B, n), (k·B,)."""
    return a * weights.view(*a.shape[:2], 1)


def _multiply_rows(a: Tensor, b: Tensor) -> Tensor:
    """Return the dot products of rows: (B, n), (B, n) → (B,)."""
    products: Tensor = torch.linalg.vecdot(a, b)
    return products


def _multiply_scaled(left: Tensor, right: Tensor, weights: Tensor) -> Tensor:
    """Return Σ weights[i] · left[i] ⊗ right[i], scaling the narrower side."""
    if left.shape[1] > right.shape[1]:
        return left.T @ (right * weights[:, None])
    scaled = left * weights[:, None]
    return (right.T @ scaled).T if left.is_cuda else scaled.T @ right  # faster in cuBLAS for tall matrices
