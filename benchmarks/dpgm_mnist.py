"""MNIST in black and white at ε = 1.74, as in Fig. 4 of Acs et al. (2019): with and without clusters.

Each release is fitted by `sundog fit` in a separate process at δ = 1e-5, and timed from the start of Python to the
file. Its score is the accuracy on real test images of a classifier trained on as many synthetic records. Clusters that
are found with labels follow the labels. So there are two more fits of the same model: one without clusters whose
decoder is conditioned on the label (only `vae`), and one whose clusters are found by images alone. The peers of each
are those before it; the peer of the first is a classifier trained on the real records. With `--plot` the samples of
the first seed are drawn, each row from one cluster.

    SUNDOG_DATA=../shared/data python benchmarks/dpgm_mnist.py [--quick] [--json FILE] [--plot FILE] [--seeds N]
        [--models NAME ...] [--clusters K ...] [--device cpu|cuda] [--judges N] [--set NAME=VALUE ...]
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from report import DATA, Row, parse_arguments, publish
from sklearn.datasets import load_digits

import sundog
from sundog.data.reading.read import encode, read
from sundog.data.records import Records, concatenate
from sundog.evaluation.comparison import Comparison, split
from sundog.evaluation.images.image_classifiers import measure_accuracy, train_classifier
from sundog.evaluation.images.image_sample import ImageView, find_images

SCHEMA = Path(__file__).parent.parent / "examples" / "mnist-binary.schema.yaml"
EPSILON, DELTA = 1.74, 1e-5
SECONDS = {"cpu": ("five minutes", 300.0), "cuda": ("twenty seconds", 20.0)}
STEPS = 1500  # of a classifier
ACROSS = 10  # samples of each cluster in the picture


@dataclass(frozen=True)
class Digits:
    """Images and labels, and the arguments that name them for `sundog fit`."""

    files: Sequence[str]
    train: Records
    test: Records


class Contestant(NamedTuple):
    """A fit, with its name in the table."""

    name: str
    model: str
    clusters: int
    settings: tuple[str, ...] = ()


def list_contestants(models: Sequence[str], clusters: Sequence[int]) -> list[Contestant]:
    found = []
    for model, k in itertools.product(models, clusters):
        found.append(Contestant(f"{model} k={k}", model, k))
        if k > 1:
            found.append(Contestant(f"{model} k={k}, by images", model, k, ("by=image",)))
        elif model == "vae":
            found.append(Contestant(f"{model} k={k}, told labels", model, k, ("condition=label",)))
    return found


Run = tuple[Contestant, int]  # with its seed


def load_mnist() -> Digits:
    schema = sundog.Schema.load(SCHEMA)
    parts, files = {}, {}
    for part in ("train", "t10k"):
        files[part] = [str(DATA / f"mnist-{part}-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1")]
        parts[part] = encode(read(files[part][0], schema, labels=files[part][1]), schema)
    images, labels = files["train"]
    return Digits([images, "--labels", labels, "--schema", str(SCHEMA)], parts["train"], parts["t10k"])


def load_small(folder: Path) -> Digits:
    """Return the digits of scikit-learn, and write two thirds of them to a file."""
    found = load_digits()
    image = {"type": "image", "shape": [8, 8], "levels": 17, "tones": 2}
    label = {"type": "categorical", "values": list(range(10))}
    schema = sundog.Schema.from_dict({"columns": {"image": image, "label": label}})
    codes = {"image": (found.images > 8).astype(np.uint8), "label": found.target.astype(np.uint8)}
    train_, test = split(Records(schema, codes, len(found.target)), 1 / 3, np.random.default_rng(0))
    data, own = folder / "digits.npz", folder / "digits.schema.yaml"
    values: Any = {name: column.decode(train_.codes[name]) for name, column in schema.columns.items()}
    np.savez(data, **values)
    schema.save(own)
    return Digits([str(data), "--schema", str(own)], train_, test)


def train_and_test(view: ImageView, learned: Records, test: Records, seed: int, steps: int) -> float:
    """Return the accuracy on real test images of a classifier trained on these records."""
    rng = np.random.default_rng(seed)
    images, real = view.sample(learned, len(learned), rng), view.sample(test, len(test), rng)
    judge = train_classifier("cnn", images.pixels, images.labels, classes=len(view.classes), seed=seed, steps=steps)
    return measure_accuracy(judge, real.pixels, real.labels).value


def run_fit(
    digits: Digits, who: Contestant, seed: int, folder: Path, options: argparse.Namespace
) -> tuple[sundog.Release, float]:
    """Return a release and the seconds that the fit took."""
    out = folder / "fitted.sundog"
    asked = {"model": who.model, "clusters": who.clusters, "seed": seed, "epsilon": EPSILON, "delta": DELTA, "out": out}
    arguments_ = [word for name, value in asked.items() for word in (f"--{name}", str(value))]
    settings = [*who.settings, *(["epochs=2"] if options.quick else []), *options.set]
    arguments_ += ["--device", options.device, *(word for setting in settings for word in ("--set", setting))]
    start = time.perf_counter()
    python = [sys.executable, "-c", "from sundog.cli.main import main; main()"]
    subprocess.run([*python, "fit", *digits.files, *arguments_], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    release = sundog.Release.load(out)
    out.unlink()
    return release, seconds


def draw_samples(releases: dict[str, sundog.Release], path: Path) -> None:
    """Draw samples of each release side by side, a row for each cluster."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(releases), 3.6), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(releases)))
    for axis, (name, release) in zip(axes, releases.items(), strict=True):
        axis.imshow(_make_grid(release), cmap="gray")
        axis.set_title(name, fontsize=10)
        axis.set_axis_off()
    figure.savefig(path, dpi=150)


