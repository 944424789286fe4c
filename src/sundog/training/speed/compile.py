"""Compile the private part of a step: forward, backward, norms, products and noise, fused.

The engine is Python around tensors: layers that record factors, a backward pass, a loop over parameters. Traced once,
it is a plain list of tensor operations, whatever the loss, which torch.compile fuses well.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from sundog.errors import SundogError
from sundog.training.speed.options import Speed

Program = Callable[[Any], list[Tensor]]


def has_compiler() -> bool:
    """Return whether torch can compile for this machine's processor."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def is_worth_compiling(module: nn.Module) -> bool:
    """Return whether compiled steps may be faster: on a CPU and without convolutions, which torch does faster."""
    on_processor = next(module.parameters()).device.type == "cpu"
    return on_processor and has_compiler() and not any(isinstance(m, nn.modules.conv._ConvNd) for m in module.modules())


def _refuse_without_compiler() -> None:
    if not has_compiler():
        raise SundogError(
            "compiling steps for this processor needs a C++ compiler: install g++, or train without compiling"
        )


def compile_program(function: Program, batch: Any, speed: Speed, *, fixed_size: bool) -> Program:
    """Return a compiled version of the function.

    Parameters, bounds and noise are read in every call: they may change in place, but must not be replaced.

    Args:
        function: from a batch to tensors.
        batch: a structure of tensors; all other batches must have the same structure.
        speed: the precision of matrix products.
        fixed_size: all batches have the size of this one; otherwise first dimensions may be any number above one.
    """
    leaves, shape = pytree.tree_flatten(batch)
    if leaves[0].device.type == "cpu":
        _refuse_without_compiler()

    def call_on_leaves(*tensors: Tensor) -> list[Tensor]:
        return function(pytree.tree_unflatten(tensors, shape))

    from torch.fx.experimental import _config as fx_config  # here: their imports take seconds
    from torch.fx.experimental.proxy_tensor import make_fx

    mode: Literal["fake", "symbolic"] = "fake" if fixed_size else "symbolic"
    # Without duck shapes: two sizes that happen to be equal in this batch may differ in others.
    with speed.use_precision(), fx_config.patch(use_duck_shape=False):  # type: ignore[attr-defined]
        graph = make_fx(call_on_leaves, tracing_mode=mode, _allow_non_fake_inputs=True)(*leaves)
        program = torch.compile(graph, dynamic=not fixed_size)

    def run(batch: Any) -> list[Tensor]:
        with torch.no_grad(), speed.use_precision():
            return list(program(*pytree.tree_leaves(batch)))

    on_processor = leaves[0].device.type == "cpu"
    with warnings.catch_warnings(), _use_own_files() if on_processor else contextlib.nullcontext():
        # Such operations are not fused, which does not concern the user.
        warnings.filterwarnings("ignore", message="Torchinductor does not support code generation for complex")
        try:
            run(batch)  # compile now, not in the middle of a block of steps
        except torch._dynamo.exc.TorchDynamoException as error:
            reason = str(error).strip().partition("\n")[0]
            raise SundogError(
                f"the step could not be compiled ({reason}); train without compiling, or fix the compiler"
            ) from None
    return run


@contextlib.contextmanager
def _use_own_files() -> Iterator[None]:
    """Compile in this process, into a temporary folder of its own.

    torch's compiler writes libraries to a cache that all processes share; a process that is stopped meanwhile leaves
    incomplete files there, and worker processes would outlive it. The temporary files of the C++ compiler go to the
    same folder, because Ctrl-C kills it before it can delete them.
    """
    from torch._inductor import config

    folder = _make_folder()
    ours = {"TORCHINDUCTOR_CACHE_DIR": folder, "TMPDIR": folder}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        # The number of threads is read in each call, not compiled in.
        with config.patch({"compile_threads": 1, "cpp.dynamic_threads": True, "fx_graph_cache": False}):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@functools.cache
def _make_folder() -> str:
    folder = tempfile.mkdtemp(prefix="sundog-compiled-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
