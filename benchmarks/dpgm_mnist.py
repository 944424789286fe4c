"""MNIST in black and white at ε = 1.74, as in Fig. 4 of Acs et al. (2019): with and without clusters.

Each release is fitted through the front door at δ = 1e-5, and judged by what a classifier that has learned from as many
synthetic records knows of real test images. The peer is the same model without clusters, in the same run; where k
is 1, a classifier that has learned from the real records. With `--plot` the samples of the first seed are drawn, each
row from one cluster.

    SUNDOG_DATA=../shared/data python benchmarks/dpgm_mnist.py [--quick] [--json FILE] [--plot FILE] [--seeds N]
        [--models NAME ...] [--clusters K ...] [--device cpu|cuda] [--set NAME=VALUE ...]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from report import DATA, Row, arguments, publish
from sklearn.datasets import load_digits

import sundog
from sundog.data.read import encode, read
from sundog.data.records import Records
from sundog.evaluate.comparison import Comparison, split
from sundog.evaluate.images.classifiers import accuracy, train
from sundog.evaluate.images.sample import View, view_of

SCHEMA = Path(__file__).parent.parent / "examples" / "mnist-binary.schema.yaml"
EPSILON, DELTA = 1.74, 1e-5
STEPS = 1500  # of a classifier
ACROSS = 10  # samples of each cluster in the picture


def mnist(part: str) -> Records:
    schema = sundog.Schema.load(SCHEMA)
    images, labels = (DATA / f"mnist-{part}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1"))
    return encode(read(images, schema, labels=labels), schema)


def digits() -> tuple[Records, Records]:
    found = load_digits()
    image = {"type": "image", "shape": [8, 8], "levels": 17, "tones": 2}
    label = {"type": "categorical", "values": list(range(10))}
    schema = sundog.Schema.from_dict({"columns": {"image": image, "label": label}})
    codes = {"image": (found.images > 8).astype(np.uint8), "label": found.target.astype(np.uint8)}
    return split(Records(schema, codes, len(found.target)), 1 / 3, np.random.default_rng(0))


def known(view: View, learned: Records, test: Records, seed: int, steps: int) -> float:
    """The part of real test images whose class a classifier names that has learned from these records."""
    rng = np.random.default_rng(seed)
    images, real = view.sample(learned, len(learned), rng), view.sample(test, len(test), rng)
    judge = train("cnn", images.pixels, images.labels, classes=len(view.classes), seed=seed, steps=steps)
    return accuracy(judge, real.pixels, real.labels).value


def fitted(
    train_: Records, model: str, clusters: int, seed: int, options: argparse.Namespace
) -> tuple[sundog.Release, float]:
    """A release, and the seconds it took."""
    data = {name: column.decode(train_.codes[name]) for name, column in train_.schema.columns.items()}
    settings = {"epochs": 2} if options.quick else {}
    settings |= {name: json.loads(value) for name, _, value in (pair.partition("=") for pair in options.set)}
    start = time.perf_counter()
    maker = sundog.Synthesizer(
        model, EPSILON, DELTA, clusters=clusters, device=options.device, seed=seed, settings=settings
    )
    maker.fit(data, train_.schema)
    return maker.release_, time.perf_counter() - start


def picture(releases: dict[str, sundog.Release], path: Path) -> None:
    """Samples of each release side by side, a row for each cluster."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(releases), 3.6), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(releases)))
    for axis, (name, release) in zip(axes, releases.items(), strict=True):
        axis.imshow(_grid(release), cmap="gray")
        axis.set_title(name, fontsize=10)
        axis.set_axis_off()
    figure.savefig(path, dpi=150)


def _grid(release: sundog.Release) -> Any:
    clusters = release.model.choices.get("cluster", 0)
    rows = []
    for row in range(ACROSS):
        where = {"cluster": row} if row < clusters else None
        sample: Any = release.sample(ACROSS, seed=row, where=where)
        rows.append(np.concatenate(list(sample["image"]), axis=1))
    return np.concatenate(rows)


def extend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", type=Path, help="draw samples into this file")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", nargs="+", default=["vae", "rbm"])
    parser.add_argument("--clusters", nargs="+", type=int, default=[1, 10])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE")


def main() -> None:
    options = arguments(__doc__ or "", extend)
    if options.quick or not (DATA / "mnist-train-images-idx3-ubyte.gz").exists():
        print("on the digits of scikit-learn; set SUNDOG_DATA for MNIST")
        train_, test = digits()
    else:
        train_, test = mnist("train"), mnist("t10k")
    seeds = range(1 if options.quick else options.seeds)
    view = view_of(Comparison(train_, test, train_, test, target="label"), "image")
    steps = STEPS // 50 if options.quick else STEPS
    best = known(view, train_, test, 0, steps)
    rows: list[Row] = []
    drawn: dict[str, sundog.Release] = {}
    for model in options.models:
        alone = best
        for clusters in options.clusters:
            name = f"{model} k={clusters}"
            runs = []
            for seed in seeds:
                release, seconds = fitted(train_, model, clusters, seed, options)
                drawn.setdefault(name, release)
                synthetic = Records(train_.schema, _codes(release, len(train_), seed), len(train_))
                runs.append((known(view, synthetic, test, seed, steps), seconds))
                print(f"{name}, seed {seed}: accuracy {runs[-1][0]:.4f}, {seconds:.0f} s", flush=True)
            mean, seconds = np.mean([run[0] for run in runs]), np.median([run[1] for run in runs])
            peer = "real records" if clusters == 1 else f"{model} k=1"
            rows.append(Row(f"accuracy, {name}", float(mean), "", peer, alone))
            rows.append(Row(f"time, {name}", float(seconds), "s", "five minutes", 300.0))
            alone = float(mean) if clusters == 1 else alone
    publish(rows, options)
    if options.plot:
        picture(drawn, options.plot)


def _codes(release: sundog.Release, count: int, seed: int) -> dict[str, Any]:
    batches = list(release.batches(count, seed=seed))
    return {name: np.concatenate([batch.codes[name] for batch in batches]) for name in release.schema.columns}


if __name__ == "__main__":
    main()
