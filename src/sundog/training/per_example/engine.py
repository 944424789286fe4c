"""The clipped sum of per-example gradients, exactly: the one place where private examples meet parameters.

One forward and one backward pass through tapped layers; norms from factors; a weight for each example; one product a
layer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from sundog.errors import SundogError
from sundog.training.batches.examples import leaves, mapped
from sundog.training.per_example.convolution import Convolution
from sundog.training.per_example.factors import Dense, Use, add_up, joined
from sundog.training.per_example.layers import refuse_batch_statistics, tapped, untapped
from sundog.training.per_example.recording import recording
from sundog.training.speed.options import EXACT, Speed

Loss = Callable[[Any], Tensor]  # a batch of B examples to B losses
Weigh = Callable[[Tensor], Tensor]  # the norms of B examples in each group (groups, B) to their weights (groups, B)
Masks = Literal["when needed", "always", "never"]


@dataclass(frozen=True)
class Padded:
    """A batch filled up to a fixed size; `present` is false for the examples that are only there to fill it."""

    examples: Any
    present: Tensor


pytree.register_dataclass(Padded)


@dataclass(frozen=True)
class Clipped:
    """What a batch gives: a sum for every parameter, the norms (groups, B), and which examples counted (B,).

    And, for the program's own use, whether the sums are good: they are, unless masks were wanted `never`.
    """

    sums: list[Tensor]
    norms: Tensor
    present: Tensor
    usable: Tensor


@dataclass(frozen=True)
class Groups:
    """Parameters that are clipped together: `of[i]` is the group of parameter i."""

    parameters: Sequence[nn.Parameter]
    of: Sequence[int]

    @property
    def count(self) -> int:
        """How many groups there are."""
        return max(self.of, default=-1) + 1

    @property
    def sizes(self) -> list[int]:
        """The number of parameters in each group."""
        sizes = [0] * self.count
        for parameter, group in zip(self.parameters, self.of, strict=True):
            sizes[group] += parameter.numel()
        return sizes


def clipped_sum(
    module: nn.Module,
    loss: Loss,
    batch: Any,
    groups: Groups,
    weigh: Weigh,
    *,
    speed: Speed = EXACT,
    masks: Masks = "when needed",
) -> Clipped:
    """Σ weightᵢ · gradientᵢ for every parameter, over the examples that are present.

    An example whose gradient is not finite counts as if it were not there: nobody may learn that it is. Norms are
    taken a little longer than they are, by as much as rounding may hide of them or add to the sum.

    Args:
        module: the owner of the parameters.
        loss: the loss of each example by itself; no example may see another.
        batch: the examples, or `Padded`.
        groups: which parameters are clipped together.
        weigh: from norms to weights, such as min(1, C / norm).
        speed: the precision of matrix products, and so how much rounding may do.
        masks: how to leave out examples. A program of fixed shapes has no branches and does it always; or `never`, and
            the caller looks at `usable` and throws the sums away if it is not so.
    """
    examples, present = (batch.examples, batch.present.flatten()) if isinstance(batch, Padded) else (batch, None)
    with speed.products():
        uses = per_example(module, loss, examples, groups.parameters)
    with torch.no_grad():
        return _clipped(uses, present, groups, weigh, speed, masks)


def _clipped(
    uses: Sequence[Use | None], present: Tensor | None, groups: Groups, weigh: Weigh, speed: Speed, masks: Masks
) -> Clipped:
    with EXACT.products():
        lengths = _norms(uses, groups, speed)
    finite = lengths.isfinite().all(dim=0)
    if masks == "always" or (masks == "when needed" and not finite.all()):
        for use in uses:
            if use is not None:
                use.leave_out(~finite)
        lengths = lengths.masked_fill(~finite, 0.0)
    present = finite if present is None else finite & present
    weights = weigh(lengths) * present
    with speed.products():
        sums = [
            torch.zeros_like(p) if use is None else use.weighted_sum(weights[group])
            for p, use, group in zip(groups.parameters, uses, groups.of, strict=True)
        ]
    usable = finite.all() if masks == "never" else finite.new_ones(())
    return Clipped(sums, lengths, present, usable)


def norms(module: nn.Module, loss: Loss, batch: Any, groups: Groups) -> Tensor:
    """The norms of the examples' gradients in each group, (groups, B): of public examples, or for an oracle."""
    uses = per_example(module, loss, batch, groups.parameters)
    with torch.no_grad():
        return _norms(uses, groups, EXACT)


