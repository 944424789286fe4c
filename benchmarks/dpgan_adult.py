"""A GAN on Adult, as in Table 1 of Frigerio et al. (2019): accuracy of forests trained on synthetic records.

Classes are balanced in training and test. Releases are at ε = 3 and 7 (δ = 1e-5), with and without decay of the
clipping bound, and with a bound that follows the noisy mode of the norms (`dpnorm`); one at ε = 100 is hardly private.
A generator that is conditioned on the target starts from the means of each class, which are enough for a good forest.
So there is also one that has taken a single step, and one that is not conditioned (`not told`). Forests use all
columns, or categories alone, which is closer to the paper's figure for real records. Distances are of one-, two- and
three-way marginals; their peers are the distance of held-out real records and that of independent columns. Each figure
is the mean over seeds; the standard deviation is printed above the table.

    SUNDOG_DATA=../shared/data python benchmarks/dpgan_adult.py [--quick] [--json FILE] [--seeds N] [--only NAME ...]
        [--set NAME=VALUE ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from dpgan.common import draw_records, parse_settings
from evaluate_adult import SCHEMA, TARGET, load_adult
from report import Row, parse_arguments, publish

import sundog
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.prediction.utility import evaluate_utility
from sundog.evaluation.tables.marginal_distances import measure_marginals
from sundog.evaluation.tables.table_pair import TablePair

DELTA = 1e-5
SECONDS = 300.0
FORESTS = {"all": "utility.balanced_forest", "categories": "utility.balanced_forest_categorical"}
DISTANCES = {f"{size}-way": f"fidelity.tvd_{size}way" for size in (1, 2, 3)}
REAL = 0.772  # Table 1

Figures = dict[str, float]


@dataclass(frozen=True)
class Contestant:
    """The settings of a fit, and its row in Table 1."""

    name: str
    epsilon: float
    paper: float
    settings: Mapping[str, Any] = field(default_factory=dict)


TOLD = {"condition": TARGET}
CONTESTANTS = (
    Contestant("ε=100", 100.0, 0.767, TOLD),
    Contestant("ε=3, one step", 3.0, 0.737, {**TOLD, "epochs": 1e-3}),
    Contestant("ε=3", 3.0, 0.737, TOLD),
    Contestant("ε=3, decay", 3.0, 0.753, {**TOLD, "decay": 0.25}),
    Contestant("ε=3, dpnorm", 3.0, 0.737, {**TOLD, "clip": "dpnorm"}),
    Contestant("ε=3, not told", 3.0, 0.753, {"condition": None}),
    Contestant("ε=7", 7.0, 0.750, TOLD),
    Contestant("ε=7, decay", 7.0, 0.760, {**TOLD, "decay": 0.25}),
)


def measure(train: Records, synthetic: Records, test: Records) -> Figures:
    """Return the accuracies of forests and the distances of marginals."""
    comparison = Comparison(train, synthetic, train, test, target=TARGET)
    found = {
        **evaluate_utility(comparison).measures,
        **measure_marginals(TablePair.of(comparison), comparison).measures,
    }
    return {name: found[key].value for name, key in {**FORESTS, **DISTANCES}.items()}


def fit_release(
    frame: pd.DataFrame, schema: sundog.Schema, contestant: Contestant, seed: int, settings: Mapping[str, Any]
) -> tuple[sundog.Release, float]:
    """Return a release and the seconds that the fit took."""
    asked = {**contestant.settings, **settings}
    start = time.perf_counter()
    synth = sundog.Synthesizer("gan", contestant.epsilon, DELTA, seed=seed, settings=asked).fit(frame, schema)
    return synth.release_, time.perf_counter() - start


def measure_contestants(
    frame: pd.DataFrame, train: Records, test: Records, options: argparse.Namespace
) -> Iterator[tuple[Contestant, list[Figures]]]:
    """Yield the figures of each contestant, for each seed."""
    settings = {"epochs": 1} if options.quick else {}
    settings |= parse_settings(options.set)
    field = [contestant for contestant in CONTESTANTS if contestant.name in options.only]
    for contestant in CONTESTANTS[3:4] if options.quick else field:
        found = []
        for seed in range(1 if options.quick else options.seeds):
            release, seconds = fit_release(frame, train.schema, contestant, seed, settings)
            found.append(measure(train, draw_records(release, len(train), seed), test) | {"seconds": seconds})
            shown = {name: round(value, 4) for name, value in found[-1].items()}
            print(f"{contestant.name}, seed {seed}: {shown}", flush=True)
        yield contestant, found


def make_rows(contestant: Contestant, found: list[Figures], peers: Mapping[str, tuple[str, float]]) -> list[Row]:
    mean = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
    spread = {name: round(float(np.std([each[name] for each in found])), 4) for name in FORESTS}
    print(f"{contestant.name}: deviation of {len(found)} seeds {spread}")
    return [
        *(Row(f"accuracy, {name}, {contestant.name}", mean[name], "", "Table 1", contestant.paper) for name in FORESTS),
        *(Row(f"{name} distance, {contestant.name}", mean[name], "", *peers[name]) for name in DISTANCES),
        Row(f"time, {contestant.name}", mean["seconds"], "s", "five minutes", SECONDS),
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=3)
    names = [contestant.name for contestant in CONTESTANTS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="these contestants")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the model")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    frame, held_out = load_adult(quick=options.quick)
    schema = sundog.Schema.load(SCHEMA)
    train, test = (encode(read(part, schema), schema) for part in (frame, held_out))
    real = measure(train, train, test)
    floor = measure(train, Comparison(train, train, train, test).build_floor().synthetic, test)
    peers = {name: ("independent columns", floor[name]) for name in DISTANCES}
    peers["1-way"] = ("held-out records", measure(test, train, test)["1-way"])
    rows = [Row(f"accuracy, {name}, real records", real[name], "", "Table 1", REAL) for name in FORESTS]
    for contestant, found in measure_contestants(frame, train, test, options):
        rows += make_rows(contestant, found, peers)
    publish(rows, options)


if __name__ == "__main__":
    main()
