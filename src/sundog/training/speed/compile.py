"""A private gradient as one compiled program: forward, backward, norms, products and noise, fused.

What the engine does is Python around tensors: taps that write down factors, a backward pass, a loop over layers. Run
once on a batch of a fixed shape and written down operation by operation, it is a plain list of tensor operations,
whatever the loss, and that is what torch.compile fuses best.
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
    """Whether torch can compile for this machine's processor."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def helps_on_a_processor(module: nn.Module) -> bool:
    """Whether steps of this module are faster compiled: not with convolutions, which torch does better."""
    on_processor = next(module.parameters()).device.type == "cpu"
    return on_processor and has_compiler() and not any(isinstance(m, nn.modules.conv._ConvNd) for m in module.modules())


def _refuse_without_compiler() -> None:
    if not has_compiler():
        raise SundogError("to compile steps for this processor takes a C++ compiler: install g++, or do not ask for it")


def compiled(function: Program, batch: Any, speed: Speed, *, fixed_size: bool) -> Program:
    """The same function, as fast as the compiler can make it.

    Parameters, bounds and noise are looked at anew in every call: they may change in place, but not be replaced.

    Args:
        function: from a batch to tensors.
        batch: tensors, in whatever structure; all other batches must be like it.
        speed: the precision of matrix products.
        fixed_size: all batches have the size of this one; otherwise their first dimensions may be any above one.
    """
    leaves, shape = pytree.tree_flatten(batch)
    if leaves[0].device.type == "cpu":
        _refuse_without_compiler()

    def on_leaves(*tensors: Tensor) -> list[Tensor]:
        return function(pytree.tree_unflatten(tensors, shape))

    from torch.fx.experimental import _config as fx_config  # here: what they bring along takes seconds to load
    from torch.fx.experimental.proxy_tensor import make_fx

    mode: Literal["fake", "symbolic"] = "fake" if fixed_size else "symbolic"
    # Two sizes of the first batch that happen to be equal must not be taken for one.
    with speed.products(), fx_config.patch(use_duck_shape=False):  # type: ignore[attr-defined]
        graph = make_fx(on_leaves, tracing_mode=mode, _allow_non_fake_inputs=True)(*leaves)
        program = torch.compile(graph, dynamic=not fixed_size)

    def run(batch: Any) -> list[Tensor]:
        with torch.no_grad(), speed.products():
            return list(program(*pytree.tree_leaves(batch)))

    on_processor = leaves[0].device.type == "cpu"
    with warnings.catch_warnings(), _own_files() if on_processor else contextlib.nullcontext():
        # What it does not fuse it leaves as it is, which is no news to a user.
        warnings.filterwarnings("ignore", message="Torchinductor does not support code generation for complex")
        try:
            run(batch)  # now, and not in the middle of something that cannot wait
        except torch._dynamo.exc.TorchDynamoException as error:
            reason = str(error).strip().partition("\n")[0]
            raise SundogError(
                f"the step could not be compiled ({reason}); train without, or mend the compiler"
            ) from None
    return run


@contextlib.contextmanager
def _own_files() -> Iterator[None]:
    """Compiles into a folder of this process, by a compiler that stops with it.

    torch's compiler writes libraries where every later process looks for them, and a process that is stopped meanwhile
    leaves them half-written there; in worker processes it would go on, or complain, after this one was stopped. The C++
    compiler's temporary files are kept there too, because after Ctrl-C Python kills it before it has removed them.
    """
    from torch._inductor import config

    folder = _folder()
    ours = {"TORCHINDUCTOR_CACHE_DIR": folder, "TMPDIR": folder}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        # The number of threads is looked at in each call, and not compiled in.
        with config.patch({"compile_threads": 1, "cpp.dynamic_threads": True, "fx_graph_cache": False}):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@functools.cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="sundog-compiled-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
