"""The clipped sum of per-example gradients, exactly: the one place where private examples meet parameters.

One forward and one backward pass through tapped layers; norms from factors; a weight for each example; one product a
layer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sundog.training.layers import refuse_batch_statistics, tapped, untapped
from sundog.training.taps import recording
from sundog.training.uses import Dense, Use, joined

Loss = Callable[[Any], Tensor]  # a batch of B examples to B losses
Weigh = Callable[[Tensor], Tensor]  # the norms of B examples in each group (groups, B) to their weights (groups, B)


@dataclass(frozen=True)
class Groups:
    """Parameters that are clipped together: `of[i]` is the group of parameter i."""

    parameters: Sequence[nn.Parameter]
    of: Sequence[int]

    @property
    def count(self) -> int:
        """How many groups there are."""
        return max(self.of, default=-1) + 1


def clipped_sum(module: nn.Module, loss: Loss, batch: Any, groups: Groups, weigh: Weigh) -> tuple[list[Tensor], Tensor]:
    """Σ weightᵢ · gradientᵢ for every parameter, and the norms of the examples' gradients in each group.

    Args:
        module: the owner of the parameters.
        loss: the loss of each example by itself; no example may see another.
        batch: the examples.
        groups: which parameters are clipped together.
        weigh: from norms to weights, such as min(1, C / norm).
    """
    uses = per_example(module, loss, batch, groups.parameters)
    device, size = groups.parameters[0].device, _size(uses)
    squared = torch.zeros(groups.count, size, device=device)
    for use, group in zip(uses, groups.of, strict=True):
        if use is not None:
            squared[group] += use.squared_norms()
    norms = squared.sqrt_()
    weights = weigh(norms)
    sums = [
        torch.zeros_like(p) if use is None else use.weighted_sum(weights[group])
        for p, use, group in zip(groups.parameters, uses, groups.of, strict=True)
    ]
    return sums, norms


def per_example(module: nn.Module, loss: Loss, batch: Any, parameters: Sequence[nn.Parameter]) -> list[Use | None]:
    """The gradients of every example, in factors; None for a parameter that no example touched."""
    refuse_batch_statistics(module)
    unknown = untapped(module)
    if not unknown:
        uses = _by_taps(module, loss, batch, parameters)
        if uses is not None:
            return uses
        unknown = ["a parameter that is used outside of its layer"]
    warnings.warn(
        f"per-example gradients are written down in full, slowly, because of {', '.join(unknown)}", stacklevel=2
    )
    return _by_vmap(module, loss, batch, parameters)


def _by_taps(module: nn.Module, loss: Loss, batch: Any, parameters: Sequence[nn.Parameter]) -> list[Use | None] | None:
    saved = [p.grad for p in parameters]
    for p in parameters:
        p.grad = None
    try:
        with recording() as uses, tapped(module):
            loss(batch).sum().backward()  # type: ignore[no-untyped-call]
        if any(p.grad is not None for p in parameters):
            return None  # autograd reached a parameter by another way than its layer: its factors are not all there
        return [joined(uses[id(p)]) if id(p) in uses else None for p in parameters]
    finally:
        for p, grad in zip(parameters, saved, strict=True):
            p.grad = grad


def _by_vmap(module: nn.Module, loss: Loss, batch: Any, parameters: Sequence[nn.Parameter]) -> list[Use | None]:
    values = dict(module.named_parameters())
    chosen = {id(p) for p in parameters}
    trainable = {name: p.detach() for name, p in values.items() if id(p) in chosen}

    def one(weights: dict[str, Tensor], example: Any) -> Tensor:
        single = _mapped(lambda t: t[None], example)
        return _functional(module, loss, weights, single)[0]

    gradients = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0), randomness="different")(trainable, batch)
    names = {id(p): name for name, p in values.items()}
    return [Dense(gradients[names[id(p)]], p.shape) for p in parameters]


def _functional(module: nn.Module, loss: Loss, weights: dict[str, Tensor], batch: Any) -> Tensor:
    """The loss with other weights in the module, for as long as it runs."""
    with torch.nn.utils.stateless._reparametrize_module(module, weights):
        return loss(batch)


def _mapped(function: Callable[[Tensor], Tensor], batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, dict):
        return {key: _mapped(function, value) for key, value in batch.items()}
    return tuple(_mapped(function, value) for value in batch)


def _size(uses: Sequence[Use | None]) -> int:
    for use in uses:
        if use is not None:
            return len(use.squared_norms())
    return 0
