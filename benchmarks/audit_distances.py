"""Changed copies of rare members: what the nearest-neighbour attack finds with other distances.

Synthetic records are real ones that were set aside, as of a perfect generator, and changed copies of the 60 rarest of
2,000 members: of series (days of smart meters) and images (MNIST, CIFAR-10). The value is how many of the 20 candidates
of each fold that `rare-density-ratio` suspects most are members, on average over folds and splits (20 at best, 10 by
chance). Peers are the same attack with principal components alone, with warping or shifts alone and, with `--network`,
with the features of a convolutional network that was trained on synthetic and reference images to recognise an image
that was shifted by up to two pixels, with noise (a contrastive loss; 400 batches of 128).

    SUNDOG_DATA=../shared/data python benchmarks/audit_distances.py [--quick] [--json FILE] [--network] [--only ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import torch
from audit_copies import Split, load_images, load_series
from report import DATA, Row, parse_arguments, publish
from torch.nn.functional import cross_entropy, normalize

from sundog.auditing.aligned_arrays import shift_image
from sundog.auditing.array_components import scale_levels
from sundog.auditing.attacks import density_ratio
from sundog.auditing.attacks.density_ratio import RareDensityRatio
from sundog.auditing.audit_inputs import AuditInputs, Sample
from sundog.auditing.candidates import make_folds, score_folds
from sundog.auditing.nearest_records import RecordDistance
from sundog.auditing.rarity import compute_rarity
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.images.image_classifiers import AdamDescent, Classifier, Images, build_network, draw_batches

ROWS, COPIED, GUESSES = 2000, 60, 20
STEPS, TEMPERATURE, NOISE = 400, 0.1, 0.05
Change = Callable[[Any, np.random.Generator], Any]


def load_photographs(rows: int) -> Split:
    """Return photographs of CIFAR-10 in colour."""
    kept = np.load(DATA / "cifar10_10k.npz")
    pixels = np.concatenate([kept["x_train"], kept["x_test"]])
    schema = Schema.from_dict({"columns": {"image": {"type": "image", "shape": [32, 32, 3]}}})
    order = np.random.default_rng(0).permutation(len(pixels))
    return Split(schema, pixels[order[::2]][:rows], pixels[order[1::2]][:rows])


def add_noise(share: float) -> Change:
    """Return a change by normal noise, with this share of a record's own deviation."""

    def change(values: Any, rng: np.random.Generator) -> Any:
        deviations = values.std(axis=tuple(range(1, values.ndim)), keepdims=True)
        return values + share * deviations * rng.standard_normal(values.shape)

    return change


def shift(most: int, axes: tuple[int, ...], share: float = 0.05) -> Change:
    """Return a change that shifts each record by one to `most` places along some axes, with a little noise."""

    def change(values: Any, rng: np.random.Generator) -> Any:
        found = values.copy()
        for row in range(len(values)):
            steps = rng.integers(1, most + 1, len(axes)) * rng.choice([-1, 1], len(axes))
            for axis, step in zip(axes, steps, strict=True):
                places = np.clip(np.arange(values.shape[1 + axis]) - step, 0, values.shape[1 + axis] - 1)
                found[row] = found[row].take(places, axis=axis)  # the border is repeated
        return add_noise(share)(found, rng)

    return change


def change_nothing(values: Any, rng: np.random.Generator) -> Any:  # noqa: ARG001
    return values


SERIES: dict[str, Change] = {
    "unchanged": change_nothing,
    "noise": add_noise(0.2),
    "a step": shift(1, (0,)),
    "two steps": shift(2, (0,)),
    "two steps and noise": shift(2, (0,), 0.2),
}
IMAGES: dict[str, Change] = {
    "unchanged": change_nothing,
    "noise": add_noise(0.5),
    "a pixel": shift(1, (0, 1)),
    "two pixels": shift(2, (0, 1)),
    "darker": lambda values, rng: values * rng.uniform(0.6, 0.8, (len(values), *[1] * (values.ndim - 1))),
}
CASES: dict[str, tuple[Callable[[int], Split], dict[str, Change]]] = {
    "series": (load_series, SERIES),
    "digits": (load_images, IMAGES),
    "photographs": (load_photographs, IMAGES),
}


class ComponentDistance(RecordDistance):
    """Principal components alone."""

    @classmethod
    def fit(cls, schema: Schema, known: Records) -> RecordDistance:
        """Return the distance without the other way."""
        return RecordDistance(RecordDistance.fit(schema, known).parts)


class AlignedDistance(RecordDistance):
    """Warping, or shifts, alone."""

    def find_nearest_both_ways(self, records: Records, among: Records) -> npt.NDArray[np.float64]:
        """Return the other way only."""
        return super().find_nearest_both_ways(records, among)[:, 1:]


