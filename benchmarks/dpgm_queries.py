"""Counting queries on synthetic sets, as in Figs. 5 and 6 of Acs et al. (2019), beside two baselines.

All contestants answer the same queries: the papers' protocol, a thousand random queries in five length classes, most
of which have the answer zero in any data; those of them whose true answer is at least 0.1% of the records
(`answerable`); and a thousand queries of items that are held together, all of which reach that bound (`together`). The
value is the mean relative error over seeds. The datasets are reduced to their most frequent items, which are assumed to
be public. Peers are independent items (`independent`) and MWEM+PGM (`mwem-pgm`, through mbi) with the same ε and δ, and
a bootstrap of the real records (`resampled`), which is not private and shows the error of sampling alone. With
`--times` more records are drawn. `rbm` and `vae` train with their fixed clipping bound and, as `dpnorm`, with the noisy
mode of the norms (`--clips`): the fixed bound is then one more peer. The defaults take hours on two cores: choose
parts, or a machine with a GPU and many cores, and `--processes`.

    SUNDOG_DATA=../shared/data python benchmarks/dpgm_queries.py [--quick] [--json FILE] [--plot FILE]
        [--datasets NAME ...] [--models NAME ...] [--clusters K ...] [--epsilon E ...] [--seeds N]
        [--clips fixed dpnorm] [--times N] [--device cpu|cuda] [--processes N]
"""

from __future__ import annotations

import argparse
import functools
import itertools
import multiprocessing
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dpgm.contest import FILES, Asked, Sets, draw_sets, generate_sets, load
from dpgm.mwem import has_mbi
from report import DATA, Row, parse_arguments, publish

PEERS = ("independent", "mwem-pgm", "resampled")  # none has clusters
MODELS = (*PEERS, "rbm", "vae")
FIXED, DPNORM = "fixed", "dpnorm"

Errors = dict[tuple[str, float, str], dict[str, float]]  # by dataset, ε and contestant


def list_contestants(models: list[str], clusters: list[int], clips: list[str]) -> dict[str, tuple[str, int, str]]:
    """Return the model, the number of clusters and the clipping of each contestant, by its name in the table."""
    found: dict[str, tuple[str, int, str]] = {}
    for model in models:
        if model in PEERS:
            found[model] = (model, 1, FIXED)
            continue
        for k, clip in itertools.product(clusters, clips):
            found[f"{model} k={k}" + (f" {DPNORM}" if clip == DPNORM else "")] = (model, k, clip)
    return found


class Task(NamedTuple):
    """One contestant on one dataset, at one ε and with one seed."""

    dataset: str
    epsilon: float
    name: str
    model: str
    clusters: int
    clip: str
    seed: int
    times: int
    device: str
    quick: bool


@functools.cache
def load_queries(dataset: str, quick: bool) -> tuple[Sets, Asked]:
    """Return a dataset and its queries, loaded once in each process."""
    sets = generate_sets() if dataset == "generated" else load(dataset)
    return sets, Asked.of(sets, 100 if quick else 1000)


def measure_errors(task: Task) -> tuple[Task, dict[str, float], float]:
    """Return the errors of a task and the seconds it took."""
    sets, asked = load_queries(task.dataset, task.quick)
    start = time.perf_counter()
    settings: dict[str, Any] = {"epochs": 1} if task.quick and task.model not in PEERS else {}
    if task.clip == DPNORM:
        settings["clip"] = DPNORM
    synthetic = draw_sets(
        sets,
        task.model,
        clusters=task.clusters,
        epsilon=task.epsilon,
        seed=task.seed,
        times=task.times,
        device="cpu" if task.model in PEERS else task.device,
        settings=settings,
    )
    return task, asked.errors(sets, synthetic), time.perf_counter() - start


def measure(tasks: list[Task], processes: int) -> Errors:
    """Return the mean errors of every contestant on every dataset at every ε, and print each run when it is done."""
    if processes == 1:
        return _average(tasks, map(measure_errors, tasks))
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return _average(tasks, pool.imap_unordered(measure_errors, tasks))


