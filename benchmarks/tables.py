"""Tables at δ = 1e-5: our models beside AIM, on the same records, by the same measures.

Adult, or with `--table` another: `diamonds` (seven numbers, three categories), or one of two that nothing was tuned on,
`affairs` (nine columns of few values) and `insurance` (five numbers, five flags). For each ε: the mean total variation
of all pairs of columns, the AUC of gradient boosting and the accuracy of a balanced forest, both trained on synthetic
and tested on real records; and the processor time and the peak memory of the fit, which has a process to itself. Means
over seeds, with their deviations. One more row has our distance beside that of four times the iterations, on the same
noisy measurements (one seed).
The ceilings are real records, whose values were drawn again within their groups in our model, or within the peers'
bins. Peers run in environments of their own, which `--make-peers` installs; those that are not there are left out. They
learn numbers in the very bins that distances are taken with, and pay nothing for those; one row has our model with the
same bins.

    SUNDOG_DATA=../shared/data python benchmarks/tables.py [--quick] [--json FILE] [--table NAME] [--epsilons E ...]
        [--seeds N] [--only NAME ...] [--make-peers] [--peers FOLDER] [--keep FILE] [--jobs N]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from report import DATA, Figures, Kept, Row, parse_arguments, publish
from tabular import ours, peers
from tabular.convergence import fit_longer
from tabular.datasets import TABLES, AbsentError, Table
from tabular.measures import measure, pair_distance

DELTA = 1e-5
OURS, OURS_BINNED = "marginals", "marginals, peers' bins"
LONGER = 4  # times the iterations
MEASURES = {
    "distance": ("two-way distance", ""),
    "auc": ("boosting AUC", ""),
    "forest": ("balanced forest", ""),
    "cpu_s": ("fit", "CPU s"),
    "peak_mib": ("memory", "MiB"),
}

Draw = Callable[..., tuple[pd.DataFrame, Figures]]  # of a table, with epsilon and seed by name: records, and the cost


def extend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", choices=list(TABLES), default="adult")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these contestants")
    parser.add_argument("--peers", type=Path, default=peers.FOLDER, help="the folder of the peers' environments")
    parser.add_argument("--make-peers", action="store_true", help="install the peers there, and do nothing else")
    parser.add_argument("--keep", type=Path, help="read what peers were measured at from this file, and add to it")
    parser.add_argument("--jobs", type=int, default=1, help="how many peers to measure at the same time")


def main() -> None:
    options = parse_arguments(__doc__ or "", extend)
    if options.make_peers:
        peers.make_peers(options.peers)
        return
    if options.quick:
        options.epsilons, options.seeds = [1.0], 1
    try:
        table = TABLES[options.table](DATA, packages=options.peers / peers.PACKAGES_FOLDER, quick=options.quick)
    except AbsentError as absent:
        print(absent)
        return
    rows: list[Row] = []
    kept = Kept(options.keep)
    measure_ahead(table, options, kept)
    for epsilon in options.epsilons:
        found = {name: figures for name, figures in measure_all(table, epsilon, options, kept) if figures}
        show(f"{table.name}, ε = {epsilon:g}", found)
        rows += compare(f"{table.name} ε={epsilon:g}", found)
        rows += [check_convergence(table, epsilon)] if OURS in found else []
    publish(rows, options)


def measure_all(
    table: Table, epsilon: float, options: argparse.Namespace, kept: Kept
) -> Iterator[tuple[str, list[Figures]]]:
    """Yield the figures of each contestant, for each seed."""
    for name, draw in list_models(quick=options.quick).items():
        if options.only is None or name in options.only:
            yield name, [judge(draw, table, epsilon, options, seed) for seed in range(options.seeds)]
    for peer in list_peers(options):
        work = plan_peer(peer, table, epsilon, options, kept)
        if not work:
            print(f"without {peer.name}, which is not installed (see --make-peers)")
        yield peer.name, [kept.get(key, measure) for key, measure in work]


def measure_ahead(table: Table, options: argparse.Namespace, kept: Kept) -> None:
    """Measure peers several at a time, those that take longest first."""
    plans = [
        plan_peer(peer, table, epsilon, options, kept)
        for peer in list_peers(options)
        for epsilon in sorted(options.epsilons, reverse=True)
    ]
    if options.jobs > 1:
        with ThreadPoolExecutor(options.jobs) as pool:
            for done in [pool.submit(kept.get, key, measure) for plan in plans for key, measure in plan]:
                done.result()


def judge(draw: Draw, table: Table, epsilon: float, options: argparse.Namespace, seed: int) -> Figures:
    """Return what a contestant is measured at."""
    synthetic, cost = draw(table, epsilon=epsilon, seed=seed)
    return measure(table, synthetic, seed=seed, trees=20 if options.quick else 200) | cost


def list_peers(options: argparse.Namespace) -> list[peers.Peer]:
    """Return the peers that were asked for; none if it is to be quick."""
    return [peer for peer in peers.PEERS if not options.quick and (options.only is None or peer.name in options.only)]


def plan_peer(
    peer: peers.Peer, table: Table, epsilon: float, options: argparse.Namespace, kept: Kept
) -> list[tuple[str, Callable[[], Figures]]]:
    """Return a key for each seed, and what measures it; without an installed peer only those that are in the file."""
    draw = partial(peer.fit_and_draw, folder=options.peers, delta=DELTA)
    keys = [f"{table.name}, {peer.name}, ε={epsilon:g}, seed {seed}" for seed in range(options.seeds)]
    work = [(key, partial(judge, draw, table, epsilon, options, seed)) for seed, key in enumerate(keys)]
    return [each for each in work if peer.is_installed(options.peers) or each[0] in kept.figures]


def list_models(*, quick: bool) -> dict[str, Draw]:
    """Return our models, and the ceilings: ours, and that of peers."""
    settings: dict[str, dict[str, Any]] = {
        OURS: {},
        OURS_BINNED: {},
        "rbm": {"epochs": 1} if quick else {},
        "independent": {},
    }
    found: dict[str, Draw] = {
        name: partial(
            ours.fit_and_draw, model=name.split(",")[0], delta=DELTA, settings=own, binned=name == OURS_BINNED
        )
        for name, own in settings.items()
    }
    return found | {
        "real through our bins": partial(ours.draw_through_bins, delta=DELTA),
        "real through peers' bins": peers.draw_through_bins,
    }


def show(title: str, found: Mapping[str, Sequence[Figures]]) -> None:
    """Print a line for each contestant: means over seeds, and deviations where there are several."""
    print(f"\n{title:<26}" + "".join(f" {heading:>17}" for heading, _ in MEASURES.values()) + "  seeds")
    for name, seeds in found.items():
        cells = ""
        for key in MEASURES:
            values = [figures[key] for figures in seeds if key in figures]
            mean = f"{np.mean(values):.4g}" if values else "–"
            cells += f" {mean + (f' ± {np.std(values):.2g}' if len(values) > 1 else ''):>17}"
        print(f"{name:<26}{cells}  {len(seeds)}", flush=True)


def compare(title: str, found: Mapping[str, Sequence[Figures]]) -> list[Row]:
    """Return our model beside each other contestant, by the means over seeds."""
    rows = []
    means = {
        name: {key: float(np.mean([each[key] for each in seeds])) for key in seeds[0]} for name, seeds in found.items()
    }
    for name, theirs in means.items():
        for key, (heading, unit) in MEASURES.items():
            if name != OURS and key in means.get(OURS, {}) and theirs.get(key):
                rows.append(Row(f"{heading}, {title}", means[OURS][key], unit, name, theirs[key]))
    return rows


def check_convergence(table: Table, epsilon: float) -> Row:
    """Return the distance of our model beside that with more iterations on the same noisy measurements."""
    real = table.encode(table.train)
    usual, longer = (
        pair_distance(real, table.encode(synthetic))
        for synthetic in fit_longer(table, epsilon=epsilon, delta=DELTA, seed=0, times=LONGER)
    )
    return Row(f"two-way distance, {table.name} ε={epsilon:g}", usual, "", f"{LONGER} times the iterations", longer)


if __name__ == "__main__":
    main()