class NetworkFeatures:
    """Features of a network that was trained to recognise an image under a small shift and noise."""

    def __init__(self, name: str, known: Records) -> None:
        self.name = name
        self.classifier = train_features(self._to_images(known))

    def encode(self, records: Records) -> npt.NDArray[np.float32]:
        """Return features of length 1."""
        found = self.classifier.extract_features(self._to_images(records))
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)

    def compare(self, these: Any, those: Any) -> npt.NDArray[np.float32]:
        """Return squared distances."""
        return np.asarray(2 - 2 * (these @ those.T), np.float32)

    def _to_images(self, records: Records) -> Images:
        levels = scale_levels(self.name, records)
        return np.ascontiguousarray(levels[:, None] if levels.ndim == 3 else levels.transpose(0, 3, 1, 2))


class NetworkDistance(RecordDistance):
    """The distance between features of a network."""

    @classmethod
    def fit(cls, schema: Schema, known: Records) -> RecordDistance:
        """Train the network on the known images."""
        (name,) = schema.columns
        part = NetworkFeatures(name, known)
        return RecordDistance([part])


def train_features(images: Images) -> Classifier:
    """Return a network whose features of two views of one image are nearer than those of two images."""
    rng, network = np.random.default_rng(0), build_network("cnn", images, 2, 0)
    descent = AdamDescent(network, STEPS)
    for rows in draw_batches(len(images), STEPS, rng):
        first, second = (normalize(network.extract_features(draw_view(images[rows], rng))) for _ in range(2))
        descent.step(cross_entropy(first @ second.T / TEMPERATURE, torch.arange(len(rows))))
    return Classifier(network)


def draw_view(images: Images, rng: np.random.Generator) -> torch.Tensor:
    """Return the images under random shifts, with noise."""
    shifted = [rng.choice(shift_image(image.transpose(1, 2, 0))) for image in images]
    views = np.stack(shifted).reshape(len(images), *images.shape[2:], -1).transpose(0, 3, 1, 2)
    return torch.from_numpy(np.ascontiguousarray(views + NOISE * rng.standard_normal(views.shape, np.float32)))


def count_members(split: Split, change: Change, distance: type[RecordDistance], seed: int) -> float:
    """Return how many of those that the attack suspects most are members, on average over the folds."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([split.members, split.nonmembers])
    rows = min(ROWS, len(values) // 3)
    parts = np.split(values[rng.permutation(len(values))[: 3 * rows]], 3)
    members, nonmembers = (encode(read(part, split.schema), split.schema) for part in parts[:2])
    rarest = np.argsort(-compute_rarity(members))[:COPIED]
    ((_, column),) = split.schema.columns.items()
    low, high = (0, 255) if column.type == "image" else (0, 10)
    copies = np.clip(change(parts[0][rarest].astype(np.float64), rng), low, high).astype(parts[0].dtype)
    synthetic = encode(read(np.concatenate([copies, parts[2][COPIED:]]), split.schema), split.schema)
    held = ThreatModel({Knowledge.SYNTHETIC: synthetic})
    inputs = AuditInputs("copies", None, split.schema, make_sample(members), make_sample(nonmembers), held, ())
    with mock.patch.object(density_ratio, "RecordDistance", distance):
        scores = [each.drop_unscored() for each in score_folds(RareDensityRatio(), make_folds(inputs, seed), seed)]
    return float(np.mean([each.members[np.argsort(-each.values)[:GUESSES]].sum() for each in scores]))


def make_sample(records: Records) -> Sample:
    places = np.arange(len(records))
    return Sample("records", records, places, places, frozenset(), len(records))


def measure_case(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the figures of every change of one kind of records."""
    load, changes = CASES[name]
    split, seeds = load(500 if options.quick else 10**6), range(1 if options.quick else options.splits)
    peers: dict[str, type[RecordDistance]] = {"components": ComponentDistance, "aligned": AlignedDistance}
    if options.network and name != "series":
        peers["network"] = NetworkDistance
    distances: list[type[RecordDistance]] = [RecordDistance, *peers.values()]
    for change in changes:
        found, *others = (
            float(np.mean([count_members(split, changes[change], distance, seed) for seed in seeds]))
            for distance in distances
        )
        for peer, other in zip(peers, others, strict=True):
            yield Row(f"{name}, {change}", found, "of 20", peer, other)


def extend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--splits", type=int, default=3, help="how many random splits to average over")
    parser.add_argument("--network", action="store_true", help="compare with the features of a network too")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))


def main() -> None:
    options = parse_arguments(__doc__ or "", extend)
    if not (DATA / "swiss_smartmeter_daily96.npz").exists():
        print("set SUNDOG_DATA to the folder of the data; there is nothing to measure without it")
        publish([], options)
        return
    rows = []
    for name in options.only:
        for row in measure_case(name, options):
            print(f"{row.name}: {row.value:.3g} with ours, {row.peer_value:.3g} with {row.peer}", flush=True)
            rows.append(row)
    publish(rows, options)


if __name__ == "__main__":
    main()
