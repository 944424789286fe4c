"""Attacks on generators of images (Hayes et al. 2019), beside the figures of the text, and what privacy does to them.

Targets are DCGAN, DCGAN+VAE and BEGAN without privacy, and our own `gan` with it and without. Accuracy is the share of
members among the n candidates with the highest scores, where n is the number of members; a random guess has the share
of members among all candidates. Each row has guessing as its peer, and the text's figure where there is one.

What is cut against the text is printed: images are 32 × 32 and LFW is gray, CIFAR-10 has 10,000 images instead of
60,000, and trainings are shorter. Retinopathy images are not at hand.

    SUNDOG_DATA=../shared/data python benchmarks/audit_images.py [--quick] [--json FILE] [--only PART ...]
        [--device cpu|cuda] [--jobs N] [--keep FOLDER] [--limit SECONDS] [--epochs N] [--steps N] [--known-steps N]
        [--channels N] [--plot FILE]

Outcomes are kept in a folder as they come. With the same folder, complete ones are not computed again, so that parts
may run in separate calls.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.pool import AsyncResult
from pathlib import Path
from typing import Any

from imagery.experiment_list import MANY, PARTS, POOL, Lengths, Listed, list_experiments
from imagery.experiments import Experiment, Sizing, get_path, run_experiment
from imagery.image_subsets import is_at_hand
from imagery.outcomes import Outcome, read_outcome
from imagery.pictures import draw_curves
from report import Row, parse_arguments, publish

POLLED = 0.2  # seconds


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    if not is_at_hand():
        print("set SUNDOG_DATA to the folder of the data; there is nothing to measure without it")
        publish([], options)
        return
    with tempfile.TemporaryDirectory() as folder:
        sizing = Sizing(
            options.keep or Path(folder), options.device, 4 if options.quick else options.channels, options.quick
        )
        sizing.folder.mkdir(parents=True, exist_ok=True)
        lengths = Lengths(options.epochs, options.steps, options.known_steps)
        listed = list_experiments(options.only, lengths, 3 if options.quick else None)
        print_cuts(lengths, sizing)
        failed = run_all([each.experiment for each in listed], sizing, options.jobs, options.limit)
        publish(make_rows(listed, sizing), options)
        if options.plot:
            draw_curves(options.plot, lengths, sizing)
    sys.exit(1 if failed else 0)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="experiments at a time")
    parser.add_argument("--keep", type=Path, help="a folder for outcomes and samples")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which what runs is given up")
    parser.add_argument("--epochs", type=int, default=400, help="of targets")
    parser.add_argument("--steps", type=int, default=20_000, help="of attackers without knowledge")
    parser.add_argument("--known-steps", type=int, default=15_000, help="of attackers with knowledge, and by size")
    parser.add_argument("--channels", type=int, default=64, help="of the first layers")
    parser.add_argument("--plot", type=Path, help="draw the curves to this PNG file")


def print_cuts(lengths: Lengths, sizing: Sizing) -> None:
    """Say what is smaller than in the text."""
    print(
        f"cut against the text: images of 32 × 32, LFW gray; 10,000 of 60,000 images of CIFAR-10; {lengths.epochs} of "
        f"400 epochs of targets (a quarter for {MANY} people, half for training sets of different sizes, of {POOL:,} "
        f"images); {lengths.steps:,} of 50,000 steps of attackers without knowledge, {lengths.known:,} of 15,000 with; "
        f"100,000 samples of each target (32,000 of our gan) instead of 32 in each step; {sizing.channels} channels"
    )


# --- running ---


def run_all(experiments: Sequence[Experiment], sizing: Sizing, jobs: int, limit: float) -> list[str]:
    """Run what is not complete, in order, several at a time; return the names of those that failed."""
    end = time.monotonic() + limit
    waiting = list_waiting(experiments, sizing)
    if jobs == 1:
        for each in waiting:
            tell(each, run_experiment(each, sizing))
        return []
    running: dict[str, tuple[Experiment, AsyncResult[Any]]] = {}
    failed: list[str] = []
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:  # leaving it ends what still runs
        while (waiting or running) and time.monotonic() < end:
            waiting = [each for each in waiting if each.source is None or each.source.name not in failed]
            unfinished = {*running, *(each.name for each in waiting)}
            for each in [each for each in waiting if is_ready(each, unfinished)][: jobs - len(running)]:
                waiting.remove(each)
                running[each.name] = (each, pool.apply_async(run_experiment, (each, sizing)))
            failed += collect(running)
            time.sleep(POLLED)
    for name in [*running, *(each.name for each in waiting)]:
        print(f"not finished: {name}")
    return failed


def list_waiting(experiments: Sequence[Experiment], sizing: Sizing) -> list[Experiment]:
    """Return those that are not complete, and those whose samples they need and that are not at hand."""
    outcomes = {each.name: read_outcome(get_path(sizing, each.name, ".json")) for each in experiments}
    open_ones = {name for name, outcome in outcomes.items() if outcome is None or not outcome.complete}
    sources = {each.source.name for each in experiments if each.source is not None and each.name in open_ones}
    open_ones |= {name for name in sources if not get_path(sizing, name, ".npy").exists()}
    return [each for each in experiments if each.name in open_ones]


def is_ready(experiment: Experiment, unfinished: set[str]) -> bool:
    """Return whether the samples that an experiment needs are there."""
    return experiment.source is None or experiment.source.name not in unfinished


def collect(running: dict[str, tuple[Experiment, AsyncResult[Any]]]) -> list[str]:
    """Remove those that ended, and return the names of those that failed."""
    failed = []
    for name, (experiment, result) in list(running.items()):
        if not result.ready():
            continue
        del running[name]
        try:
            tell(experiment, result.get())
        except Exception as error:
            failed.append(name)
            print(f"failed: {name}: {error!r}", flush=True)
    return failed


def tell(experiment: Experiment, outcome: Outcome) -> None:
    """Print what an experiment found."""
    found = outcome.accuracy
    print(
        f"{experiment.name}: {found.value:.3f} ({found.low:.3f} to {found.high:.3f}), {found.chance:.3f} by chance, "
        f"area {found.area:.3f}, ε ≥ {found.epsilon:.2f}, {outcome.seconds:.0f} s",
        flush=True,
    )
    for name, points in (("by steps", outcome.curve), ("by top per cent", found.tops)):
        print(f"  {name}: " + ", ".join(f"{at} {value:.3f}" for at, value in points.items()), flush=True)
    for name, (ours, peer) in outcome.extra.items():
        print(f"  {name}: {ours:.3f} beside {peer:.3f}", flush=True)


# --- rows ---


def make_rows(listed: Sequence[Listed], sizing: Sizing) -> list[Row]:
    """Return the figures of all that has any, also of what did not end."""
    rows = []
    for each in listed:
        outcome = read_outcome(get_path(sizing, each.experiment.name, ".json"))
        if outcome is None:
            continue
        found, last = outcome.accuracy, next(reversed(outcome.curve), "")
        name = each.experiment.name + ("" if outcome.complete else f" (only {last})")
        rows.append(Row(name, found.value, "share", "guessing", found.chance))
        if each.text is not None:
            rows.append(Row(name, found.value, "share", "text", each.text))
        if each.gain is not None:
            rows.append(Row(f"{name}, gain", found.value - found.chance, "share", "text", each.gain))
        rows += [Row(f"{name}, {what}", ours, "", "beside", peer) for what, (ours, peer) in outcome.extra.items()]
    return rows


if __name__ == "__main__":
    main()
