"""Evaluation of images: scores by a classifier and a discriminator, and classifiers trained on synthetic images.

1. A feature extractor, a convolutional network, learns the classes of real images, once for all records compared. 2.
Its predictions on synthetic images give the Inception score, and its features the Fréchet distance to real test images.
3. A discriminator learns to distinguish real from synthetic images. 4. Three classifiers are trained on synthetic
images alone and tested on real ones. 5. The nearest training images of synthetic ones show whether they are copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.evaluation.bootstrap import bootstrap_rows
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.images import image_plots
from sundog.evaluation.images.feature_extractor import COMPONENTS, fit_feature_extractor
from sundog.evaluation.images.image_classifiers import Images, Kind, train_classifier
from sundog.evaluation.images.image_sample import FEWEST, ImageSample, find_images
from sundog.evaluation.images.image_scores import (
    compute_discriminator_score,
    compute_inception_score,
    measure_frechet,
    measure_jensen_shannon,
)
from sundog.evaluation.measure import Measure, Measures, Metric, compute_bonferroni_quantile, measure_share
from sundog.evaluation.section import Section

MOST = 10_000  # images of each kind are used
NEIGHBOURS = 500  # images whose nearest training images are found
PAIRS = 8  # pairs to show
GOOD = 0.9  # the accuracy below which the feature extractor gives a note

SHOWS_REAL = "Pictures of images show real ones too: they are as private as the data."
NO_CLASSES = (
    "No target gives the classes of images: there is no Inception score, no classifier, and the Fréchet distance is "
    f"that of {COMPONENTS} principal components of real images."
)
POOR_JUDGE = (
    "The network that judges images classifies {share:.0%} of the real test images correctly: it learns too little "
    "from the real images for the Inception score to be meaningful."
)
DOWNSTREAM: dict[Kind, str] = {
    "logistic": "logistic regression",
    "mlp": "neural network",
    "cnn": "convolutional network",
}
METRICS = {
    "images.inception_score": Metric(
        "Inception score",
        "high",
        "How confident a classifier of real images is about each synthetic one, and how evenly it predicts the "
        "classes: from 1 to the number of classes.",
    ),
    "images.frechet": Metric(
        "Fréchet distance",
        "low",
        "How far the features of synthetic images are from those of real test images: 0 for the same distribution, "
        "1 for one average image over and over.",
        ideal=0.0,
    ),
    "images.jensen_shannon": Metric(
        "Jensen-Shannon divergence",
        "low",
        "How well a network can distinguish unseen synthetic images from real ones: 0 not at all, 0.69 (ln 2) always.",
        ideal=0.0,
    ),
    **{
        f"images.downstream.{kind}": Metric(
            f"accuracy of a {what}",
            "high",
            f"The share of real test images that a {what} trained on synthetic ones classifies correctly.",
        )
        for kind, what in DOWNSTREAM.items()
    },
    "images.downstream.worst_class": Metric(
        "accuracy of the worst class",
        "high",
        "The share of real test images of the worst class that a convolutional network trained on synthetic ones "
        "classifies correctly; the interval allows for the number of classes.",
    ),
}


def evaluate_images(comparison: Comparison, name: str) -> Section:
    """Compare images; with a target that has classes, also by the classifiers trained on them.

    Args:
        comparison: the records.
        name: the image column.
    """
    title = f"Images: {name}"
    view = find_images(comparison, name)
    real = view.sample(comparison.test, MOST, comparison.make_rng("images.test"))
    synthetic = view.sample(comparison.synthetic, MOST, comparison.make_rng("images.synthetic"))
    extractor = fit_feature_extractor(comparison, view)
    if extractor is None or min(len(real), len(synthetic)) < FEWEST:
        note = f"Column {name!r} has too few images: {FEWEST} of each kind are needed to compare them."
        return Section(title, {}, {}, notes=[note])

    seen = extractor.extract_features(real.pixels), extractor.extract_features(synthetic.pixels)
    logits = _discriminate(comparison, real.pixels, synthetic.pixels)
    known = view.sample(comparison.train, len(comparison.train), comparison.make_rng("images.train"))
    near = _find_nearest_images(comparison, known.pixels, real.pixels, synthetic.pixels)
    measures: Measures = {
        "images.frechet": measure_frechet(*seen, comparison.make_rng("images.frechet")),
        "images.jensen_shannon": measure_jensen_shannon(*logits),
    }
    details: dict[str, Any] = {
        "images.discriminator_score": compute_discriminator_score(logits[1]),
        "images.nearest_ratio": near.ratio.to_dict(),
    }
    pictures = [
        image_plots.plot_grids(synthetic, real, view.classes),
        image_plots.plot_nearest_pairs(near.synthetic, near.real, out_of=near.out_of, ratio=near.ratio.value),
    ]
    notes = [SHOWS_REAL] if view.classes else [SHOWS_REAL, NO_CLASSES]
    if extractor.predict_probabilities is not None:
        judged = (extractor.predict_probabilities(each.pixels) for each in (real, synthetic))
        classes = _evaluate_classes(comparison, view.classes, real, synthetic, *judged)
        measures |= classes.measures
        details |= classes.details
        pictures += classes.pictures
        notes += classes.notes
    metrics = {key: metric for key, metric in METRICS.items() if key in measures}
    return Section(title, {key: measures[key] for key in metrics}, metrics, details, pictures, notes)


def _evaluate_classes(
    comparison: Comparison,
    classes: Sequence[str],
    real: ImageSample,
    synthetic: ImageSample,
    judged_real: NDArray[Any],
    judged_synthetic: NDArray[Any],
) -> Section:
    """Compare images by their classes, given the class probabilities by the feature extractor."""
    right = judged_real.argmax(axis=1) == real.labels
    measures = _score_inception(comparison, judged_synthetic)
    confusion = {kind: _count_confusion(comparison, kind, real, synthetic, len(classes)) for kind in DOWNSTREAM}
    worst, scores = _score_classifiers(confusion)
    return Section(
        title="Classes",
        measures=measures | scores,
        metrics=METRICS,
        details={
            "images.judge_accuracy": measure_share(int(right.sum()), len(right)).to_dict(),
            "images.worst_class": str(classes[worst]),
            "images.confusion": confusion["cnn"].tolist(),
        },
        pictures=[image_plots.plot_confusion(confusion["cnn"], classes)],
        notes=[POOR_JUDGE.format(share=right.mean())] if right.mean() < GOOD else [],
    )


def _score_inception(comparison: Comparison, probabilities: NDArray[Any]) -> Measures:
    rng, (count, classes) = comparison.make_rng("images.inception_score"), probabilities.shape
    score = bootstrap_rows(
        lambda rows: compute_inception_score(probabilities[rows]), count, rng, lowest=1.0, highest=float(classes)
    )
    return {"images.inception_score": score}


def _discriminate(comparison: Comparison, real: Images, synthetic: Images) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return logits of being real for a fifth of the real and synthetic images, unseen by the discriminator."""
    count = min(len(real), len(synthetic))
    places = np.split(np.arange(count), [round(0.6 * count), round(0.8 * count)])  # training, early stopping, test
    learned, watched, tested = (
        (np.concatenate([synthetic[rows], real[rows]]), np.repeat([0, 1], len(rows))) for rows in places
    )
    network = train_classifier(
        "cnn", *learned, classes=2, seed=comparison.draw_seed("images.discriminator"), watched=watched
    )
    synthetic_logits, real_logits = np.split(np.diff(network.compute_logits(tested[0]))[:, 0], 2)
    return real_logits, synthetic_logits


