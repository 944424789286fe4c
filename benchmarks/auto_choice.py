"""The choice of `auto` beside every other model: on subsets of Adult of several sizes, and on daily series.

Tables: the mean total variation distance of two-way marginals between samples and the test file. Series, at ε = 6: the
distances of spectra and autocorrelations from the real ones.

    SUNDOG_DATA=../shared/data python benchmarks/auto_choice.py [--quick] [--json FILE] [--models NAME ...]
        [--records N ...] [--epsilons E ...] [--data tables|series ...]
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from dpgan.common import draw_records
from dpgan.series import MEASURES, Days, generate_waves, load_meters, load_transformers
from report import DATA, Row, parse_arguments, publish

import sundog
from sundog.data.reading.read import encode, read
from sundog.evaluation.total_variation import compute_marginal_distance
from sundog.models.auto import choose_model

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
DELTA = 1e-6
PAIRS = 60  # of columns
DRAWN = 10_000
DAYS, SERIES_EPSILON = 3000, 6.0
SHOWN = ("spectra", "autocorrelation")

Found = dict[str, dict[str, float]]  # by model and measure


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", default=["independent", "marginals", "rbm", "vae", "gan"])
    parser.add_argument("--records", nargs="+", type=int, default=[300, 1000, 3000, 30_000])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.3, 1.0, 3.0])
    parser.add_argument("--data", nargs="+", choices=["tables", "series"], default=["tables", "series"])


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    if options.quick:
        options.models, options.records, options.epsilons = ["independent", "marginals", "rbm"], [300], [1.0]
    rows: list[Row] = []
    for which in options.data:
        for rows_of_one in (compare_on_tables if which == "tables" else compare_on_series)(options):
            rows += rows_of_one
    publish(rows, options)


def fit_release(model: str, data: Any, schema: sundog.Schema, epsilon: float, *, quick: bool) -> sundog.Release:
    settings = {"epochs": 1} if quick and model not in ("independent", "marginals") else {}
    return sundog.Synthesizer(model, epsilon, DELTA, seed=0, settings=settings).fit(data, schema).release_


def make_rows(name: str, taken: str, found: Found) -> list[Row]:
    """Return the rows of the model that `auto` chooses beside each other model."""
    print(name, f"(auto: {taken})", {model: {m: round(v, 4) for m, v in each.items()} for model, each in found.items()})
    rows = []
    for model, measures in found.items():
        if model != taken:
            rows += [
                Row(f"{measure}, {name}", found[taken][measure], "", model, value)
                for measure, value in measures.items()
            ]
    return rows


# --- tables ---


def compare_on_tables(options: argparse.Namespace) -> Iterator[list[Row]]:
    bundled = Path(str(resources.files("sundog.demo") / "adult.csv.gz"))
    whole = not options.quick and (DATA / "adult_train.csv.gz").exists()
    learned, test = (DATA / "adult_train.csv.gz", DATA / "adult_test.csv.gz") if whole else (bundled, bundled)
    if not whole:
        print("on the bundled slice; set SUNDOG_DATA for all of Adult")
    schema = sundog.Schema.load(SCHEMA)
    frame, real = pd.read_csv(learned, keep_default_na=False), encode(read(test, schema), schema)
    pairs = list(itertools.combinations(schema.columns, 2))
    models = options.models if "marginals" in options.models else [*options.models, "marginals"]
    some = [pairs[at] for at in np.random.default_rng(0).permutation(len(pairs))[:PAIRS]]
    for count, epsilon in itertools.product(options.records, options.epsilons):
        records = frame.sample(count, random_state=1)
        found: Found = {}
        for model in models:
            drawn = draw_records(fit_release(model, records, schema, epsilon, quick=options.quick), DRAWN, 0)
            found[model] = {"pairs": float(np.mean([compute_marginal_distance(drawn, real, *pair) for pair in some]))}
        yield make_rows(f"{count:,} records ε={epsilon:g}", choose_model(schema, epsilon=epsilon, records=count), found)


# --- series ---


def compare_on_series(options: argparse.Namespace) -> Iterator[list[Row]]:
    real = not options.quick and (DATA / "ettm1_daily96.npz").exists()
    models = [model for model in options.models if model != "marginals"]  # it learns series as `independent` does
    models += ["gan"] if "gan" not in models else []
    for days in (load_transformers(DATA), load_meters(DATA, "day")) if real else (generate_waves(),):
        found = {model: _measure_days(days, model, quick=options.quick) for model in models}
        yield make_rows(days.name, choose_model(days.schema, epsilon=SERIES_EPSILON), found)


def _measure_days(days: Days, model: str, *, quick: bool) -> dict[str, float]:
    release = fit_release(model, days.learned, days.schema, SERIES_EPSILON, quick=quick)
    measures = days.section(draw_records(release, 300 if quick else DAYS, 0)).measures
    return {name: measures[MEASURES[name]].value for name in SHOWN}


if __name__ == "__main__":
    main()
