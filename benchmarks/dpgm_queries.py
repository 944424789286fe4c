"""Counting queries on synthetic sets, as in Figs. 5 and 6 of Acs et al. (2019), beside two baselines.

Everyone is asked the same queries: the papers' protocol, a thousand random ones in five classes of length, most of
which have the answer zero in any data; those of them whose true answer is 0.1% of the records or more (`answerable`);
and a thousand of items that are held together, all of which reach that bound (`together`). The value is the mean
relative error, over the seeds. The datasets are cut to their most frequent items, which are taken to be public. Peers
are independent items (`independent`) and MWEM+PGM (`mwem-pgm`, through mbi), within the same ε and δ. The default is
hours long; choose parts.

    SUNDOG_DATA=../shared/data python benchmarks/dpgm_queries.py [--quick] [--json FILE] [--plot FILE]
        [--datasets NAME ...] [--models NAME ...] [--clusters K ...] [--epsilon E ...] [--seeds N]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from dpgm.contest import FILES, Asked, Sets, generated, load, synthetic_sets
from dpgm.mwem import has_mbi
from report import DATA, Row, arguments, publish

PEERS = ("independent", "mwem-pgm")  # neither has clusters
MODELS = (*PEERS, "rbm", "vae")
ASKED = ("protocol", "answerable", "together")

Errors = dict[tuple[str, float, str], dict[str, float]]  # by dataset, ε and contestant


def contestants(models: list[str], clusters: list[int]) -> dict[str, tuple[str, int]]:
    """The model and the number of clusters of each, by the name it has in the table."""
    found: dict[str, tuple[str, int]] = {}
    for model in models:
        for k in [1] if model in PEERS else clusters:
            found[model if model in PEERS else f"{model} k={k}"] = (model, k)
    return found


def measure(sets: Sets, asked: Asked, field: dict[str, tuple[str, int]], options: argparse.Namespace) -> Errors:
    """The mean errors of every contestant at every ε; each is printed as it comes."""
    found: Errors = {}
    for epsilon in options.epsilon:
        for name, (model, k) in field.items():
            start, runs = time.perf_counter(), []
            for seed in range(options.seeds):
                settings = {"epochs": 1} if options.quick and model not in PEERS else None
                synthetic = synthetic_sets(sets, model, clusters=k, epsilon=epsilon, seed=seed, settings=settings)
                runs.append(asked.errors(sets, synthetic))
            errors = {what: float(np.mean([run[what] for run in runs])) for what in runs[0]}
            found[sets.name, epsilon, name] = errors
            figures = " ".join(f"{what} {error:.4f}" for what, error in errors.items())
            seconds = (time.perf_counter() - start) / options.seeds
            print(f"{sets.name} ε={epsilon:g} {name}: {figures} ({seconds:.0f} s)", flush=True)
    return found


def rows_of(found: Errors) -> list[Row]:
    rows = []
    for (dataset, epsilon, name), errors in found.items():
        for peer in (peer for peer in PEERS if peer != name and (dataset, epsilon, peer) in found):
            theirs = found[dataset, epsilon, peer]
            rows += [
                Row(f"{dataset} ε={epsilon:g} {name} {what}", errors[what], "", peer, theirs[what])
                for what in ASKED
                if what in errors
            ]
    return rows


def draw(found: Errors, path: Path) -> None:
    """For each dataset the error against ε, and at the ε nearest to 1 against the length of queries."""
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
    panels[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=130)


def more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--datasets", nargs="+", choices=FILES, default=list(FILES), metavar="NAME")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="NAME")
    parser.add_argument("--clusters", nargs="+", type=int, default=[1, 5, 10], metavar="K")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.5, 1.0, 2.0], metavar="E")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs of each, whose mean is told")
    parser.add_argument("--plot", type=Path, help="draw the errors to this PNG file")


def main() -> None:
    options = arguments(__doc__ or "", more_options)
    if options.quick:
        options.models, options.epsilon, options.clusters = [*PEERS, "vae"], [1.0], [1]
    if not has_mbi() and "mwem-pgm" in options.models:
        print("mbi is not installed: pip install 'sundog[bench]'")
        options.models.remove("mwem-pgm")
    here = not options.quick and all((DATA / FILES[name]).exists() for name in options.datasets)
    if not here:
        print("on generated sets; set SUNDOG_DATA for real ones")
    found: Errors = {}
    for sets in map(load, options.datasets) if here else [generated()]:
        asked = Asked.of(sets, 100 if options.quick else 1000)
        print("{}: {} sets of {} items, δ = {:.2g}".format(sets.name, *sets.real.shape, sets.delta))
        print(f"of {asked.random} random queries {asked.answerable.sum()} are answerable, ", end="")
        print(f"and all of {len(asked.queries) - asked.random} of items held together", flush=True)
        found |= measure(sets, asked, contestants(options.models, options.clusters), options)
    publish(rows_of(found), options)
    if options.plot:
        draw(found, options.plot)


if __name__ == "__main__":
    main()
