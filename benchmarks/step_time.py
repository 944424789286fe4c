"""One private training step beside the non-private step of plain torch and beside peers.

python benchmarks/step_time.py [--quick] [--json FILE] [--device cpu|cuda] [--only WORKLOAD ...]

Every contestant takes whole steps, from clearing the gradients to the optimiser, on a batch that lies ready. Ours draws
secure noise (except under `vae-fast-noise`) and uses the fused Adam, as the private peers do; `non-private` is Adam as
torch gives it, `non-private-fused` the fused one. Contestants that write down the gradients of all examples leave
gigabytes behind: they take turns with ours apart from the others, and ours takes a step that is not counted after them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from report import Row, arguments, interleaved, publish
from steps.networks import Critic, Embedded, Rbm, Recurrent, Vae, by_autograd, conv_score, mlp_score, pixels
from steps.ours import in_turn, private, stacked
from steps.peers import Step, by_torch_func, by_vmap, has_opacus, non_private, opacus_ghost, opacus_hooks
from torch import Tensor, nn

from sundog.privacy.noise import NoiseSource

THREADS = 2
BATCHES = {"cpu": (128, 512, 2048), "cuda": (128, 512, 2048, 4096)}
MIDDLE, LARGEST, QUICK = 512, 2048, 16
SECONDS, FEWEST, MOST = 5.0, 5, 200  # time for one set of contestants, and how many turns each has

UNCOUNTED = "uncounted"

Contestants = Mapping[str, Step]


@dataclass(frozen=True)
class Setting:
    """Where and how long to measure."""

    device: str
    quick: bool
    opacus: bool

    @property
    def batches(self) -> tuple[int, ...]:
        """The sizes of a workload that is measured at several."""
        return (QUICK,) if self.quick else BATCHES[self.device]

    def batch(self, size: int) -> int:
        """The size of a workload that is measured at one."""
        return QUICK if self.quick else size

    def compare(self, name: str, contestants: Contestants) -> list[Row]:
        """A row for each peer beside `ours`."""
        steps = {who: self._finished(step) for who, step in contestants.items()}
        for _ in range(1 if self.quick else 2):
            turn = sum(interleaved(steps, repeats=1).values())
        repeats = 1 if self.quick else max(FEWEST, min(MOST, int(SECONDS / turn)))
        ms = {who: 1000 * seconds for who, seconds in interleaved(steps, repeats=repeats).items()}
        ours = ms.pop("ours")
        return [Row(name, ours, "ms", peer, value) for peer, value in ms.items() if peer != UNCOUNTED]

    def compare_large(self, name: str, ours: Step, peers: Contestants) -> list[Row]:
        """The same with peers that need gigabytes, after which the first step of ours does not count."""
        return self.compare(name, {**peers, UNCOUNTED: ours, "ours": ours})

    def _finished(self, step: Step) -> Step:
        """A step that has ended when it returns."""
        if self.device != "cuda":
            return step

        def whole() -> None:
            step()
            torch.cuda.synchronize()

        return whole


def vae(setting: Setting) -> list[Row]:
    rows = []
    for size in setting.batches:
        x = pixels(size, setting.device)

        def new() -> Vae:
            return Vae().to(setting.device)

        ours = private(new(), x, size)
        small, large = plain(new, x), {"vmap": by_vmap(new(), x, size)}
        if setting.opacus:
            small["opacus-ghost"] = opacus_ghost(new(), x, size)
            large["opacus-hooks"] = opacus_hooks(new(), x, size)
        rows += setting.compare(f"vae/{size}", {"ours": ours, **small})
        rows += setting.compare_large(f"vae/{size}", ours, large)
    return rows


def vae_fast_noise(setting: Setting) -> list[Row]:
    size = setting.batch(MIDDLE)
    x = pixels(size, setting.device)

    def new() -> Vae:
        return Vae().to(setting.device)

    contestants = {"ours": private(new(), x, size, NoiseSource(fast_gradients=True)), **plain(new, x)}
    if setting.opacus:
        contestants["opacus-ghost"] = opacus_ghost(new(), x, size)
    return setting.compare(f"vae-fast-noise/{size}", contestants)


def vae_memory(setting: Setting) -> list[Row]:
    """The whole process, with whatever it had to import, under the allocator that it sets for itself."""
    if setting.device == "cpu" and sys.platform != "linux":
        return []
    size = setting.batch(LARGEST)
    ours, theirs = (peak_mib(side, size, setting.device) for side in ("private", "non-private"))
    return [Row(f"vae-memory/{size}", ours, "MiB", "non-private", theirs)]


def rbm(setting: Setting) -> list[Row]:
    rows = []
    for size in setting.batches:
        x, chain = pixels(size, setting.device), pixels(size, setting.device)

        def new(chain: Tensor = chain) -> Rbm:
            return Rbm(chain).to(setting.device)

        rows += setting.compare(f"rbm/{size}", {"ours": private(new(), x, size), **plain(new, x)})
    return rows


def wgan_gp_mlp(setting: Setting) -> list[Row]:
    return critics(setting, "wgan-gp-mlp", mlp_score, (784,))


def wgan_gp_conv(setting: Setting) -> list[Row]:
    return critics(setting, "wgan-gp-conv", conv_score, (1, 28, 28))


def critics(setting: Setting, name: str, score: Callable[[], nn.Module], shape: tuple[int, ...]) -> list[Row]:
    rows = []
    for size in setting.batches:
        real, fake = (pixels(size, setting.device).reshape(size, *shape) for _ in range(2))
        batch = (real, fake)

        def new(fake: Tensor = fake) -> Critic:
            return Critic(score(), fake, by_autograd).to(setting.device)

        ours = private(new(), batch, size)
        mapped = Critic(score(), fake, by_torch_func).to(setting.device)
        rows += setting.compare(f"{name}/{size}", {"ours": ours, **plain(new, batch)})
        rows += setting.compare_large(f"{name}/{size}", ours, {"vmap": by_vmap(mapped, batch, size)})
    return rows


def lstm(setting: Setting) -> list[Row]:
    size = setting.batch(MIDDLE)
    batch = (torch.randn(size, 24, 8, device=setting.device), torch.randn(size, device=setting.device))

    def new() -> Recurrent:
        return Recurrent().to(setting.device)

    ours = private(new(), batch, size)
    rows = setting.compare(f"lstm/{size}", {"ours": ours, **plain(new, batch)})
    if setting.opacus:
        from opacus.layers import DPLSTM

        theirs = opacus_hooks(Recurrent(DPLSTM).to(setting.device), batch, size)
        rows += setting.compare_large(f"lstm/{size}", ours, {"opacus-hooks": theirs})
    return rows


def embedding(setting: Setting) -> list[Row]:
    size = setting.batch(MIDDLE)
    batch = (torch.randint(1000, (size, 12), device=setting.device), torch.randn(size, device=setting.device))

    def new() -> Embedded:
        return Embedded().to(setting.device)

    ours = private(new(), batch, size)
    rows = setting.compare(f"embedding/{size}", {"ours": ours, **plain(new, batch)})
    if setting.opacus:
        theirs = opacus_hooks(new(), batch, size)
        rows += setting.compare_large(f"embedding/{size}", ours, {"opacus-hooks": theirs})
    return rows


def mixture(setting: Setting) -> list[Row]:
    """Ten VAEs that share the examples of one batch: all at once beside one after the other."""
    size = setting.batch(MIDDLE)
    shares = pixels(size, setting.device).tensor_split(10)
    networks = [Vae().to(setting.device) for _ in shares]
    contestants = {"ours": stacked(networks, shares), "in-turn": in_turn(networks, shares)}
    return setting.compare(f"mixture-vae-10/{size}", contestants)


def plain(new: Callable[[], Vae | Rbm | Critic | Recurrent | Embedded], batch: object) -> dict[str, Step]:
    """The step without privacy, with either Adam."""
    return {"non-private": non_private(new(), batch), "non-private-fused": non_private(new(), batch, fused=True)}


def peak_mib(side: str, size: int, device: str) -> float:
    command = [sys.executable, "-m", "steps.peak", side, str(size), device]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
    return float(done.stdout)


WORKLOADS: dict[str, Callable[[Setting], list[Row]]] = {
    "vae": vae,
    "vae-fast-noise": vae_fast_noise,
    "vae-memory": vae_memory,
    "rbm": rbm,
    "wgan-gp-mlp": wgan_gp_mlp,
    "wgan-gp-conv": wgan_gp_conv,
    "lstm": lstm,
    "embedding": embedding,
    "mixture-vae-10": mixture,
}


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=sorted(BATCHES), default="cpu")
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), metavar="WORKLOAD")


def main() -> None:
    options = arguments(__doc__ or "", more_options)
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    setting = Setting(options.device, options.quick, has_opacus())
    if not setting.opacus:
        print("opacus is not installed: pip install 'sundog[bench]'")
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"{THREADS} threads"
    print(f"torch {torch.__version__}, {where}; times: one process, so one allocator setting, for ours and theirs")
    publish([row for name in options.only for row in WORKLOADS[name](setting)], options)


if __name__ == "__main__":
    main()
