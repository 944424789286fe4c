"""A GAN on daily series of 96 values at ε = 6, as in Fig. 3 of Frigerio et al. (2019): households and transformers.

Nine tenths of the days are used for training. Distances of spectra, autocorrelations and totals are those between
generated days and training days, as measured by `sundog evaluate`. The peer is the same GAN without noise and clipping,
in the same run. The held-out tenth in place of generated days is the ceiling. Totals and values are shares of the
declared range. With `--unit house` the unit of privacy is a household with its 49 days. With `--plot` six generated
days are drawn over their nearest real days under dynamic time warping.

    SUNDOG_DATA=../shared/data python benchmarks/dpgan_series.py [--quick] [--json FILE] [--plot FILE] [--seeds N]
        [--data NAME ...] [--shapes NAME ...] [--unit day|house] [--device cpu|cuda] [--set NAME=VALUE ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path

from dpgan.common import draw_records, parse_settings
from dpgan.series import MEASURES, Days, Silence, combine_seeds, generate_waves, load_meters, load_transformers
from report import DATA, Row, parse_arguments, publish

import sundog
from sundog.evaluation.measure import Measure
from sundog.evaluation.section import Section

EPSILON, DELTA = 6.0, 1e-5
SAMPLES = 10_000
UNCLIPPED = 1e6  # a bound that no gradient reaches
SECONDS = ("five minutes", 300.0)

Measures = Mapping[str, Measure]


def fit_release(days: Days, shape: str, seed: int, options: argparse.Namespace, *, private: bool) -> sundog.Release:
    """Return a release; if it is not private, without noise and clipping."""
    settings = {
        "shape": shape,
        **({} if private else {"clip": UNCLIPPED}),
        **({"epochs": 2} if options.quick else {}),
        **options.set,
    }
    synth = sundog.Synthesizer(
        model="gan",
        epsilon=EPSILON,
        delta=DELTA,
        seed=seed,
        device=options.device,
        settings=settings,
        noise=None if private else Silence(),
    )
    return synth.fit(days.learned, days.schema).release_


def compare_with_peer(days: Days, shape: str, options: argparse.Namespace, ceiling: Measures) -> list[Row]:
    """Return the rows of one shape of networks, private beside not private."""
    measured: dict[bool, list[Measures]] = {True: [], False: []}
    seconds = []
    for seed in range(options.seeds):
        for private in (True, False):
            start = time.perf_counter()
            release = fit_release(days, shape, seed, options, private=private)
            if private:
                seconds.append(time.perf_counter() - start)
            count = 300 if options.quick else SAMPLES
            section = days.section(draw_records(release, count, seed))
            measured[private].append(section.measures)
            if private and seed == 0 and options.plot:
                draw(section, options.plot, f"{days.name}-{shape}".replace(" ", "-"))
    name = f"{days.name} {shape}"
    rows = [Row(f"time, {name}", sum(seconds) / len(seconds), "s", *SECONDS)]
    for label, measure in MEASURES.items():
        ours, peer = (combine_seeds([each[measure] for each in measured[private]]) for private in (True, False))
        found = [format_measure(each) for each in (ours, peer, ceiling[measure])]
        print("{:<34} {}   without noise {}   real {}".format(f"{label}, {name}", *found))
        rows.append(Row(f"{label}, {name}", ours.value, "", "without noise", peer.value))
    return rows


def format_measure(measure: Measure) -> str:
    return f"{measure.value:.4f} ({measure.low:.4f} to {measure.high:.4f})"


def draw(section: Section, path: Path, name: str) -> None:
    """Draw generated days over their nearest real days."""
    (picture,) = (each for each in section.pictures if "nearest" in each.title)
    picture.draw().savefig(path.with_stem(f"{path.stem}-{name}"), dpi=150)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", type=Path, help="draw days into files whose names begin with this")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--data", nargs="+", choices=["meters", "ETTm1"], default=["meters", "ETTm1"])
    parser.add_argument("--shapes", nargs="+", default=["mlp"], help="also lstm, conv")
    parser.add_argument("--unit", choices=["day", "house"], default="day", help="the unit of privacy of the meters")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE")


def choose_days(options: argparse.Namespace) -> list[Days]:
    if options.quick or not (DATA / "swiss_smartmeter_daily96.npz").exists():
        print("on waves; set SUNDOG_DATA for real days")
        return [generate_waves()]
    return [load_meters(DATA, options.unit) if name == "meters" else load_transformers(DATA) for name in options.data]


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    options.set = parse_settings(options.set)
    rows = []
    for days in choose_days(options):
        ceiling = days.section().measures
        for shape in options.shapes:
            rows += compare_with_peer(days, shape, options, ceiling)
    publish(rows, options)


if __name__ == "__main__":
    main()