def _average(tasks: list[Task], found: Iterable[tuple[Task, dict[str, float], float]]) -> Errors:
    runs: dict[tuple[str, float, str], list[dict[str, float]]] = {task[:3]: [] for task in tasks}
    for task, errors, seconds in found:
        runs[task[:3]].append(errors)
        figures = " ".join(f"{what} {error:.4f}" for what, error in errors.items())
        run = f"{task.dataset} ε={task.epsilon:g} {task.name} seed {task.seed}"
        print(f"{run}: {figures} ({seconds:.0f} s)", flush=True)
    return {key: {what: float(np.mean([run[what] for run in each])) for what in each[0]} for key, each in runs.items()}


def make_rows(found: Errors) -> list[Row]:
    rows = []
    for (dataset, epsilon, name), errors in found.items():
        peers = [*PEERS, name.removesuffix(f" {DPNORM}")]
        for peer in (peer for peer in peers if peer != name and (dataset, epsilon, peer) in found):
            theirs = found[dataset, epsilon, peer]
            rows += [
                Row(f"{dataset} ε={epsilon:g} {name} {what}", error, "", peer, theirs[what])
                for what, error in errors.items()
            ]
    return rows


def draw_figure(found: Errors, path: Path) -> None:
    """Draw for each dataset the error against ε, and at the ε nearest to 1 against the length of queries."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(dataset for dataset, _, _ in found))
    names = list(dict.fromkeys(name for _, _, name in found))
    budgets = sorted({epsilon for _, epsilon, _ in found})
    one = min(budgets, key=lambda epsilon: abs(epsilon - 1))
    figure = Figure(figsize=(4.2 * len(datasets), 6.4), layout="constrained")
    panels: Any = figure.subplots(2, len(datasets), squeeze=False)
    for column, dataset in enumerate(datasets):
        for name in names:
            style = {"label": name, "marker": "o", "markersize": 4, "linestyle": "--" if name in PEERS else "-"}
            panels[0, column].plot(budgets, [found[dataset, each, name]["together"] for each in budgets], **style)
            lengths = {what: error for what, error in found[dataset, one, name].items() if what.endswith("%")}
            panels[1, column].plot(list(lengths), list(lengths.values()), **style)
        panels[0, column].set(title=dataset, xlabel="ε", ylabel="error, items held together")
        panels[1, column].set(xlabel="longest query, of the largest set", ylabel=f"error, protocol, ε = {one:g}")
        for axes in panels[:, column]:
            axes.set_ylim(bottom=0)
            axes.grid(axis="y")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.savefig(path, dpi=130)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--datasets", nargs="+", choices=FILES, default=list(FILES), metavar="NAME")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="NAME")
    parser.add_argument("--clusters", nargs="+", type=int, default=[1, 5, 10], metavar="K")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.5, 1.0, 2.0], metavar="E")
    parser.add_argument("--clips", nargs="+", choices=[FIXED, DPNORM], default=[FIXED, DPNORM])
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs of each; their mean is reported")
    parser.add_argument("--times", type=int, default=1, metavar="N", help="sample N times as many records as there are")
    parser.add_argument("--device", default="cpu", help="where models are trained: cpu or cuda")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="how many parallel runs")
    parser.add_argument("--plot", type=Path, help="draw the errors to this PNG file")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    if options.quick:
        options.models, options.epsilon, options.clusters = [*PEERS, "vae"], [1.0], [1]
    if not has_mbi() and "mwem-pgm" in options.models:
        print("mbi is not installed: pip install 'sundog[bench]'")
        options.models.remove("mwem-pgm")
    here = not options.quick and all((DATA / FILES[name]).exists() for name in options.datasets)
    if not here:
        print("on generated sets; set SUNDOG_DATA for real ones")
    datasets = options.datasets if here else ["generated"]
    for sets, asked in (load_queries(dataset, options.quick) for dataset in datasets):
        print("{}: {} sets of {} items, δ = {:.2g}".format(sets.name, *sets.real.shape, sets.delta))
        print(f"of {asked.random} random queries {asked.answerable.sum()} are answerable, ", end="")
        print(f"and all of {len(asked.queries) - asked.random} of items held together", flush=True)
    field = list_contestants(options.models, options.clusters, options.clips)
    every = itertools.product(range(options.seeds), datasets, options.epsilon, field.items())
    found = measure(
        [
            Task(dataset, epsilon, name, *of, seed, options.times, options.device, options.quick)
            for seed, dataset, epsilon, (name, of) in every
        ],
        options.processes,
    )
    publish(make_rows(found), options)
    if options.plot:
        draw_figure(found, options.plot)


if __name__ == "__main__":
    main()