def _make_grid(release: sundog.Release) -> Any:
    clusters = release.document.model.choices.get("cluster", 0)
    rows = []
    for row in range(ACROSS):
        where = {"cluster": row} if row < clusters else None
        sample = release.sample(ACROSS, seed=row, where=where, as_="arrays")
        rows.append(np.concatenate(list(sample["image"]), axis=1))
    return np.concatenate(rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", type=Path, help="draw samples into this file")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", nargs="+", default=["vae", "rbm"])
    parser.add_argument("--clusters", nargs="+", type=int, default=[1, 10])
    parser.add_argument("--device", choices=SECONDS, default="cpu")
    parser.add_argument("--judges", type=int, default=1, help="how many classifiers are trained in parallel")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    with tempfile.TemporaryDirectory() as folder:
        publish(run_contest(Path(folder), options), options)


def run_contest(folder: Path, options: argparse.Namespace) -> list[Row]:
    """Run all fits one after another, then all classifiers, and return the rows."""
    if options.quick or not (DATA / "mnist-train-images-idx3-ubyte.gz").exists():
        print("on the digits of scikit-learn; set SUNDOG_DATA for MNIST")
        digits = load_small(folder)
    else:
        digits = load_mnist()
    field, seeds = list_contestants(options.models, options.clusters), range(options.seeds)
    if options.quick:
        field, seeds = list_contestants(options.models[:1], options.clusters)[-1:], range(1)
    releases: dict[Run, sundog.Release] = {}
    times: dict[Run, float] = {}
    for who, seed in itertools.product(field, seeds):
        releases[who, seed], times[who, seed] = run_fit(digits, who, seed, folder, options)
        print(f"{who.name}, seed {seed}: {times[who, seed]:.1f} s", flush=True)
    if options.plot:
        draw_samples({who.name: each for (who, seed), each in releases.items() if seed == 0}, options.plot)
    view = find_images(Comparison(digits.train, digits.test, digits.train, digits.test, target="label"), "image")
    steps, count = STEPS // 50 if options.quick else STEPS, len(digits.train)
    learned = [digits.train, *(_draw_records(release, count, seed) for (_, seed), release in releases.items())]
    judged = [0, *(seed for _, seed in releases)]
    tasks = [(view, each, digits.test, seed, steps) for each, seed in zip(learned, judged, strict=True)]
    if options.judges == 1:
        best, *found = itertools.starmap(train_and_test, tasks)
    else:
        with multiprocessing.get_context("spawn").Pool(options.judges) as pool:
            best, *found = pool.starmap(train_and_test, tasks, chunksize=1)
    return make_rows(best, dict(zip(releases, found, strict=True)), times, options)


def make_rows(
    best: float, accuracies: dict[Run, float], times: dict[Run, float], options: argparse.Namespace
) -> list[Row]:
    rows: list[Row] = []
    for (who, seed), value in accuracies.items():
        print(f"{who.name}, seed {seed}: accuracy {value:.4f}, {times[who, seed]:.1f} s")
    means: dict[Contestant, float] = {}
    for who in dict.fromkeys(who for who, _ in accuracies):
        peers = {peer.name: mean for peer, mean in means.items() if peer.model == who.model} or {"real records": best}
        means[who] = float(np.mean([value for (each, _), value in accuracies.items() if each == who]))
        rows += [Row(f"accuracy, {who.name}", means[who], "", name, mean) for name, mean in peers.items()]
        seconds = float(np.median([value for (each, _), value in times.items() if each == who]))
        rows.append(Row(f"time, {who.name}", seconds, "s", *SECONDS[options.device]))
    return rows


def _draw_records(release: sundog.Release, count: int, seed: int) -> Records:
    return concatenate(list(release.batches(count, seed=seed)))


if __name__ == "__main__":
    main()
