"""Many models of one shape, trained as one: the components of a mixture.

Every linear layer of k models becomes one layer of k matrices, and batches and buffers get a leading dimension for the
model. An example is in one model only: its gradient is zero outside of that model's slice, over which its norm is
computed. A buffer that is added to a batch needs a dimension for the example, such as (1, width).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sundog.errors import SundogError


class StackedLinear(nn.Module):
    """k linear layers: (k, B, in) to (k, B, out)."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        """Weights are (k, out, in), biases (k, out)."""
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = None if bias is None else nn.Parameter(bias)

    def forward(self, x: Tensor) -> Tensor:
        """Apply layer j to x[j]."""
        if self.bias is None:
            return x @ self.weight.mT
        return torch.baddbmm(self.bias[:, None], x, self.weight.mT)


def stack(modules: Sequence[nn.Module]) -> nn.Module:
    """Return one module that applies k modules, each with its own weights, to batches of (k, B, …).

    Everything between the linear layers must operate on the last dimensions, as activations do.

    >>> three = [nn.Sequential(nn.Linear(4, 2), nn.ReLU()) for _ in range(3)]
    >>> x = torch.randn(3, 5, 4)
    >>> torch.allclose(stack(three)(x), torch.stack([m(part) for m, part in zip(three, x)]), atol=1e-6)
    True
    """
    whole = copy.deepcopy(modules[0])
    return _stack_layers(whole, list(modules), "the model")


def unstack(whole: nn.Module, like: nn.Module) -> list[nn.Module]:
    """Return the k modules with their current weights; `like` is any one of them.

    >>> two = [nn.Linear(4, 2), nn.Linear(4, 2)]
    >>> again = unstack(stack(two), two[0])
    >>> all(torch.equal(a.weight, b.weight) for a, b in zip(two, again))
    True
    """
    values = whole.state_dict()
    count = len(next(iter(values.values())))
    modules = [copy.deepcopy(like) for _ in range(count)]
    for number, module in enumerate(modules):
        module.load_state_dict({name: value[number].clone() for name, value in values.items()})
    return modules


def _stack_layers(layer: nn.Module, twins: list[nn.Module], name: str) -> nn.Module:
    if isinstance(layer, nn.Linear):
        bias = None if layer.bias is None else torch.stack([twin.bias.detach() for twin in twins])  # type: ignore[operator]
        return StackedLinear(torch.stack([twin.weight.detach() for twin in twins]), bias)  # type: ignore[operator]
    if next(layer.parameters(recurse=False), None) is not None:
        raise SundogError(f"{name} ({type(layer).__name__}) cannot be stacked: only linear layers can")
    for buffer, _ in list(layer.named_buffers(recurse=False)):
        layer.register_buffer(buffer, torch.stack([twin.get_buffer(buffer) for twin in twins]))
    for child, module in layer.named_children():
        setattr(layer, child, _stack_layers(module, [twin.get_submodule(child) for twin in twins], child))
    return layer
