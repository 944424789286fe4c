"""The contestants of each workload, each in a separate process.

A process imports only what its contestant needs, and has its allocator: `non-private` is plain torch without sundog.
The parent asks each in turn for one step, so that other load on the machine affects all equally.

Run from the benchmarks' folder: python -m steps.contest WORKLOAD WHO SIZE DEVICE; it takes a step for every line of
input and answers with milliseconds, and at the end with its peak memory in MiB.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from steps.networks import Critic, Embedded, Network, Rbm, Recurrent, Vae, by_autograd, conv_score, mlp_score, pixels
from steps.peers import Step, by_torch_func, by_vmap, keep_memory, non_private, opacus_ghost, opacus_hooks

THREADS = 2
WARM_UP = 5
_PAUSE = 0.03

Who = Callable[[], Step]


def main() -> None:
    workload, who, size, device = sys.argv[1:]
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    step = list_contestants(workload, int(size), device)[who]()
    steps = 20 if device == "cuda" else 1  # a training does not synchronise with the GPU after each step
    for _ in range(WARM_UP):
        step()
    _finish(device)
    if device == "cuda":
        torch.cuda.empty_cache()  # used while compiling
        torch.cuda.reset_peak_memory_stats()
    print("ready", flush=True)
    for _ in sys.stdin:
        step()  # not counted: it fills the caches
        _finish(device)
        start = time.perf_counter()
        for _ in range(steps):
            step()
        _finish(device)
        print(1000 * (time.perf_counter() - start) / steps, flush=True)
    print(_peak_mib(device), flush=True)


def list_contestants(workload: str, size: int, device: str) -> dict[str, Who]:
    """Return the builders of all contestants of a workload."""
    return _WORKLOADS[workload](size, device)


class Contestant:
    """A contestant in its process, which starts to build it at once; call `wait` before its first step."""

    def __init__(self, workload: str, who: str, size: int, device: str) -> None:
        self._name = f"{workload}/{size}: {who}"
        command = [sys.executable, "-m", "steps.contest", workload, who, str(size), device]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
        )

    def wait(self) -> None:
        """Wait until it is built and has taken its first step."""
        if self._answer() != "ready":
            raise RuntimeError(f"{self._name} failed")

    def step(self) -> float:
        """Return the milliseconds of one step, after a pause in which the threads of other contestants go to sleep."""
        time.sleep(_PAUSE)
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._answer())

    def end(self) -> float:
        """End the process and return its peak memory in MiB."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        peak = float(self._answer())
        self._process.wait()
        return peak

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


# --- the workloads -------------------------------------------------------------------------------------------------


def _vae(size: int, device: str) -> dict[str, Who]:
    x = pixels(size, device)

    def new() -> Vae:
        return Vae().to(device)

    return {
        **_ours(new, x, size),
        "ours-fast-noise": _build(new, x, size, compiled=True, fast_noise=True),
        **({"ours-tf32": _build(new, x, size, tf32=True)} if device == "cuda" else {}),
        **_plain(new, x),
        "opacus-ghost": lambda: opacus_ghost(new(), x, size),
        "opacus-hooks": lambda: opacus_hooks(new(), x, size),
        "vmap": lambda: by_vmap(new(), x, size),
    }


def _rbm(size: int, device: str) -> dict[str, Who]:
    x, chain = pixels(size, device), pixels(size, device)
    return {**_ours(lambda: Rbm(chain).to(device), x, size), **_plain(lambda: Rbm(chain).to(device), x)}


def _critic(score: Callable[[], nn.Module], shape: tuple[int, ...]) -> Callable[[int, str], dict[str, Who]]:
    def workload(size: int, device: str) -> dict[str, Who]:
        real, fake = (pixels(size, device).reshape(size, *shape) for _ in range(2))

        def new(gradient: Any = by_autograd) -> Critic:
            return Critic(score(), fake, gradient).to(device)

        return {
            **_ours(new, (real, fake), size, compiled=len(shape) == 1),  # the engine does not compile convolutions
            **_plain(new, (real, fake)),
            "vmap": lambda: by_vmap(new(by_torch_func), (real, fake), size),
        }

    return workload


def _lstm(size: int, device: str) -> dict[str, Who]:
    batch = (torch.randn(size, 24, 8, device=device), torch.randn(size, device=device))

    def opacus() -> Step:
        from opacus.layers import DPLSTM

        return opacus_hooks(Recurrent(DPLSTM).to(device), batch, size)

    return {
        **_ours(lambda: Recurrent().to(device), batch, size),
        **_plain(lambda: Recurrent().to(device), batch),
        "opacus-hooks": opacus,
    }


def _embedding(size: int, device: str) -> dict[str, Who]:
    batch = (torch.randint(1000, (size, 12), device=device), torch.randn(size, device=device))
    return {
        **_ours(lambda: Embedded().to(device), batch, size),
        **_plain(lambda: Embedded().to(device), batch),
        "opacus-hooks": lambda: opacus_hooks(Embedded().to(device), batch, size),
    }


def _mixture(size: int, device: str) -> dict[str, Who]:
    """Return ten VAEs that share the examples of one batch: stacked, or one after another."""
    shares = pixels(size, device).tensor_split(10)
    networks = [Vae().to(device) for _ in shares]

    def build(name: str, **settings: bool) -> Who:
        def who() -> Step:
            from steps import ours

            step: Step = getattr(ours, name)(networks, shares, **settings)
            return step

        return who

    return {
        "ours": build("stacked", compiled=True),
        "ours-eager": build("stacked"),
        "in-turn": build("in_turn", compiled=True),
        "in-turn-eager": build("in_turn"),
    }


def _ours(new: Callable[[], Network], batch: Any, size: int, *, compiled: bool = True) -> dict[str, Who]:
    """Return our step as in a long training, and as in a short one."""
    if _device(batch) == "cuda" or not compiled:
        return {"ours": _build(new, batch, size)}
    return {"ours": _build(new, batch, size, compiled=True), "ours-eager": _build(new, batch, size)}


def _device(batch: Any) -> str:
    return str((batch if isinstance(batch, torch.Tensor) else batch[0]).device.type)


def _build(new: Callable[[], Network], batch: Any, size: int, **settings: bool) -> Who:
    def who() -> Step:
        from steps.ours import private

        return private(new(), batch, size, **settings)

    return who


def _plain(new: Callable[[], Network], batch: Any) -> dict[str, Who]:
    def kept() -> Step:
        keep_memory()
        return non_private(new(), batch)

    return {
        "non-private": lambda: non_private(new(), batch),
        "non-private-fused": lambda: non_private(new(), batch, fused=True),
        "non-private-kept": kept,
    }


_WORKLOADS: dict[str, Callable[[int, str], dict[str, Who]]] = {
    "vae": _vae,
    "rbm": _rbm,
    "wgan-gp-mlp": _critic(mlp_score, (784,)),
    "wgan-gp-conv": _critic(conv_score, (1, 28, 28)),
    "lstm": _lstm,
    "embedding": _embedding,
    "mixture-vae-10": _mixture,
}


# --- measurements -------------------------------------------------------------------------------------------------


def _finish(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _peak_mib(device: str) -> float:
    """Return the peak memory of this process by the kernel; `ru_maxrss` starts at that of the parent process."""
    if device == "cuda":
        return torch.cuda.max_memory_reserved() / 2**20  # allocated memory would not include that of CUDA graphs
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) / 2**10 if found else float("nan")


if __name__ == "__main__":
    main()
