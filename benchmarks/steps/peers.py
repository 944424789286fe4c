"""The training steps of the peers, from clearing the gradients to the optimiser.

The private peers use the fused Adam, as ours does. The non-private step is measured with torch's default Adam and
with the fused one.
"""

from __future__ import annotations

import ctypes
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.optim import Adam

from steps.networks import Network

BOUND, NOISE, RATE = 1.0, 1.0, 1e-3

Step = Callable[[], object]


def non_private(network: Network, batch: Any, *, fused: bool | None = None) -> Step:
    """Return a step of plain torch."""
    optimizer = Adam(network.parameters(), RATE, fused=fused)

    def step() -> None:
        network.before_step()
        optimizer.zero_grad()
        loss: Tensor = network(batch).mean()
        if network.has_public_loss:
            loss = loss + network.public_loss()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def by_vmap(network: Network, batch: Any, size: int) -> Step:
    """Return a step with per-example gradients by torch.func, materialised, clipped and summed."""
    parameters = dict(network.named_parameters())
    optimizer = Adam(parameters.values(), RATE, fused=True)

    def one(weights: dict[str, Tensor], example: Any) -> Tensor:
        single = example[None] if isinstance(example, Tensor) else tuple(part[None] for part in example)
        losses: Tensor = functional_call(network, weights, (single,))
        return losses[0]

    gradients = vmap(grad(one), in_dims=(None, 0), randomness="different")

    def step() -> None:
        network.before_step()
        optimizer.zero_grad()
        each = gradients({name: p.detach() for name, p in parameters.items()}, batch)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
        weights = (BOUND / norms).clamp_max(1.0)
        if network.has_public_loss:
            network.public_loss().backward()  # type: ignore[no-untyped-call]
        for name, p in parameters.items():
            total = torch.tensordot(weights, each[name], dims=1) + NOISE * BOUND * torch.randn_like(p)
            p.grad = total / size if p.grad is None else p.grad + total / size
        optimizer.step()

    return step


def by_torch_func(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return the gradient in the input by torch.func, because autograd's cannot be called under vmap."""
    gradient: Tensor = grad(lambda v: function(v).sum())(x)
    return gradient


def has_opacus() -> bool:
    """Return whether the `bench` extra is installed."""
    return importlib.util.find_spec("opacus") is not None


def opacus_hooks(network: Network, batch: Any, size: int) -> Step:
    """Return a step of Opacus with its default hooks, which materialise per-example gradients."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    _ignore_hook_warning()
    module = GradSampleModule(network)
    adam = Adam(network.parameters(), RATE, fused=True)
    optimizer = DPOptimizer(adam, noise_multiplier=NOISE, max_grad_norm=BOUND, expected_batch_size=size)

    def step() -> None:
        optimizer.zero_grad()
        module(batch).mean().backward()
        optimizer.step()

    return step


def opacus_ghost(network: Network, batch: Any, size: int) -> Step:
    """Return a step of Opacus with ghost clipping: norms first, then a backward pass of the weighted loss."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

    _ignore_hook_warning()
    module = GradSampleModuleFastGradientClipping(network, max_grad_norm=BOUND, use_ghost_clipping=True)
    adam = Adam(network.parameters(), RATE, fused=True)
    optimizer = DPOptimizerFastGradientClipping(
        adam, noise_multiplier=NOISE, max_grad_norm=BOUND, expected_batch_size=size
    )

    def step() -> None:
        optimizer.zero_grad()
        DPTensorFastGradientClipping(module, optimizer, module(batch)).backward()
        optimizer.step()

    return step


def _ignore_hook_warning() -> None:
    """Ignore the warning of the first layer's hook that images have no gradients."""
    warnings.filterwarnings("ignore", message="Full backward hook is firing")


def keep_memory() -> None:
    """Let glibc keep freed memory, as our engine does."""
    library = ctypes.CDLL(None)
    for name, value in ((-4, 0), (-1, 2**31 - 1), (-2, 2**26)):
        library.mallopt(name, value)
