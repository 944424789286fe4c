"""A private gradient as one compiled program: forward, backward, norms, products and noise, fused.

What the engine does is Python around tensors: taps that write down factors, a backward pass, a loop over layers. Run
once on a batch of a fixed shape and written down operation by operation, it is a plain list of tensor operations,
whatever the loss, and that is what torch.compile fuses best.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from sundog.training.gradients import Padded
from sundog.training.speed import Speed

Program = Callable[[Padded], list[Tensor]]


def compiled(function: Program, batch: Padded, speed: Speed) -> Program:
    """The same function for batches of this shape, as fast as the compiler can make it.

    Parameters, bounds and noise are looked at anew in every call: they may change in place, but not be replaced.
    """
    leaves, shape = _flat(batch)

    def on_leaves(*tensors: Tensor) -> list[Tensor]:
        return function(Padded(*pytree.tree_unflatten(tensors, shape)))

    with speed.products():
        program = torch.compile(make_fx(on_leaves, tracing_mode="fake", _allow_non_fake_inputs=True)(*leaves))

    def run(batch: Padded) -> list[Tensor]:
        with torch.no_grad(), speed.products():
            return list(program(*_flat(batch)[0]))

    run(batch)  # now, and not in the middle of something that cannot wait
    return run


def _flat(batch: Padded) -> tuple[list[Any], Any]:
    return pytree.tree_flatten((batch.examples, batch.present))
