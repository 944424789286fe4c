"""What one example does to one parameter, kept in factors.

The gradient of a parameter for one example is a sum of few terms, each a product of what went into a layer and what
came back out of the loss. From the factors follow its norm (small Gram matrices) and any weighted sum over the batch
(one matrix product), so the gradient of an example is hardly ever written down. A layer that is used several times in
one loss, or differentiated twice as in a gradient penalty, has several terms for the same parameter; they are joined
before norms are taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, Self

import torch
from torch import Tensor


class Use(Protocol):
    """The per-example gradients of one parameter over a batch of B."""

    @classmethod
    def join(cls, uses: Sequence[Self]) -> Use:
        """The sum of several uses of the same parameter."""

    @property
    def examples(self) -> int:
        """How many there are: B."""

    def squared_norms(self) -> Tensor:
        """The squared norm of every example's gradient: (B,)."""

    def squared_mass(self) -> Tensor | None:
        """(Σ norms of the terms)², (B,): what rounding errors go by. None where it is the squared norm itself."""

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Σ weights[i] · gradient of example i, in the parameter's shape."""

    def leave_out(self, bad: Tensor) -> None:
        """Makes the gradients of the examples where `bad` is true zero, whatever they were, NaN included."""


class Dense:
    """Per-example gradients written down, where they are small: biases, scales."""

    def __init__(self, gradients: Tensor, shape: torch.Size) -> None:
        self.gradients = gradients.reshape(gradients.shape[0], shape.numel())  # (B, numel)
        self.shape = shape

    @classmethod
    def join(cls, uses: Sequence[Dense]) -> Dense:
        """Adds up several uses of the same parameter."""
        return cls(torch.stack([use.gradients for use in uses]).sum(dim=0), uses[0].shape)

    @property
    def examples(self) -> int:
        """How many there are."""
        return self.gradients.shape[0]

    def squared_norms(self) -> Tensor:
        """(B,)."""
        return squares(self.gradients)

    def squared_mass(self) -> None:
        """The squared norm."""

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """In the shape of the parameter."""
        if self.gradients.is_cuda:  # a compiler makes one pass of this and of what else is done to the gradients
            return (weights[:, None] * self.gradients).sum(dim=0).reshape(self.shape)
        return (weights @ self.gradients).reshape(self.shape)

    def leave_out(self, bad: Tensor) -> None:
        """Zeroes these examples."""
        self.gradients = without(self.gradients, bad)


class Outer:
    """Rank-one terms of a matrix: example i adds Σₖ leftₖ[i] ⊗ rightₖ[i]."""

    def __init__(self, left: Tensor, right: Tensor) -> None:
        self.terms = [(left, right)]  # (B, rows), (B, columns)

    @classmethod
    def join(cls, uses: Sequence[Outer]) -> Outer | OuterSum:
        """Adds up several uses of the same parameter."""
        terms = [term for use in uses for term in use.terms]
        if len(terms) > 4:  # a recurrent layer has a term a step: one product for all of them
            left, right = (torch.stack(side, dim=1) for side in zip(*terms, strict=True))
            return OuterSum(left, right)
        return cls.of(terms)

    @classmethod
    def of(cls, terms: list[tuple[Tensor, Tensor]]) -> Outer:
        """The sum of these terms."""
        whole = cls(*terms[0])
        whole.terms = terms
        return whole

    @property
    def examples(self) -> int:
        """How many there are."""
        return self.terms[0][0].shape[0]

    def squared_norms(self) -> Tensor:
        """(B,)."""
        total = self.terms[0][0].new_zeros(self.terms[0][0].shape[0])
        for k, (left, right) in enumerate(self.terms):
            total.add_((_lengths(left) * _lengths(right)).square_())
            for other_left, other_right in self.terms[:k]:
                total.addcmul_(_dots(left, other_left), _dots(right, other_right), value=2)
        return total.clamp_min_(0.0)

    def squared_mass(self) -> Tensor | None:
        """(Σₖ ‖leftₖ‖ ‖rightₖ‖)²."""
        if len(self.terms) == 1:
            return None
        return torch.stack([_lengths(left) * _lengths(right) for left, right in self.terms]).sum(dim=0).square_()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """In the shape of the parameter."""
        first, *rest = self.terms
        total = _scaled_product(*first, weights)
        for left, right in rest:
            total += _scaled_product(left, right, weights)
        return total

    def leave_out(self, bad: Tensor) -> None:
        """Zeroes these examples."""
        self.terms = [(without(left, bad), without(right, bad)) for left, right in self.terms]