def _norms(uses: Sequence[Use | None], groups: Groups, speed: Speed) -> Tensor:
    """The norm of each example's gradient in each group and what rounding may add to it: (groups, B)."""
    squared: dict[int, Tensor] = {}
    mass: dict[int, Tensor] = {}
    for use, group in zip(uses, groups.of, strict=True):
        if use is not None:
            more = use.squared_norms()
            heavy = use.squared_mass()
            if heavy is None:
                heavy = more
            else:  # terms may cancel in the square, which is then off by a part of their mass
                more = more + 2 * speed.rounding(more.dtype) * heavy
            squared[group] = squared[group] + more if group in squared else more
            mass[group] = mass[group] + heavy if group in mass else heavy
    if not squared:
        return torch.zeros(groups.count, 0, device=groups.parameters[0].device)
    nothing = torch.zeros_like(next(iter(squared.values())))
    lengths, weights = (
        torch.stack([of.get(group, nothing) for group in range(groups.count)]).sqrt_() for of in (squared, mass)
    )
    return lengths.add_(weights, alpha=speed.rounding(lengths.dtype))


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
            losses = _one_each(loss(batch), batch)
            # into these parameters only: another module that the loss reaches must not be left with raw gradients
            losses.sum().backward(inputs=list(parameters))  # type: ignore[no-untyped-call]
        if any(p.grad is not None for p in parameters):
            return None  # autograd reached a parameter by another way than its layer: its factors are not all there
        if any(not add_up(uses.get(id(p), [])) for p in parameters):
            return None
        return [_checked(_whole(uses[id(p)]), losses.numel()) if id(p) in uses else None for p in parameters]
    finally:
        for p, grad in zip(parameters, saved, strict=True):
            p.grad = grad


def _whole(uses: Sequence[Use]) -> Use:
    use = joined(uses)
    return use.lightest() if isinstance(use, Convolution) else use


def _one_each(losses: Tensor, batch: Any) -> Tensor:
    """The losses, if there is one for each example; more cannot be checked: that none depends on another example."""
    shape = tuple(leaves(batch)[0].shape)
    if losses.dim() not in (1, 2) or tuple(losses.shape) != shape[: losses.dim()]:
        raise SundogError(
            f"the loss must be one number for each example, and has shape {tuple(losses.shape)} for a batch of {shape}"
        )
    return losses


def _checked(use: Use, examples: int) -> Use:
    if use.examples != examples:
        raise SundogError(
            f"a layer sees {use.examples} examples where there are {examples}: the first dimension must be"
            " the example's throughout (recurrent layers: batch_first=True)"
        )
    return use


def _by_vmap(module: nn.Module, loss: Loss, batch: Any, parameters: Sequence[nn.Parameter]) -> list[Use | None]:
    values = dict(module.named_parameters())
    chosen = {id(p) for p in parameters}
    trainable = {name: p.detach() for name, p in values.items() if id(p) in chosen}

    def one(weights: dict[str, Tensor], example: Any) -> Tensor:
        single = mapped(lambda t: t[None], example)
        return _functional(module, loss, weights, single)[0]

    gradients = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0), randomness="different")(trainable, batch)
    names = {id(p): name for name, p in values.items()}
    return [Dense(gradients[names[id(p)]], p.shape) for p in parameters]


def _functional(module: nn.Module, loss: Loss, weights: dict[str, Tensor], batch: Any) -> Tensor:
    """The loss with other weights in the module, for as long as it runs."""
    with torch.nn.utils.stateless._reparametrize_module(module, weights, tie_weights=True):
        return loss(batch)
