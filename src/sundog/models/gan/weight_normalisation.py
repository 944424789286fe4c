"""Weight normalisation (Salimans and Kingma 2016): the weights of a unit are g · v / ‖v‖, and Adam learns g and v.

Gradients with respect to the weights themselves are clipped and receive noise, as without it. Those with respect to
g and v are computed from the noisy ones, which reveals nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from sundog.models.neural.network_training import Adam

_VALUES = "values"


class WeightNormalised(Adam):
    """Adam on the lengths and the directions of units' weights, and on vectors as they are.

    >>> weight = nn.Parameter(torch.tensor([[3.0, 4.0]]))
    >>> weight.grad = torch.tensor([[4.0, -3.0]])  # no part of it along the weights: their length stays
    >>> WeightNormalised([weight], lr=1.0).step()
    >>> weight.data
    tensor([[1.8570, 4.6424]])

    Args:
        weights: matrices and filters, whose first dimension is the unit, and vectors.
        options: of Adam.
    """

    def __init__(self, weights: Iterable[nn.Parameter], **options: Any) -> None:
        weights = list(weights)
        self._vectors = [weight for weight in weights if weight.dim() < 2]
        self._weights = [weight for weight in weights if weight.dim() > 1]
        self._directions = [nn.Parameter(weight.detach().clone()) for weight in self._weights]
        self._lengths = [nn.Parameter(_measure_lengths(weight.detach())) for weight in self._weights]
        super().__init__([*self._vectors, *self._directions, *self._lengths], **options)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """Take a step of Adam, and set the weights."""
        for weight, direction, length in zip(self._weights, self._directions, self._lengths, strict=True):
            if weight.grad is None:  # Adam passes over it, too
                continue
            norms = _measure_lengths(direction)
            unit = direction / norms
            length.grad = (weight.grad * unit).flatten(1).sum(dim=1).view_as(length)
            direction.grad = (weight.grad - length.grad * unit) * (length / norms)
        super().step()
        for weight, direction, length in zip(self._weights, self._directions, self._lengths, strict=True):
            weight.copy_(direction * (length / _measure_lengths(direction)))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients, also those of the weights."""
        super().zero_grad(set_to_none)
        for weight in self._weights:
            weight.grad = None

    def state_dict(self) -> dict[str, Any]:
        """Return the state of Adam, with lengths and directions."""
        return {**super().state_dict(), _VALUES: [value.detach() for value in (*self._directions, *self._lengths)]}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the state of Adam, lengths and directions."""
        for value, saved in zip((*self._directions, *self._lengths), state_dict[_VALUES], strict=True):
            value.copy_(saved)
        super().load_state_dict({name: part for name, part in state_dict.items() if name != _VALUES})


def _measure_lengths(weight: Tensor) -> Tensor:
    """Return the norm of each unit's weights, above zero: (units, …) to (units, 1, …)."""
    norms: Tensor = torch.linalg.vector_norm(weight.flatten(1), dim=1).clamp_min(torch.finfo(weight.dtype).tiny)
    return norms.view(-1, *[1] * (weight.dim() - 1))