class StackedOuter:
    """The same for a stack of k matrices: example (j, i) adds Σ left[j, i] ⊗ right[j, i] to matrix j alone."""

    def __init__(self, left: Tensor, right: Tensor) -> None:
        self.terms = [(left, right)]  # (k, B, rows), (k, B, columns)

    @classmethod
    def join(cls, uses: Sequence[StackedOuter]) -> StackedOuter:
        """Adds up several uses of the same parameter."""
        joined = cls(*uses[0].terms[0])
        joined.terms = [term for use in uses for term in use.terms]
        return joined

    @property
    def examples(self) -> int:
        """How many there are."""
        return self.terms[0][0].shape[0] * self.terms[0][0].shape[1]

    def squared_norms(self) -> Tensor:
        """(k·B,)."""
        return self._flat().squared_norms()

    def squared_mass(self) -> Tensor | None:
        """As that of `Outer`."""
        return self._flat().squared_mass()

    def _flat(self) -> Outer:
        return Outer.of([(left.flatten(0, 1), right.flatten(0, 1)) for left, right in self.terms])

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """In the shape of the parameter."""
        first, *rest = ((_weighted(left, weights).mT, right) for left, right in self.terms)
        total = torch.bmm(*first)
        for left, right in rest:
            total.baddbmm_(left, right)
        return total

    def leave_out(self, bad: Tensor) -> None:
        """Zeroes these examples."""
        bad = bad.view(self.terms[0][0].shape[:2])
        self.terms = [(without(left, bad), without(right, bad)) for left, right in self.terms]


class StackedDense:
    """Biases of a stack: example (j, i) adds gradients[j, i] to row j."""

    def __init__(self, gradients: Tensor) -> None:
        self.gradients = gradients  # (k, B, width)

    @classmethod
    def join(cls, uses: Sequence[StackedDense]) -> StackedDense:
        """Adds up several uses of the same parameter."""
        return cls(torch.stack([use.gradients for use in uses]).sum(dim=0))

    @property
    def examples(self) -> int:
        """How many there are."""
        return self.gradients.shape[0] * self.gradients.shape[1]

    def squared_norms(self) -> Tensor:
        """(k·B,)."""
        return squares(self.gradients.flatten(0, 1))

    def squared_mass(self) -> None:
        """The squared norm."""

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """In the shape of the parameter."""
        return torch.bmm(weights.view(self.gradients.shape[:2])[:, None], self.gradients)[:, 0]

    def leave_out(self, bad: Tensor) -> None:
        """Zeroes these examples."""
        self.gradients = without(self.gradients, bad.view(self.gradients.shape[:2]))


class OuterSum:
    """The same over positions: example i adds Σₜ left[i, t] ⊗ right[i, t], for T positions."""

    def __init__(self, left: Tensor, right: Tensor, shape: torch.Size | None = None) -> None:
        self.left, self.right = left, right  # (B, T, rows), (B, T, columns)
        self.shape = shape if shape is not None else torch.Size((left.shape[2], right.shape[2]))

    @classmethod
    def join(cls, uses: Sequence[OuterSum]) -> OuterSum:
        """Adds up several uses of the same parameter."""
        left = torch.cat([use.left for use in uses], dim=1)
        right = torch.cat([use.right for use in uses], dim=1)
        return cls(left, right, uses[0].shape)

    @property
    def examples(self) -> int:
        """How many there are."""
        return self.left.shape[0]

    def squared_norms(self) -> Tensor:
        """(B,)."""
        _, positions, rows = self.left.shape
        columns = self.right.shape[2]
        if positions * (rows + columns) < rows * columns:  # Gram matrices are smaller than the gradient
            gram = (self.left @ self.left.mT) * (self.right @ self.right.mT)
            return gram.sum(dim=(1, 2)).clamp_min_(0.0)
        return squares((self.left.mT @ self.right).flatten(1))

    def squared_mass(self) -> Tensor | None:
        """(Σₜ ‖left[t]‖ ‖right[t]‖)²."""
        return _dots(_lengths(self.left), _lengths(self.right)).square_()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """In the shape of the parameter."""
        scaled = self.left * weights[:, None, None]
        product = scaled.flatten(0, 1).T @ self.right.flatten(0, 1)
        return product.reshape(self.shape)

    def leave_out(self, bad: Tensor) -> None:
        """Zeroes these examples."""
        self.left, self.right = without(self.left, bad), without(self.right, bad)


