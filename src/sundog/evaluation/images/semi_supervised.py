"""Semi-supervised use of a release: few labelled public images, and any number of generated ones without labels.

1. `train_supervised` learns from the labelled images alone. 2. `train_two_classifiers` is Algorithm 4 of Zhang, Ji and
Wang (2018): a classifier of images and a classifier of images and their codes teach each other. The paper finds it
worse than 1 on MNIST. 3. `train_fixmatch` is FixMatch (Sohn et al. 2020): where a classifier is sure about a generated
image, it learns to predict the same class for the distorted image. `compare_methods` measures all three, and 1 with
distorted images as the baseline that uses no generated ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import affine_grid, cross_entropy, grid_sample

from sundog.evaluation.comparison import draw_seed
from sundog.evaluation.images.image_classifiers import (
    BATCH,
    FEATURES,
    SLOPE,
    AdamDescent,
    Classifier,
    Images,
    Labels,
    build_network,
    draw_batches,
    measure_accuracy,
)
from sundog.evaluation.measure import Measures, Metric

Codes = NDArray[np.float32]
Generate = Callable[[int, np.random.Generator], tuple[Codes, Images]]
"""Draws the given number of codes (count, width) and their images (count, channels, height, width)."""

STEPS = 600
SHARE = 0.2  # of generated images in the batches of the paper
SURE = 0.95  # the probability from which a label is used
WEAK, STRONG = 0.5, 1.5  # distortions

METRICS = {
    "semi_supervised.supervised": Metric(
        "labelled images alone",
        "high",
        "The share of test images that a network trained on the labelled images classifies correctly.",
    ),
    "semi_supervised.distorted": Metric(
        "labelled images alone, distorted",
        "high",
        "The same when the labelled images are distorted a little each time: the baseline without generated images.",
    ),
    "semi_supervised.two_classifiers": Metric(
        "two classifiers",
        "high",
        "The same after also training on generated images, labelled by a second network that sees their codes "
        "(Algorithm 4 of dp-GAN).",
    ),
    "semi_supervised.consistent": Metric(
        "one consistent classifier",
        "high",
        "The same after also training on generated images, to predict the same class when distorted (FixMatch).",
    ),
}


def compare_methods(
    images: Images,
    labels: Labels,
    generate: Generate,
    *,
    test: tuple[Images, Labels],
    classes: int,
    rng: np.random.Generator,
    steps: int = STEPS,
) -> Measures:
    """Return the test accuracy of every method."""
    plain, distorting, two, one = rng.spawn(4)
    found = {
        "supervised": train_supervised(images, labels, classes=classes, rng=plain, steps=steps),
        "distorted": train_supervised(images, labels, classes=classes, rng=distorting, steps=steps, distortion=1.0),
        "two_classifiers": train_two_classifiers(images, labels, generate, classes=classes, rng=two, steps=steps)[0],
        "consistent": train_fixmatch(images, labels, generate, classes=classes, rng=one, steps=steps),
    }
    return {f"semi_supervised.{name}": measure_accuracy(classifier, *test) for name, classifier in found.items()}


def train_supervised(
    images: Images,
    labels: Labels,
    *,
    classes: int,
    rng: np.random.Generator,
    steps: int = STEPS,
    distortion: float = 0.0,
) -> Classifier:
    """Train on labelled images alone, as they are or distorted."""
    network = build_network("cnn", images, classes, draw_seed(rng))
    descent = AdamDescent(network, steps)
    for rows in draw_batches(len(images), steps, rng):
        shown = distort(torch.from_numpy(images[rows]), distortion, rng)
        descent.step(cross_entropy(network(shown), torch.from_numpy(labels[rows])))
    return Classifier(network)


# --- two classifiers ----------------------------------------------------------------------------------------------


class CodeNetwork(nn.Module):
    """C₂: classifies an image and its code together."""

    def __init__(self, images: Images, codes: int, classes: int, seed: int) -> None:
        super().__init__()
        self.image = build_network("cnn", images, FEATURES, seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            both, classified = nn.Linear(FEATURES + codes, FEATURES), nn.Linear(FEATURES, classes)
        self.head = nn.Sequential(both, nn.LeakyReLU(SLOPE), classified)

    def forward(self, codes: Tensor, images: Tensor) -> Tensor:
        """Return the logits of the classes."""
        logits: Tensor = self.head(torch.cat([self.image(images), codes], dim=1))
        return logits


def train_two_classifiers(
    images: Images,
    labels: Labels,
    generate: Generate,
    *,
    classes: int,
    rng: np.random.Generator,
    steps: int = STEPS,
    share: float = SHARE,
) -> tuple[Classifier, CodeNetwork]:
    """Train Algorithm 4: C₁ labels generated images for C₂, and C₂, which also sees their codes, labels others for C₁.

    Args:
        images: public labelled images.
        labels: their labels.
        generate: draws codes and their images.
        classes: the number of classes.
        rng: fixes all random draws.
        steps: of both classifiers.
        share: of generated images in the last batches of C₁ (p_s); it rises from 0, see `compute_ramp`.
    """
    first = build_network("cnn", images, classes, draw_seed(rng))
    second = CodeNetwork(images, generate(1, rng)[0].shape[1], classes, draw_seed(rng))
    teach_first, teach_second = AdamDescent(first, steps), AdamDescent(second, steps)
    for step, rows in enumerate(draw_batches(len(images), steps, rng)):
        count = round(share * compute_ramp(step / steps) * BATCH)
        codes, drawn = map(torch.from_numpy, generate(BATCH + count, rng))
        teach_second.step(cross_entropy(second(codes[:BATCH], drawn[:BATCH]), _predict(first, drawn[:BATCH])))
        shown = torch.cat([torch.from_numpy(images[rows[count:]]), drawn[BATCH:]])
        answers = torch.cat([torch.from_numpy(labels[rows[count:]]), _predict(second, codes[BATCH:], drawn[BATCH:])])
        teach_first.step(cross_entropy(first(shown), answers))
    return Classifier(first), second


@torch.no_grad()
def _predict(network: nn.Module, *seen: Tensor) -> Tensor:
    answers: Tensor = network(*seen).argmax(dim=1)
    return answers


def compute_ramp(done: float) -> float:
    """Return the used fraction of the share of generated images: 0 in the first third of all steps, 1 in the last.

    >>> [round(compute_ramp(done), 2) for done in (0, 1 / 3, 0.5, 2 / 3, 1)]
    [0.0, 0.0, 0.5, 1.0, 1.0]
    """
    return min(1.0, max(0.0, 3 * done - 1))


# --- FixMatch ------------------------------------------------------------------------------------------------------


def train_fixmatch(
    images: Images,
    labels: Labels,
    generate: Generate,
    *,
    classes: int,
    rng: np.random.Generator,
    steps: int = STEPS,
) -> Classifier:
    """Train FixMatch: confident labels of generated images become targets for the distorted images."""
    network = build_network("cnn", images, classes, draw_seed(rng))
    descent = AdamDescent(network, steps)
    for step, rows in enumerate(draw_batches(len(images), steps, rng)):
        drawn = torch.from_numpy(generate(BATCH, rng)[1])
        with torch.no_grad():
            sure, said = network(distort(drawn, WEAK, rng)).softmax(dim=1).max(dim=1)
        losses = cross_entropy(network(distort(drawn, STRONG, rng)), said, reduction="none")
        known = distort(torch.from_numpy(images[rows]), WEAK, rng)
        loss = cross_entropy(network(known), torch.from_numpy(labels[rows]))
        descent.step(loss + compute_ramp(step / steps) * (losses * (sure > SURE)).mean())
    return Classifier(network)


def distort(images: Tensor, strength: float, rng: np.random.Generator) -> Tensor:
    """Return the images rotated, stretched and shifted a little, each differently.

    >>> distort(torch.zeros(2, 1, 8, 8), 1.0, np.random.default_rng(0)).shape
    torch.Size([2, 1, 8, 8])
    """
    count = len(images)
    angle = strength * rng.uniform(-0.25, 0.25, count)  # in radians
    stretch = np.exp(strength * rng.uniform(-0.15, 0.15, (count, 2)))
    shift = strength * rng.uniform(-0.2, 0.2, (count, 2))  # an image goes from -1 to 1
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]).transpose(2, 0, 1)
    maps = np.concatenate([turned * stretch[:, :, None], shift[:, :, None]], axis=2)
    grid = affine_grid(torch.from_numpy(maps.astype(np.float32)), list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode="border", align_corners=False)
