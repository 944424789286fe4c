"""Validation of the image scores: real MNIST images, with and without noise.

The Inception score of real test images is beside that of the paper (Zhang, Ji and Wang 2018, Table 2: 9.96), the
Fréchet distance of two halves of them beside the one without a jackknife. Noise of increasing standard deviation must
make both worse: the peers are the score without noise, and the distance of images with independent pixels.

    SUNDOG_DATA=../shared/data python benchmarks/image_scores.py [--quick] [--json FILE]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from report import DATA, Row, parse_arguments, publish
from sklearn.datasets import load_digits

import sundog
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.evaluation.comparison import Comparison, split
from sundog.evaluation.images.feature_extractor import fit_feature_extractor
from sundog.evaluation.images.image_classifiers import Images
from sundog.evaluation.images.image_sample import find_images
from sundog.evaluation.images.image_scores import compute_frechet_distance, compute_inception_score, measure_frechet

SCHEMA = Path(__file__).parent.parent / "examples" / "mnist.schema.yaml"
PAPER = 9.96
NOISE = (0.1, 0.2, 0.4)  # standard deviation; black is 0, white is 1


def load_mnist(part: str) -> Records:
    schema = sundog.Schema.load(SCHEMA)
    images, labels = (DATA / f"mnist-{part}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1"))
    return encode(read(images, schema, labels=labels), schema)


def load_small_digits() -> tuple[Records, Records]:
    found = load_digits()
    image = {"type": "image", "shape": [8, 8], "levels": 17}
    label = {"type": "categorical", "values": list(range(10))}
    schema = sundog.Schema.from_dict({"columns": {"image": image, "label": label}})
    codes = {"image": found.images.astype(np.uint8), "label": found.target.astype(np.uint8)}
    return split(Records(schema, codes, len(found.target)), 1 / 3, np.random.default_rng(0))


def add_noise(images: Images, level: float) -> Images:
    noise = np.random.default_rng(1).standard_normal(images.shape, np.float32)
    return np.clip(images + np.float32(level) * noise, 0, 1)


def main() -> None:
    options = parse_arguments(__doc__ or "")
    if options.quick or not (DATA / "mnist-train-images-idx3-ubyte.gz").exists():
        print("on the digits of scikit-learn; set SUNDOG_DATA for MNIST")
        train, test = load_small_digits()
    else:
        train, test = load_mnist("train"), load_mnist("t10k")
    comparison = Comparison(train, test, train, test, target="label")
    view, rng = find_images(comparison, "image"), np.random.default_rng(0)
    judge = fit_feature_extractor(comparison, view)
    assert judge is not None and judge.predict_probabilities is not None  # noqa: PT018
    real = view.sample(test, len(test), rng).pixels
    dealt = view.sample(comparison.build_floor().synthetic, len(test), rng).pixels
    half, other = np.array_split(real, 2)

    score = compute_inception_score(judge.predict_probabilities(real))
    seen = judge.extract_features(half)
    halves = measure_frechet(seen, judge.extract_features(other), rng).value
    worst = measure_frechet(seen, judge.extract_features(dealt), rng).value
    rows = [
        Row("Inception, real", score, "", "paper, MNIST", PAPER),
        Row(
            "Fréchet, two halves",
            halves,
            "",
            "without a jackknife",
            compute_frechet_distance(seen, judge.extract_features(other)),
        ),
    ]
    for level in NOISE:
        images = add_noise(other, level)
        spoiled = compute_inception_score(judge.predict_probabilities(add_noise(real, level)))
        rows.append(Row(f"Inception, noise {level}", spoiled, "", "without noise", score))
        distance = measure_frechet(seen, judge.extract_features(images), rng).value
        rows.append(Row(f"Fréchet, noise {level}", distance, "", "pixels dealt at random", worst))
    publish(rows, options)


if __name__ == "__main__":
    main()