class Lookup:
    """Rows of an embedding: example i adds gradient[i, t] to row index[i, t]."""

    def __init__(self, index: Tensor, gradient: Tensor, rows: int) -> None:
        self.index, self.gradient, self.rows = index, gradient, rows  # (B, T), (B, T, width)

    @classmethod
    def join(cls, uses: Sequence[Lookup]) -> Lookup:
        """Adds up several uses of the same parameter."""
        index = torch.cat([use.index for use in uses], dim=1)
        return cls(index, torch.cat([use.gradient for use in uses], dim=1), uses[0].rows)

    @property
    def examples(self) -> int:
        """How many there are."""
        return self.index.shape[0]

    def squared_norms(self) -> Tensor:
        """(B,)."""
        same = self.index[:, :, None] == self.index[:, None, :]  # rows that are looked up twice add before squaring
        return ((self.gradient @ self.gradient.mT) * same).sum(dim=(1, 2)).clamp_min_(0.0)

    def squared_mass(self) -> Tensor | None:
        """(Σₜ ‖gradient[t]‖)²."""
        return _lengths(self.gradient).sum(dim=1).square_()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """In the shape of the parameter."""
        scaled = (self.gradient * weights[:, None, None]).flatten(0, 1)
        total = scaled.new_zeros(self.rows, scaled.shape[1])
        return total.index_add_(0, self.index.flatten(), scaled)

    def leave_out(self, bad: Tensor) -> None:
        """Zeroes these examples."""
        self.gradient = without(self.gradient, bad)


def add_up(uses: Sequence[Any]) -> bool:
    """Whether uses of the same parameter can be joined: not those of a matrix that is a table as well."""
    kinds = {type(use) for use in uses}
    return len(kinds) < 2 or kinds == {Outer, OuterSum}


def joined(uses: Sequence[Any]) -> Use:
    """One use out of several of the same parameter, which add up."""
    if {type(use) for use in uses} == {Outer, OuterSum}:  # a layer used on vectors and on sequences
        vectors = [
            OuterSum(left[:, None], right[:, None])
            for use in uses
            if isinstance(use, Outer)
            for left, right in use.terms
        ]
        uses = [*vectors, *(use for use in uses if isinstance(use, OuterSum))]
    whole: Use = uses[0] if len(uses) == 1 else type(uses[0]).join(uses)
    return whole


def _lengths(a: Tensor) -> Tensor:
    """Of the vectors along the last dimension, (…, n) → (…), and never less: numbers whose squares vanish count."""
    lengths: Tensor = a[..., 0].abs() if a.shape[-1] == 1 else torch.linalg.vector_norm(a, dim=-1)
    return lengths.add_(math.sqrt(a.shape[-1]) * torch.finfo(a.dtype).tiny ** 0.5)


def squares(a: Tensor) -> Tensor:
    """The squared length of every row: (B, n) → (B,)."""
    return _lengths(a).square_()


def without(a: Tensor, bad: Tensor) -> Tensor:
    """Rows of zeros where `bad` is true; a product with zero would leave NaN as it is."""
    return a.masked_fill(bad.view(*bad.shape, *[1] * (a.dim() - bad.dim())), 0.0)


def _weighted(a: Tensor, weights: Tensor) -> Tensor:
    """Scales the examples of a stack: (k, B, n), (k·B,)."""
    return a * weights.view(*a.shape[:2], 1)


def _dots(a: Tensor, b: Tensor) -> Tensor:
    """Row by row: (B, n), (B, n) → (B,)."""
    products: Tensor = torch.linalg.vecdot(a, b)
    return products


def _scaled_product(left: Tensor, right: Tensor, weights: Tensor) -> Tensor:
    """Σ weights[i] · left[i] ⊗ right[i], scaling whichever side is narrower."""
    if left.shape[1] > right.shape[1]:
        return left.T @ (right * weights[:, None])
    scaled = left * weights[:, None]
    return (right.T @ scaled).T if left.is_cuda else scaled.T @ right  # cuBLAS divides tall matrices better
