"""The clipped sum of per-example gradients, computed exactly.

    factors = gradients of every example, in factors      one forward and one backward pass (recording.py, layers.py)
    norms   = norm of each example's gradient             from the factors (norms.py)
    weights = min(1, bound / norm)                        by the policy (training/clipping.py)
    sums    = Σ weights · gradients                       one matrix product per layer (factors.py)

This is the only place where private examples meet parameters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from sundog.errors import SundogError
from sundog.training.batches.examples import Padded, list_leaves, map_leaves
from sundog.training.groups import Groups
from sundog.training.per_example.convolution import Convolution
from sundog.training.per_example.factors import Dense, Factors, can_merge, merge_factors
from sundog.training.per_example.layers import find_unsupported, record_layers, refuse_batch_statistics
from sundog.training.per_example.norms import compute_per_example_norms
from sundog.training.per_example.recording import record_factors
from sundog.training.speed.options import EXACT, Speed

Loss = Callable[[Any], Tensor]  # a batch of B examples to B losses
Weigh = Callable[[Tensor], Tensor]  # the norms of B examples in each group (groups, B) to their weights (groups, B)
Masks = Literal["when needed", "always", "never"]


@dataclass(frozen=True)
class ClippedSum:
    """The clipped sum of a batch.

    Args:
        sums: one for every parameter.
        norms: of the gradients in each group, (groups, B).
        present: which examples are in the sums, (B,).
        usable: whether the sums are finite; it is false only with masks "never".
    """

    sums: list[Tensor]
    norms: Tensor
    present: Tensor
    usable: Tensor


def clip_and_sum(
    module: nn.Module,
    loss: Loss,
    batch: Any,
    groups: Groups,
    weigh: Weigh,
    *,
    speed: Speed = EXACT,
    masks: Masks = "when needed",
) -> ClippedSum:
    """Return Σ weightᵢ · gradientᵢ for every parameter, over the examples that are present.

    An example whose gradient is not finite counts as absent, so that the sum does not reveal it. Norms are rounded up
    by a bound on the rounding errors of the norm and of the sum.

    Args:
        module: the owner of the parameters.
        loss: the loss of each example; it must not depend on other examples.
        batch: the examples, or `Padded`.
        groups: which parameters are clipped together.
        weigh: from norms to weights, such as min(1, C / norm).
        speed: the precision of matrix products, which determines the bound on rounding.
        masks: how examples with gradients that are not finite are removed. A compiled program without branches does it
            "always"; with "never" the caller checks `usable` and discards the sums if it is false.
    """
    examples, present = (batch.examples, batch.present.flatten()) if isinstance(batch, Padded) else (batch, None)
    with speed.use_precision():
        factors = compute_factors(module, loss, examples, groups.parameters)
    with torch.no_grad():
        return _clip_and_sum(factors, present, groups, weigh, speed, masks)


def _clip_and_sum(
    factors: Sequence[Factors | None], present: Tensor | None, groups: Groups, weigh: Weigh, speed: Speed, masks: Masks
) -> ClippedSum:
    with EXACT.use_precision():
        norms = compute_per_example_norms(factors, groups, speed)
    finite = norms.isfinite().all(dim=0)
    if masks == "always" or (masks == "when needed" and not finite.all()):
        for part in factors:
            if part is not None:
                part.zero_examples(~finite)
        norms = norms.masked_fill(~finite, 0.0)
    present = finite if present is None else finite & present
    weights = weigh(norms) * present
    with speed.use_precision():
        sums = [
            torch.zeros_like(p) if part is None else part.sum_weighted(weights[group])
            for p, part, group in zip(groups.parameters, factors, groups.of, strict=True)
        ]
    usable = finite.all() if masks == "never" else finite.new_ones(())
    return ClippedSum(sums, norms, present, usable)


def compute_norms(module: nn.Module, loss: Loss, batch: Any, groups: Groups) -> Tensor:
    """Return the norms of gradients in each group, (groups, B): only for public examples, and for tests."""
    factors = compute_factors(module, loss, batch, groups.parameters)
    with torch.no_grad():
        return compute_per_example_norms(factors, groups, EXACT)


def compute_factors(
    module: nn.Module, loss: Loss, batch: Any, parameters: Sequence[nn.Parameter]
) -> list[Factors | None]:
    """Return the gradients of every example, in factors; None for a parameter that no example uses."""
    refuse_batch_statistics(module)
    unknown = find_unsupported(module)
    if not unknown:
        factors = _compute_by_recording(module, loss, batch, parameters)
        if factors is not None:
            return factors
        unknown = ["a parameter that is used outside of its layer"]
    warnings.warn(
        f"per-example gradients are materialised, which is slow, because of {', '.join(unknown)}", stacklevel=2
    )
    return _compute_by_vmap(module, loss, batch, parameters)


def _compute_by_recording(
    module: nn.Module, loss: Loss, batch: Any, parameters: Sequence[nn.Parameter]
) -> list[Factors | None] | None:
    """Compute factors by one forward and one backward pass; None if a parameter is used outside of its layer."""
    saved = [p.grad for p in parameters]
    for p in parameters:
        p.grad = None
    try:
        with record_factors() as recorded, record_layers(module):
            losses = _check_losses(loss(batch), batch)
            # into these parameters only: other modules that the loss reaches must not keep raw gradients
            losses.sum().backward(inputs=list(parameters))  # type: ignore[no-untyped-call]
        if any(p.grad is not None for p in parameters):
            return None  # autograd reached a parameter outside of its layer: some of its factors were not recorded
        if any(not can_merge(recorded.get(id(p), [])) for p in parameters):
            return None
        return [_merge_and_check(recorded[id(p)], losses.numel()) if id(p) in recorded else None for p in parameters]
    finally:
        for p, grad in zip(parameters, saved, strict=True):
            p.grad = grad


def _merge_and_check(parts: Sequence[Factors], examples: int) -> Factors:
    """Merge the factors of one parameter, and check that there is one gradient for each example."""
    factors = merge_factors(parts)
    if isinstance(factors, Convolution):
        factors = factors.choose_cheaper()
    if factors.examples != examples:
        raise SundogError(
            f"a layer sees {factors.examples} examples where there are {examples}: the first dimension must be"
            " the example's throughout (recurrent layers: batch_first=True)"
        )
    return factors


def _check_losses(losses: Tensor, batch: Any) -> Tensor:
    """Check that there is one loss for each example; that none depends on other examples cannot be checked."""
    shape = tuple(list_leaves(batch)[0].shape)
    if losses.dim() not in (1, 2) or tuple(losses.shape) != shape[: losses.dim()]:
        raise SundogError(
            f"the loss must be one number for each example, and has shape {tuple(losses.shape)} for a batch of {shape}"
        )
    return losses


def _compute_by_vmap(
    module: nn.Module, loss: Loss, batch: Any, parameters: Sequence[nn.Parameter]
) -> list[Factors | None]:
    """Materialise the gradients of all examples."""
    values = dict(module.named_parameters())
    chosen = {id(p) for p in parameters}
    trainable = {name: p.detach() for name, p in values.items() if id(p) in chosen}

    def loss_of_one(weights: dict[str, Tensor], example: Any) -> Tensor:
        single = map_leaves(lambda t: t[None], example)
        with torch.nn.utils.stateless._reparametrize_module(module, weights, tie_weights=True):
            return loss(single)[0]

    by_example = torch.func.vmap(torch.func.grad(loss_of_one), in_dims=(None, 0), randomness="different")
    gradients = by_example(trainable, batch)
    names = {id(p): name for name, p in values.items()}
    return [Dense(gradients[names[id(p)]], p.shape) for p in parameters]
