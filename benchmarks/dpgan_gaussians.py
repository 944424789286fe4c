"""A GAN on six Gaussians in the plane at ε = 8, as in Figs. 1 and 2 of Frigerio et al. (2019).

A mode counts as found if there are at least half and at most twice as many synthetic points as real ones within three
standard deviations; all six must be found, with each of ten seeds. The share of points far from every mode is also
counted. The distance is the Wasserstein distance between equally many real and synthetic points; its peer is the mean
distance of two sets of real points. There are separate fits for several numbers of epochs, each at ε = 8, with and
without decay of the clipping bound, and at an ε so large that they are hardly private.

    python benchmarks/dpgan_gaussians.py [--quick] [--json FILE] [--plot FILE] [--seeds N] [--set NAME=VALUE …]
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from dpgan.common import parse_settings
from numpy.typing import NDArray
from report import Row, parse_arguments, publish
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import sundog

EPSILON, DELTA = 8.0, 1e-5
WAYS: Mapping[str, tuple[float, dict[str, Any]]] = {
    "ε=100": (100.0, {}),
    "ε=8": (EPSILON, {}),
    "ε=8, decay": (EPSILON, {"decay": 0.25}),
}
RECORDS, MODES, RADIUS, DEVIATION = 20_000, 6, 1.0, 0.1
SCHEMA = {"columns": {name: {"type": "continuous", "min": -1.5, "max": 1.5, "resolution": 0.001} for name in "xy"}}
EPOCHS = (3, 10, 30)
FEW = 3  # seeds, except for the longest trainings at ε = 8
IDEALS = 20  # sets of real points
COMPARED = 1000  # points; computing the distance takes cubic time
WIDTH = 3.0  # deviations

Points = NDArray[np.float64]
Run = tuple[str, int, int]  # strategy, epochs, seed


def compute_centres() -> Points:
    angles = 2 * np.pi * np.arange(MODES) / MODES
    return RADIUS * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def draw_real_points(count: int, rng: np.random.Generator) -> Points:
    """Draw points from the six modes with equal probabilities."""
    points = compute_centres()[rng.integers(MODES, size=count)] + DEVIATION * rng.standard_normal((count, 2))
    return np.asarray(points.clip(-1.5, 1.5))


def count_modes(points: Points, real: Points) -> int:
    """Return how many modes have between half and twice the share of points that they have in the real data.

    >>> real = draw_real_points(6000, np.random.default_rng(0))
    >>> count_modes(real, real), count_modes(real[real[:, 0] < 0.7], real), count_modes(real[:, [1, 0]], real)
    (6, 5, 0)
    """
    shares = [(cdist(each, compute_centres()) < WIDTH * DEVIATION).mean(axis=0) for each in (points, real)]
    ratio = shares[0] / shares[1]
    return int(((ratio >= 0.5) & (ratio <= 2.0)).sum())


def measure_outliers(points: Points) -> float:
    """Return the share of points that are far from every mode."""
    return float((cdist(points, compute_centres()) >= WIDTH * DEVIATION).all(axis=1).mean())


def measure_distance(points: Points, others: Points) -> float:
    """Return the Wasserstein distance of two sets of equally many points."""
    ways = cdist(points[:COMPARED], others[:COMPARED])
    return float(ways[linear_sum_assignment(ways)].mean())


def list_runs(options: argparse.Namespace) -> Iterator[Run]:
    """Yield all trainings."""
    if options.quick:
        yield "ε=8, decay", 1, 0
        return
    for way, epochs in itertools.product(WAYS, EPOCHS):
        is_main = WAYS[way][0] == EPSILON and epochs == EPOCHS[-1]
        for seed in range(options.seeds if is_main else min(FEW, options.seeds)):
            yield way, epochs, seed


def draw_sample(run: Run, real: Points, settings: Mapping[str, Any]) -> Points:
    """Draw as many synthetic points as there are real ones."""
    way, epochs, seed = run
    epsilon, own = WAYS[way]
    asked = {**own, "epochs": epochs, **settings}
    synth = sundog.Synthesizer("gan", epsilon, DELTA, seed=seed, settings=asked)
    frame = pd.DataFrame(real, columns=["x", "y"])
    drawn: Any = synth.fit(frame, sundog.Schema.from_dict(SCHEMA)).release_.sample(len(real), seed=seed)
    return np.asarray(drawn, np.float64)


def draw_figure(
    points: Mapping[Run, Points], real: Points, ideal: float, distances: Mapping[Run, float], to: Path
) -> None:
    """Draw the distances against epochs, and the points of the longest trainings with the first seed."""
    from matplotlib.figure import Figure

    ways = list(dict.fromkeys(way for way, _, _ in points))
    epochs = sorted({epochs for _, epochs, _ in points})
    figure = Figure(figsize=(3.0 * (len(ways) + 2), 3.2), layout="constrained")
    curve, *axes = figure.subplots(1, len(ways) + 2)
    for way in ways:
        found = [[value for run, value in distances.items() if run[:2] == (way, epoch)] for epoch in epochs]
        curve.errorbar(epochs, [np.mean(one) for one in found], [np.std(one) for one in found], label=way, capsize=3)
    curve.axhline(ideal, color="grey", linestyle=":", label="real points")
    curve.set(xlabel="epochs", ylabel="Wasserstein distance", ylim=(0, None), xticks=epochs)
    curve.legend(fontsize=8)
    shown = {"real": real} | {way: points[way, epochs[-1], 0] for way in ways}
    for axis, (name, each) in zip(axes, shown.items(), strict=True):
        axis.hexbin(each[:, 0], each[:, 1], gridsize=60, extent=(-1.5, 1.5, -1.5, 1.5), cmap="magma")
        axis.set_title(name, fontsize=10)
        axis.set_aspect("equal")
        axis.set_axis_off()
    figure.savefig(to, dpi=150)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", type=Path, help="draw distances and points into this file")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the model")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    settings = parse_settings(options.set)
    rng = np.random.default_rng(0)
    real, others = draw_real_points(2000 if options.quick else RECORDS, rng), draw_real_points(COMPARED, rng)
    ideal = float(np.mean([measure_distance(draw_real_points(COMPARED, rng), others) for _ in range(IDEALS)]))
    points: dict[Run, Points] = {}
    distances: dict[Run, float] = {}
    for run in list_runs(options):
        points[run] = draw_sample(run, real, settings)
        distances[run] = measure_distance(points[run], others)
        print("{}, {} epochs, seed {}:".format(*run), f"{count_modes(points[run], real)} modes,", end=" ")
        print(f"distance {distances[run]:.4f}", flush=True)
    rows = []
    for way, epochs in dict.fromkeys(run[:2] for run in points):
        own = [run for run in points if run[:2] == (way, epochs)]
        name = f"{way}, {epochs} epochs"
        complete = float(np.mean([count_modes(points[run], real) == MODES for run in own]))
        rows.append(Row(f"all six, {name}", complete, "", f"all {len(own)} seeds", 1.0))
        lost = float(np.mean([measure_outliers(points[run]) for run in own]))
        rows.append(Row(f"near no mode, {name}", lost, "", "real points", measure_outliers(real)))
        mean = float(np.mean([distances[run] for run in own]))
        rows.append(Row(f"distance, {name}", mean, "", "two sets of real points", ideal))
    if options.plot:
        draw_figure(points, real, ideal, distances, options.plot)
    publish(rows, options)


if __name__ == "__main__":
    main()
