"""The largest memory of a process that takes steps of the VAE and does nothing else.

Run from the benchmarks' folder: python -m steps.peak private|non-private BATCH DEVICE. It imports only what its side
needs. The high-water mark is the kernel's for this address space: `ru_maxrss` starts at that of the parent process.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch

from steps.networks import Vae, pixels
from steps.peers import Step, non_private

STEPS = 10


def contestant(side: str, batch: int, device: str) -> Step:
    network, examples = Vae().to(device), pixels(batch, device)
    if side == "non-private":
        return non_private(network, examples)
    from steps.ours import private

    return private(network, examples, batch)


def peak_mib(device: str) -> float:
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 2**10


def main() -> None:
    side, batch, device = sys.argv[1:]
    torch.set_num_threads(2)
    step = contestant(side, int(batch), device)
    for _ in range(STEPS):
        step()
    print(peak_mib(device))


if __name__ == "__main__":
    main()
