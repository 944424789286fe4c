"""One private training step beside the non-private step of plain torch and beside peers.

python benchmarks/step_time.py [--quick] [--json FILE] [--device cpu|cuda] [--only WORKLOAD ...]

Every contestant takes whole steps, from clearing the gradients to the optimiser, on a prepared batch, in a separate
process (`steps/contest.py`); figures are medians. Ours is the engine as in a long training: compiled, with secure
noise. Rows with `-eager` are not compiled, as in a short training or without a compiler; those with `-fast-noise` use
the device's own generator, and on a GPU those with `-tf32` have lower precision. `non-private` is torch with its
default Adam, `non-private-fused` has the fused Adam that ours uses, and `non-private-kept` an allocator that keeps
freed memory, as ours does.
"""

from __future__ import annotations

import argparse
import math
import statistics

import torch
from report import Row, parse_arguments, publish
from steps.contest import THREADS, Contestant, list_contestants
from steps.peers import has_opacus

SIZES = {"cpu": (128, 512, 2048), "cuda": (4096,)}
ONE_SIZE = {"lstm", "embedding", "mixture-vae-10"}
WORKLOADS = ("vae", "rbm", "wgan-gp-mlp", "wgan-gp-conv", "lstm", "embedding", "mixture-vae-10")
QUICK_WORKLOADS = ("vae", "wgan-gp-conv", "mixture-vae-10")  # compiled, not compiled, and stacked
QUICK_CONTESTANTS = ("ours", "non-private")
QUICK_MIXTURE = ("ours-eager", "in-turn-eager")  # compiling ten networks takes a minute
MIDDLE, LARGEST, QUICK = 512, 2048, 16
SECONDS, FEWEST, MOST = 5.0, 7, 150  # for a workload; and how many turns each contestant has
SLOW = {"vmap", "opacus-hooks"}  # these take only a few turns


def run_workload(workload: str, size: int, device: str, *, quick: bool) -> list[Row]:
    """Return a row for each of ours beside each peer."""
    names = [who for who in list_contestants(workload, size, device) if has_opacus() or not who.startswith("opacus")]
    if quick:
        quickest = QUICK_CONTESTANTS if "non-private" in names else QUICK_MIXTURE
        names = [who for who in names if who in quickest]
    field = {who: Contestant(workload, who, size, device) for who in names}
    for contestant in field.values():
        contestant.wait()
    times: dict[str, list[float]] = {who: [] for who in field}
    turn = sum(contestant.step() for who, contestant in field.items() if who not in SLOW) / 1000
    turns = 1 if quick else max(FEWEST, min(MOST, math.ceil(SECONDS / turn)))
    for number in range(turns):
        for who, contestant in field.items():
            if who not in SLOW or number < FEWEST:
                times[who].append(contestant.step())
    peaks = {who: contestant.end() for who, contestant in field.items()}
    return make_rows(f"{workload}/{size}", times, peaks)


def make_rows(name: str, times: dict[str, list[float]], peaks: dict[str, float]) -> list[Row]:
    rows = []
    for who in times:
        if not who.startswith("ours"):
            continue
        label = name.replace("/", who.removeprefix("ours") + "/")
        peers = {peer for peer in times if not peer.startswith("ours")}
        medians = {each: statistics.median(times[each]) for each in (who, *peers)}
        rows += [Row(label, medians[who], "ms", peer, medians[peer]) for peer in times if peer in peers]
        if "non-private" in peers:
            memory = label.replace("/", "-memory/")
            rows.append(Row(memory, peaks[who], "MiB", "non-private", peaks["non-private"]))
    return rows


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=sorted(SIZES), default="cpu")
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, metavar="WORKLOAD")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    if not has_opacus():
        print("opacus is not installed: pip install 'sundog[bench]'")
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"{THREADS} threads"
    print(f"torch {torch.__version__}, {where}")
    rows: list[Row] = []
    for workload in options.only or (QUICK_WORKLOADS if options.quick else WORKLOADS):
        sizes = (QUICK,) if options.quick else (MIDDLE,) if workload in ONE_SIZE else SIZES[options.device]
        for size in sizes:
            rows += run_workload(workload, size, options.device, quick=options.quick)
    publish(rows, options)


if __name__ == "__main__":
    main()
