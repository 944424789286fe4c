"""The norm of each example's gradient, computed from its factors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sundog.training.groups import Groups
from sundog.training.per_example.factors import Factors
from sundog.training.speed.options import Speed


def compute_per_example_norms(factors: Sequence[Factors | None], groups: Groups, speed: Speed) -> Tensor:
    """Return the norm of each example's gradient in each group, of shape (groups, B), rounded up.

    Rounding may hide a part of a norm, or add to the weighted sum; norms are increased by a bound on both
    (docs/training.md).

    Args:
        factors: of each parameter; None for a parameter that no example uses.
        groups: which parameters are clipped together.
        speed: the precision of the products that are summed.
    """
    squared: dict[int, Tensor] = {}
    mass: dict[int, Tensor] = {}
    for part, group in zip(factors, groups.of, strict=True):
        if part is not None:
            more = part.compute_squared_norms()
            heavy = part.compute_squared_mass()
            if heavy is None:
                heavy = more
            else:  # terms may cancel in the square, whose error is then relative to their mass
                more = more + 2 * speed.bound_rounding(more.dtype) * heavy
            squared[group] = squared[group] + more if group in squared else more
            mass[group] = mass[group] + heavy if group in mass else heavy
    if not squared:
        return torch.zeros(groups.count, 0, device=groups.parameters[0].device)
    nothing = torch.zeros_like(next(iter(squared.values())))
    lengths, weights = (
        torch.stack([of.get(group, nothing) for group in range(groups.count)]).sqrt_() for of in (squared, mass)
    )
    return lengths.add_(weights, alpha=speed.bound_rounding(lengths.dtype))