def _count_confusion(
    comparison: Comparison, kind: Kind, real: ImageSample, synthetic: ImageSample, classes: int
) -> NDArray[np.int64]:
    """Return real images by true and predicted class, for a classifier trained on synthetic images."""
    network = train_classifier(
        kind, synthetic.pixels, synthetic.labels, classes=classes, seed=comparison.draw_seed(f"images.{kind}")
    )
    cells = real.labels * classes + network.predict(real.pixels)
    return np.bincount(cells, minlength=classes**2).reshape(classes, classes)


def _score_classifiers(confusion: Mapping[Kind, NDArray[np.int64]]) -> tuple[int, Measures]:
    """Return the worst class of the convolutional network, and the accuracies of all classifiers."""
    worst_class, worst = _find_worst_class(confusion["cnn"])
    accuracies = {
        f"images.downstream.{kind}": measure_share(int(np.trace(counts)), int(counts.sum()))
        for kind, counts in confusion.items()
    }
    return worst, {**accuracies, "images.downstream.worst_class": worst_class}


def _find_worst_class(confusion: NDArray[np.int64]) -> tuple[Measure, int]:
    """Return the accuracy of the worst class, with an interval that allows for all classes, and its index."""
    totals = confusion.sum(axis=1)
    there = np.flatnonzero(totals)
    z = compute_bonferroni_quantile(len(there))
    found = [measure_share(int(confusion[place, place]), int(totals[place]), z=z) for place in there]
    least = Measure(*(min(getattr(each, end) for each in found) for end in ("value", "low", "high")))
    return least, int(there[np.argmin([each.value for each in found])])


@dataclass(frozen=True)
class _NearestImages:
    """Synthetic images nearest to a training image, those training images, and the ratio of median distances."""

    synthetic: Images
    real: Images
    out_of: int
    ratio: Measure


def _find_nearest_images(comparison: Comparison, known: Images, real: Images, synthetic: Images) -> _NearestImages:
    count = min(NEIGHBOURS, len(real), len(synthetic))
    (of_synthetic, neighbours), (of_real, _) = (_measure_nearest(each[:count], known) for each in (synthetic, real))

    def compute_ratio(rows: NDArray[np.int64]) -> float:
        usual = float(np.median(of_real[rows]))
        return float(np.median(of_synthetic[rows])) / usual if usual else float("nan")

    closest = np.argsort(of_synthetic)[:PAIRS]
    measured = bootstrap_rows(compute_ratio, count, comparison.make_rng("images.nearest"), lowest=0.0)
    return _NearestImages(synthetic[closest], known[neighbours[closest]], count, measured)


def _measure_nearest(some: Images, known: Images) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the Euclidean distance of each image to the nearest known one, and its index."""
    from sklearn.metrics import pairwise_distances_argmin_min

    flat, others = some.reshape(len(some), -1), known.reshape(len(known), -1)
    places, _ = pairwise_distances_argmin_min(flat, others)  # its distances are rounded: not 0 for copies
    return np.linalg.norm(flat - others[places], axis=1), places
