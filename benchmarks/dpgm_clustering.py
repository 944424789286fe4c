"""Accuracy of private clustering of MNIST against ε: Figure 3 of the DPGM paper (Acs et al. 2019), with fair peers.

Images are binarised at one half; the accuracy is that of the best matching of ten clusters with ten digits; δ = 1e-5.

- kernel: `find_clusters`, without public records and with the first 1,000 test images as public ones.
- kernel, d = 50 and 200: Algorithm 2, corrected but otherwise unchanged: 20 iterations on all d features, from ten
  random public images, as in the papers' curves.
- plain, clip √m: the papers' peer, 20 iterations on pixels, clipped at the largest possible norm.
- plain, fair: pixels around the mean, clipped at a typical norm, 3 iterations; started from a k-means of the public
  images, or from a packing of the sphere around a noisy mean.

All use the same joint Gaussian, split optimally between counts and sums, and restart lost clusters, so the peers are
better here than in the paper. Each of our rows is beside the peer with the same public data. Our two are scored on the
first 10,000 images, the others on all of them.

    SUNDOG_DATA=../shared/data python benchmarks/dpgm_clustering.py [--quick] [--seeds N] [--plot FILE] [--json FILE]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from image_scores import load_mnist, load_small_digits
from report import DATA, Row, parse_arguments, publish
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.mixture.clustering import find_clusters
from sundog.mixture.clustering_plan import ClusteringPlan, plan_clustering
from sundog.mixture.fourier_features import FourierFeatures, balance_columns, compute_median_distance
from sundog.mixture.kmeans import SPLIT, TOO_FEW, clip_to_ball, restart_small, spread_directions
from sundog.models.neural.features import Features
from sundog.models.protocol import FitContext
from sundog.privacy.calibration import find_noise_multiplier
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float32]
Curve = npt.NDArray[np.float64]  # accuracy by ε

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0)
DELTA, K = 1e-5, 10
ITERATIONS, FEW = 20, 3
CLIP = 0.3  # times √m, around the mean: most images are within
JUDGED = 10_000  # images on which a clustering of all of them is scored


@dataclass(frozen=True)
class Material:
    """Private images and their labels, and public images."""

    private: Records
    labels: npt.NDArray[np.int64]
    public: Records


def flatten_images(records: Records) -> Floats:
    rows: Floats = records.codes["image"].reshape(len(records), -1).astype(np.float32)
    return rows


def binarise(images: Records) -> Records:
    column = images.schema.columns["image"]
    schema = Schema.from_dict({"columns": {"image": {"type": "image", "shape": list(column.shape), "levels": 2}}})
    bright = images.codes["image"] >= column.lattice_size / 2
    return Records(schema, {"image": bright.astype(np.uint8)}, len(images))


def load_material(quick: bool) -> Material:
    if quick or not (DATA / "mnist-train-images-idx3-ubyte.gz").exists():
        print("on the digits of scikit-learn; set SUNDOG_DATA for MNIST")
        train, test = load_small_digits()
    else:
        train, test = load_mnist("train"), load_mnist("t10k").take(slice(0, 1000))
    return Material(binarise(train), train.codes["label"].astype(np.int64), binarise(test))


def measure_accuracy(labels: npt.NDArray[np.int64], clusters: npt.NDArray[np.int64]) -> float:
    table = np.bincount(labels * K + clusters, minlength=K * K).reshape(K, K)
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / len(labels))


# --- ours ---


def run_ours(data: Material, plans: list[ClusteringPlan], seed: int) -> Curve:
    features, judged, found = Features(data.private.schema), slice(0, JUDGED), []
    for epsilon, plan in zip(EPSILONS, plans, strict=True):
        context = FitContext(seed=seed, public=data.public if plan.public else None)
        clusters = find_clusters(features, data.private, plan, Ledger(epsilon=epsilon, delta=DELTA), context)
        found.append(measure_accuracy(data.labels[judged], clusters.assign(features, data.private.take(judged))))
    return np.array(found)


# --- peers: simulated for all ε at once, for speed; nothing is released here ---


def run_lloyd(data: Material, points: Floats, start: Floats, *, clip: float, iterations: int, sums: int = 0) -> Curve:
    """Run private Lloyd from one start at every ε; `sums` were measured before with the same noise."""
    width = points.shape[1]
    weight = width**-0.25
    noise = np.repeat(calibrate_one_sum() * math.sqrt((iterations + sums) * (1 + weight**2)), K)
    centres = np.tile(start, (len(EPSILONS), 1)).astype(np.float32)
    draw, rng = NoiseSource().gaussian, np.random.default_rng(0)
    for _ in range(iterations):
        owners = assign(points, centres)
        for place, owner in enumerate(owners.T):
            rows = slice(place * K, (place + 1) * K)
            member = (owner[:, None] == np.arange(K)).astype(np.float32)
            counts = member.sum(axis=0) + noise[rows] / weight * draw(K)
            total = member.T @ points + clip * noise[rows, None] * draw((K, width))
            few = counts < TOO_FEW * noise[rows] / weight
            means = clip_to_ball(total / np.where(few, 1.0, counts)[:, None], clip)
            restart_small(means, few, centres[rows].astype(np.float64), counts, SPLIT * clip, rng)
            centres[rows] = clip_to_ball(means, clip)
    return np.array([measure_accuracy(data.labels, owner) for owner in assign(points, centres).T])


def assign(points: Floats, centres: Floats) -> npt.NDArray[np.int64]:
    """Return the nearest of ten centres, one column for each ε."""
    scores = points @ centres.T - np.square(centres).sum(axis=1) / 2
    return np.asarray(scores.reshape(len(points), len(EPSILONS), K).argmax(axis=2))


def calibrate_one_sum() -> Curve:
    """Return the noise multiplier of a single sum at each ε."""
    if not _ONE_SUM:
        _ONE_SUM.extend(
            find_noise_multiplier(epsilon=epsilon, delta=DELTA, sample_rate=1.0, steps=1) for epsilon in EPSILONS
        )
    return np.array(_ONE_SUM)


_ONE_SUM: list[float] = []


def run_kernel_of_papers(data: Material, dimension: int, seed: int) -> Curve:
    rng, features = np.random.default_rng(seed), Features(data.private.schema)
    distance = compute_median_distance(features, data.public, rng)
    fourier = FourierFeatures.draw(
        width=features.width,
        dimension=dimension,
        distance=distance,
        kernel="gaussian",
        rng=rng,
        weights=balance_columns(features),
    )
    points = np.concatenate([units.astype(np.float32) for units in fourier.stream(features, data.private)])
    points *= np.float32(fourier.scale)
    start = fourier(flatten_images(data.public.take(rng.permutation(len(data.public))[:K])))
    return run_lloyd(data, points, start.astype(np.float32), clip=1.0, iterations=ITERATIONS)


def run_plain_of_papers(data: Material, seed: int) -> Curve:
    points = flatten_images(data.private)
    chosen = np.random.default_rng(seed).permutation(len(data.public))[:K]
    start = flatten_images(data.public)[chosen]
    return run_lloyd(data, points, start, clip=math.sqrt(points.shape[1]), iterations=ITERATIONS)


def run_plain_and_fair(data: Material, public: bool, seed: int) -> Curve:
    points, rng = flatten_images(data.private), np.random.default_rng(seed)
    clip = CLIP * math.sqrt(points.shape[1])
    if public:
        known = flatten_images(data.public)
        mean = known.mean(axis=0)
        start = KMeans(K, n_init=3, random_state=seed).fit(known - mean).cluster_centers_.astype(np.float32)
    else:  # the noise of the mean is negligible at every ε, so it is not drawn; its cost is charged
        mean = points.mean(axis=0)
        start = (clip / 2 * spread_directions(K, points.shape[1], rng)).astype(np.float32)
    points -= mean
    points *= np.minimum(1.0, clip / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9))
    return run_lloyd(data, points, start, clip=clip, iterations=FEW, sums=0 if public else 1)


# --- the table and the picture ---


def make_plans(data: Material, *, public: bool) -> list[ClusteringPlan]:
    records = len(data.private)
    return [
        plan_clustering(Ledger(epsilon=epsilon, delta=DELTA).budget, records=records, clusters=K, public=public)
        for epsilon in EPSILONS
    ]


def list_contestants(data: Material) -> dict[str, Callable[[int], Curve]]:
    alone, helped = make_plans(data, public=False), make_plans(data, public=True)
    return {
        "kernel": lambda seed: run_ours(data, alone, seed),
        "kernel, public": lambda seed: run_ours(data, helped, seed),
        "kernel, d = 50": lambda seed: run_kernel_of_papers(data, 50, seed),
        "kernel, d = 200": lambda seed: run_kernel_of_papers(data, 200, seed),
        "plain, clip √m": lambda seed: run_plain_of_papers(data, seed),
        "plain, fair": lambda seed: run_plain_and_fair(data, False, seed),
        "plain, fair, public": lambda seed: run_plain_and_fair(data, True, seed),
    }


PEERS = {
    "kernel": ("plain, clip √m", "plain, fair"),
    "kernel, public": ("plain, clip √m", "plain, fair, public"),
    "kernel, d = 50": ("plain, clip √m",),
    "kernel, d = 200": ("plain, clip √m",),
}


def make_rows(curves: dict[str, Curve]) -> list[Row]:
    means = {name: curve.mean(axis=0) for name, curve in curves.items()}
    return [
        Row(f"{name}, ε = {epsilon:g}", 100 * means[name][place], "%", peer, 100 * means[peer][place])
        for name, peers in PEERS.items()
        for peer in peers
        for place, epsilon in enumerate(EPSILONS)
    ]


def draw_figure(curves: dict[str, Curve], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    for name, curve in curves.items():
        error = curve.std(axis=0) / math.sqrt(len(curve))
        style = "-" if name.startswith("kernel") else "--"
        axes.errorbar(EPSILONS, 100 * curve.mean(axis=0), 200 * error, fmt=style, marker="o", capsize=2, label=name)
    axes.set(xscale="log", xlabel="ε (δ = 1e-5)", ylabel="clustering accuracy, %")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=150)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", type=Path, help="draw the curves into this file")
    parser.add_argument("--seeds", type=int, default=20, help="how many times everything is repeated")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    torch.set_num_threads(1)
    data = load_material(options.quick)
    seeds = 2 if options.quick else options.seeds
    curves = {}
    for name, contestant in list_contestants(data).items():
        curves[name] = np.array([contestant(seed) for seed in range(seeds)])
        found = "  ".join(f"{100 * value:5.1f}" for value in curves[name].mean(axis=0))
        print(f"{name:<22} {found}   ± {100 * curves[name].std(axis=0).max():.1f}", flush=True)
    if options.plot:
        draw_figure(curves, options.plot)
    publish(make_rows(curves), options)


if __name__ == "__main__":
    main()
