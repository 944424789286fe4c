"""Labelled images, releases fitted by `sundog fit` in separate processes, and the scores of their samples."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from image_scores import SCHEMA, load_mnist, load_small_digits
from report import DATA, Row, publish

import sundog
from dpgan.common import draw_records
from dpgan.downstream import train_and_test
from sundog.data.records import Records
from sundog.evaluation.comparison import Comparison, split, subsample
from sundog.evaluation.images.feature_extractor import fit_feature_extractor
from sundog.evaluation.images.image_sample import find_images
from sundog.evaluation.images.image_scores import compute_frechet_distance, compute_inception_score
from sundog.training.speed.threads import use_one_thread

DELTA = 1e-5
PANELS = 4  # side by side
FILES = ("images-idx3", "labels-idx1")


@dataclass(frozen=True)
class Fit:
    """The options of one `sundog fit`.

    Args:
        name: the name of the training strategy.
        epsilon: the budget.
        seed: the seed of everything except noise.
        device: cpu or cuda.
        settings: the settings of the model, as name=value.
        public: whether it gets the public records.
    """

    name: str
    epsilon: float
    seed: int
    device: str
    settings: tuple[str, ...] = ()
    public: bool = False

    @property
    def stem(self) -> str:
        """The stem of its file names."""
        return re.sub("[^a-z0-9.]+", "-", f"{self.name} {self.epsilon:g} {self.seed}")


# Controls without a fit: the real images; the mean image of each class, repeated; and the public images, repeated.
REAL, MEANS, GIVEN = (Fit(name, math.inf, 0, "") for name in ("real images", "class means", "public images"))


@dataclass(frozen=True)
class Scores:
    """The scores of a fit.

    Args:
        accuracy: the accuracy on real test images of a network trained on generated ones.
        inception: the Inception score of generated images.
        frechet: the Fréchet distance of generated images from real test images.
        seconds: the time from the start of Python to the file.
        spent: the ε on the certificate.
    """

    accuracy: float
    inception: float
    frechet: float
    seconds: float = 0.0
    spent: float = 0.0


@dataclass(frozen=True)
class Trials:
    """Records and the files that `sundog fit` reads them from.

    Args:
        private: the arguments that name the files of the private records.
        public: the file of public records, if there are any.
        train: the private records.
        test: the test records.
        device: where classifiers are trained.
        folder: the folder of releases.
        given: the public records, if there are any.
    """

    private: Sequence[str]
    public: str | None
    train: Records
    test: Records
    device: str
    folder: Path
    given: Records | None = None

    @property
    def controls(self) -> dict[Fit, Records]:
        """The controls that need no fit, with as many records as there are private ones."""
        found = {REAL: self.train, MEANS: average_classes(self.train)}
        if self.given is not None:
            found[GIVEN] = self.given.take(np.arange(len(self.train)) % len(self.given))
        return found

    @property
    def is_mnist(self) -> bool:
        """Whether these images are MNIST, for which there are published figures."""
        return self.train.schema.columns["image"].shape == (28, 28)

    @property
    def comparison(self) -> Comparison:
        """The comparison of real records with other real records."""
        return Comparison(self.train, self.test, self.train, self.test, target="label")

    def run(self, fit: Fit) -> Scores:
        """Fit, sample as many records as there are real ones, and score them."""
        if fit in (controls := self.controls):
            return self._score(controls[fit], fit.seed)
        out = self.folder / f"{fit.stem}.sundog"
        public = ["--public", self.public] if fit.public and self.public else []
        seconds = run_fit([*self.private, *public], fit, out)
        release = sundog.Release.load(out)
        scores = self._score(draw_records(release, len(self.train), fit.seed), fit.seed)
        return replace(scores, seconds=seconds, spent=release.certificate.spent["pld"] or 0.0)

    def _score(self, records: Records, seed: int) -> Scores:
        view, rng = find_images(self.comparison, "image"), np.random.default_rng(seed)
        judge = fit_feature_extractor(self.comparison, view)
        assert judge is not None and judge.predict_probabilities is not None  # noqa: PT018
        images, real = (view.sample(each, len(self.test), rng).pixels for each in (records, self.test))
        with use_one_thread():
            score = compute_inception_score(judge.predict_probabilities(images))
            distance = compute_frechet_distance(judge.extract_features(images), judge.extract_features(real))
        generated, test = (view.sample(each, len(each), rng) for each in (records, self.test))
        pairs = (generated.pixels, generated.labels), (test.pixels, test.labels)
        return Scores(train_and_test(*pairs, seed=seed, device=self.device), score, distance)


def load(folder: Path, *, quick: bool, device: str = "cpu", public: float = 0.0, records: int | None = None) -> Trials:
    """Load MNIST, or the small digits of scikit-learn.

    Args:
        folder: the folder to write files to.
        quick: whether to load the small digits.
        device: where classifiers are trained.
        public: the share of training records that are public, and not among the private ones.
        records: how many training records to use; None for all.
    """
    small = quick or not (DATA / f"mnist-train-{FILES[0]}-ubyte.gz").exists()
    if small:
        print("on the digits of scikit-learn; set SUNDOG_DATA for MNIST")
    train, test = load_small_digits() if small else (load_mnist("train"), load_mnist("t10k"))
    rng, fewer = np.random.default_rng(0), records is not None and records < len(train)
    train = subsample(train, records or len(train), rng)
    if public:
        train, given = split(train, public, rng)
        place, *_ = _saved(given, folder, "public")
        return Trials(_saved(train, folder, "private"), place, train, test, device, folder, given)
    if small or fewer:
        return Trials(_saved(train, folder, "digits"), None, train, test, device, folder)
    images, labels = (str(DATA / f"mnist-train-{kind}-ubyte.gz") for kind in FILES)
    return Trials([images, "--labels", labels, "--schema", str(SCHEMA)], None, train, test, device, folder)


def run_fit(words: Sequence[str], fit: Fit, out: Path) -> float:
    """Run `sundog fit` in a separate process and return the seconds it took."""
    asked = {"model": "gan", "epsilon": fit.epsilon, "delta": DELTA, "seed": fit.seed, "device": fit.device, "out": out}
    words = [*words, *(word for name, value in asked.items() for word in (f"--{name}", str(value)))]
    words = [*words, *(word for setting in fit.settings for word in ("--set", setting))]
    python = [sys.executable, "-c", "from sundog.cli.main import main; main()"]
    start = time.perf_counter()
    subprocess.run([*python, "fit", *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def average_classes(records: Records) -> Records:
    """Return the records, each with the mean image of its class."""
    images, labels = records.codes["image"], records.codes["label"]
    means = np.zeros((int(labels.max()) + 1, *images.shape[1:]))
    for label in np.unique(labels):
        means[label] = images[labels == label].mean(axis=0)
    return Records(records.schema, {"image": np.rint(means).astype(images.dtype)[labels], "label": labels}, len(labels))


def write_rows(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Write the rows so far, without printing them."""
    with contextlib.redirect_stdout(None):
        publish(rows, options)


