"""Semi-supervised learning with generated images: Table 6 of Zhang, Ji and Wang (2018), on MNIST.

Some images of the test file have public labels, and the rest of that file is the test set; neither was used for the
release of the training file. `two classifiers` is Algorithm 4 of the paper, where the input of C₂ includes everything
that the generator was given for an image; `consistent` is FixMatch on generated images. Neither uses the labels of the
release. `labelled by the release` does: a network is trained on generated images with the labels they were generated
for, and on as many public ones, repeated; all are distorted. Peers are `supervised` (the public images alone) and
`distorted` (the same with distortions, without generated images), in the same run, and the paper's figures for its own
semi-supervised network.

Without `--release` a GAN is fitted at ε = 10.

    SUNDOG_DATA=../shared/data python benchmarks/dpgan_semisupervised.py [--quick] [--json FILE] [--release FILE]
        [--labels N ...] [--seeds N] [--processes N] [--device cpu|cuda]
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dpgan.images import Fit, Trials, load, run_fit, write_rows
from report import Row, parse_arguments, publish

import sundog
from sundog.evaluation.images.image_classifiers import Images, Labels, measure_accuracy
from sundog.evaluation.images.image_sample import find_images
from sundog.evaluation.images.semi_supervised import STEPS, Codes, compare_methods, train_supervised
from sundog.models.gan.gan import Gan
from sundog.training.speed.threads import use_one_thread

EPSILON = 10.0
POOL = 20_000  # generated images
TEXT = {  # labels: supervised, and semi-supervised with differential privacy
    100: (0.720, 0.569),
    200: (0.824, 0.747),
    300: (0.874, 0.835),
    500: (0.909, 0.884),
    1000: (0.934, 0.903),
}
SUPERVISED, DISTORTED, RELEASED = "supervised", "distorted", "labelled by the release"
WAYS = {"two_classifiers": "two classifiers", "consistent": "consistent", RELEASED: RELEASED}

Key = tuple[int, int]  # labels, and the seed
Found = dict[Key, dict[str, float]]


@dataclass(frozen=True)
class Pool:
    """Generated images with their codes and labels; a call draws from them."""

    codes: Codes
    images: Images
    labels: Labels

    def __call__(self, count: int, rng: np.random.Generator) -> tuple[Codes, Images]:
        """Draw codes and images."""
        rows = rng.integers(0, len(self.images), count)
        return self.codes[rows], self.images[rows]


@dataclass(frozen=True)
class Task:
    """Images with public labels, test images, and generated images."""

    images: Images
    labels: Labels
    test: tuple[Images, Labels]
    pool: Pool
    classes: int
    seed: int
    steps: int

    def accuracies(self) -> dict[str, float]:
        """Return the accuracy of each method."""
        rng, known = np.random.default_rng(self.seed), (self.images, self.labels)
        with use_one_thread():
            found = compare_methods(*known, self.pool, test=self.test, classes=self.classes, rng=rng, steps=self.steps)
            told = train_supervised(*self._mixed(), classes=self.classes, rng=rng, steps=self.steps, distortion=1.0)
            last = measure_accuracy(told, *self.test).value
        return {**{name.removeprefix("semi_supervised."): each.value for name, each in found.items()}, RELEASED: last}

    def _mixed(self) -> tuple[Images, Labels]:
        """Return generated images with their labels, and equally many public ones, repeated."""
        rows = np.arange(len(self.pool.images)) % len(self.images)
        images = np.concatenate([self.images[rows], self.pool.images])
        return images, np.concatenate([self.labels[rows], self.pool.labels])


def draw_pool(release: sundog.Release, count: int, seed: int) -> Pool:
    """Draw images from a GAN, each with the input of the generator as its code."""
    model, rng = release.model, np.random.default_rng(seed)
    assert isinstance(model, Gan), "a release of a GAN is needed: others do not tell the codes of images"
    codes, parts = model.sampler.draw_inputs(count, rng, {}), []
    for start in range(0, count, model.sampler.rows):
        logits = model.sampler.logits(codes[start : start + model.sampler.rows])
        parts.append(model.features.sample(logits, rng))
    images, labels = (np.concatenate([part[name] for part in parts]) for name in ("image", "label"))
    column = release.schema.columns["image"]
    height, width, channels = (*column.shape, 1)[:3]
    pixels = images.reshape(-1, height, width, channels).transpose(0, 3, 1, 2) / np.float32(column.lattice_size - 1)
    return Pool(codes, np.ascontiguousarray(pixels, np.float32), labels.astype(np.int64))


def make_tasks(trials: Trials, release: sundog.Release, options: argparse.Namespace) -> dict[Key, Task]:
    """Return a task for each number of labels and seed."""
    view, quick = find_images(trials.comparison, "image"), options.quick
    pool = draw_pool(release, POOL // 20 if quick else POOL, seed=0)
    found = {}
    for seed in range(1 if quick else options.seeds):
        real = view.sample(trials.test, len(trials.test), np.random.default_rng(seed))
        counts = [count for count in options.labels if count <= len(real) // 2]
        test = real.pixels[max(counts) :], real.labels[max(counts) :]
        for count in counts:
            known = real.pixels[:count], real.labels[:count]
            steps = STEPS // 20 if quick else STEPS
            found[count, seed] = Task(*known, test, pool, len(view.classes), seed, steps)
    return found


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", type=Path, help="a GAN's release of the training images; by default one is fitted")
    parser.add_argument("--labels", nargs="+", type=int, default=list(TEXT))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=1, help="parallel tasks")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    if options.quick:
        options.labels = options.labels[:1]
    with tempfile.TemporaryDirectory() as folder:
        trials = load(Path(folder), quick=options.quick)
        path = options.release or Path(folder) / "gan.sundog"
        if options.release is None:
            run_fit(trials.private, Fit("gan", EPSILON, 0, options.device, ("epochs=1",) * options.quick), path)
        asked = make_tasks(trials, sundog.Release.load(path), options)
        found: Found = {}
        for key, accuracies in run_tasks(asked, options.processes):
            found[key] = accuracies
            told = ", ".join(f"{name} {value:.4f}" for name, value in accuracies.items())
            print("{} labels, seed {}:".format(*key), told, flush=True)
            write_rows(make_rows(found, trials), options)
    publish(make_rows(found, trials), options)


def run_tasks(asked: dict[Key, Task], processes: int) -> Iterator[tuple[Key, dict[str, float]]]:
    """Yield the accuracies of all tasks, as they are completed."""
    if processes == 1:
        yield from zip(asked, map(Task.accuracies, asked.values()), strict=True)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as workers:
        yield from zip(asked, workers.imap(Task.accuracies, asked.values()), strict=True)


def make_rows(found: Found, trials: Trials) -> list[Row]:
    """Return the means over seeds."""
    rows = []
    for count in dict.fromkeys(count for count, _ in found):
        runs = [accuracies for (labels, _), accuracies in found.items() if labels == count]
        mean = {name: statistics.mean(run[name] for run in runs) for name in runs[0]}
        peers = {SUPERVISED: mean[SUPERVISED], DISTORTED: mean[DISTORTED]}
        stated = TEXT.get(count) if trials.is_mnist else None
        if stated is not None:
            rows.append(Row(f"{count} labels, {SUPERVISED}", mean[SUPERVISED], "", "text, supervised", stated[0]))
            peers["text, semi-supervised"] = stated[1]
        for way, name in WAYS.items():
            rows += [Row(f"{count} labels, {name}", mean[way], "", peer, value) for peer, value in peers.items()]
    return rows


if __name__ == "__main__":
    main()