def draw_samples(releases: dict[str, sundog.Release], path: Path, *, across: int = 10) -> None:
    """Draw samples of each release side by side, a row for each class."""
    from matplotlib.figure import Figure

    columns = min(PANELS, len(releases))
    rows = math.ceil(len(releases) / columns)
    figure = Figure(figsize=(3.2 * columns, 3.6 * rows), layout="constrained")
    for place, (name, release) in enumerate(releases.items(), start=1):
        axis = figure.add_subplot(rows, columns, place)
        label: Any = release.schema.columns["label"]
        classes = label.decode(np.arange(label.lattice_size)).to_pylist()
        drawn: list[Any] = [
            release.sample(across, seed=0, where={"label": each}, as_="arrays")["image"] for each in classes
        ]
        axis.imshow(np.concatenate([np.concatenate(list(images), axis=1) for images in drawn]), cmap="gray")
        axis.set_title(name, fontsize=10)
        axis.set_axis_off()
    figure.savefig(path, dpi=150)


def _saved(records: Records, folder: Path, name: str) -> list[str]:
    data, schema = folder / f"{name}.npz", folder / f"{name}.schema.yaml"
    values: Any = {column: each.decode(records.codes[column]) for column, each in records.schema.columns.items()}
    np.savez(data, **values)
    records.schema.save(schema)
    return [str(data), "--schema", str(schema)]
