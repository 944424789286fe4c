"""Small classifiers of images: logistic regression, one hidden layer, a convolutional network.

Images are float arrays (count, channels, height, width) with pixels in 0 … 1. The number of steps is fixed in advance
for any data: nothing is chosen by looking at results. A seed fixes everything, and the state of torch's own generator
is preserved.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from sundog.evaluation.measure import Measure, measure_share
from sundog.training.speed.threads import use_one_thread

Images = NDArray[np.float32]
Labels = NDArray[np.int64]
Kind = Literal["logistic", "mlp", "cnn"]

BATCH = 128
STEPS = 400
CHECKS = 8  # of the loss on watched images
LEARNING_RATE = 1e-2
FEATURES = 128
SLOPE = 0.1  # below zero, so that no unit dies where the first labels are all equal
SIDE = 16  # of the grid that is convolved
_CHUNK = 1000  # images at a time in prediction


class ImageNetwork(nn.Module):
    """A body that computes features of standardised images, and a linear layer over the features."""

    def __init__(self, body: nn.Sequential, features: int, classes: int, *, mean: float, deviation: float) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(features, classes)
        self.mean, self.deviation = mean, deviation or 1.0

    def extract_features(self, images: Tensor) -> Tensor:
        """Return the input of the last layer."""
        features: Tensor = self.body((images - self.mean) / self.deviation)
        return features

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of the classes."""
        logits: Tensor = self.head(self.extract_features(images))
        return logits


@dataclass(frozen=True)
class Classifier:
    """A trained network, for arrays."""

    network: ImageNetwork

    def extract_features(self, images: Images) -> Images:
        """Return the input of the last layer, one row per image."""
        return self._apply(self.network.extract_features, images)

    def compute_logits(self, images: Images) -> Images:
        """Return the logits of the classes, one row per image."""
        return self._apply(self.network, images)

    def predict_probabilities(self, images: Images) -> NDArray[np.float64]:
        """Return the probabilities of the classes, one row per image."""
        logits = torch.from_numpy(self.compute_logits(images)).double()
        return np.asarray(logits.softmax(dim=1))

    def predict(self, images: Images) -> Labels:
        """Return the most probable class of each image."""
        return np.asarray(self.compute_logits(images).argmax(axis=1), np.int64)

    @torch.no_grad()
    def _apply(self, function: Callable[[Tensor], Tensor], images: Images) -> Images:
        starts = range(0, max(1, len(images)), _CHUNK)
        return np.concatenate([function(torch.from_numpy(images[start : start + _CHUNK])).numpy() for start in starts])


def measure_accuracy(classifier: Classifier, images: Images, labels: Labels) -> Measure:
    """Return the share of correctly classified images."""
    return measure_share(int((classifier.predict(images) == labels).sum()), len(labels))


def build_network(kind: Kind, images: Images, classes: int, seed: int) -> ImageNetwork:
    """Return an untrained network for images of this shape.

    >>> network = build_network("logistic", np.zeros((20, 1, 8, 8), np.float32), classes=10, seed=0)
    >>> sum(weights.numel() for weights in network.parameters())
    650
    """
    shape, pixels = images.shape[1:], int(np.prod(images.shape[1:]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "logistic":
            body, features = nn.Sequential(nn.Flatten()), pixels
        elif kind == "mlp":
            body, features = nn.Sequential(nn.Flatten(), nn.Linear(pixels, FEATURES), nn.LeakyReLU(SLOPE)), FEATURES
        else:
            body, features = _build_convolutions(shape), FEATURES
        return ImageNetwork(body, features, classes, mean=float(images.mean()), deviation=float(images.std()))


def _build_convolutions(shape: tuple[int, ...]) -> nn.Sequential:
    """Return two convolutions and a dense layer. Pixel blocks of large images become channels, for a constant cost."""
    channels, height, width = shape
    block = -(-max(height, width) // SIDE)
    rows, columns = -(-height // block), -(-width // block)
    places = -(-rows // 4) * -(-columns // 4)  # after two halvings
    network = nn.Sequential(
        nn.ZeroPad2d((0, columns * block - width, 0, rows * block - height)),
        _PixelBlocks(block),
        *(nn.Conv2d(channels * block**2, 32, 3, padding=1), nn.LeakyReLU(SLOPE), nn.MaxPool2d(2, ceil_mode=True)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.LeakyReLU(SLOPE), nn.MaxPool2d(2, ceil_mode=True)),
        *(nn.Flatten(), nn.Linear(64 * places, FEATURES), nn.LeakyReLU(SLOPE)),
    )
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]  # a third faster


class _PixelBlocks(nn.Module):
    """Turns the pixels of each block into channels, as `nn.PixelUnshuffle`, but also for empty batches."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, images: Tensor) -> Tensor:
        count, channels, height, width = images.shape
        side, rows, columns = self.side, height // self.side, width // self.side
        blocks = images.reshape(count, channels, rows, side, columns, side).permute(0, 1, 3, 5, 2, 4)
        return blocks.reshape(count, channels * side**2, rows, columns)


def train_classifier(
    kind: Kind,
    images: Images,
    labels: Labels,
    *,
    classes: int,
    seed: int,
    steps: int = STEPS,
    watched: tuple[Images, Labels] | None = None,
) -> Classifier:
    """Train for a fixed number of steps and return the last weights, or the best ones on `watched`.

    >>> images = np.zeros((40, 1, 4, 4), np.float32)
    >>> images[20:] = 1
    >>> labels = np.repeat([0, 1], 20)
    >>> classifier = train_classifier("logistic", images, labels, classes=2, seed=0, steps=50)
    >>> measure_accuracy(classifier, images, labels).value
    1.0

    Args:
        kind: logistic, mlp or cnn.
        images: the training images.
        labels: from 0 to `classes` - 1.
        classes: the number of classes; some may not occur.
        seed: fixes the initial weights and the order of images.
        steps: the number of gradient steps.
        watched: further images and labels; the weights with the lowest loss on them are returned.
    """
    network = build_network(kind, images, classes, seed)
    descent = AdamDescent(network, steps)
    best, least = network, np.inf
    with use_one_thread():
        for step, rows in enumerate(draw_batches(len(images), steps, np.random.default_rng(seed)), start=1):
            descent.step(cross_entropy(network(torch.from_numpy(images[rows])), torch.from_numpy(labels[rows])))
            if watched is not None and step % max(1, steps // CHECKS) == 0:
                loss = _compute_loss(network, *watched)
                if loss < least:
                    best, least = copy.deepcopy(network), loss
    return Classifier(best)


def _compute_loss(network: ImageNetwork, images: Images, labels: Labels) -> float:
    logits = torch.from_numpy(Classifier(network).compute_logits(images))
    return float(cross_entropy(logits, torch.from_numpy(labels)))


class AdamDescent:
    """Adam with a learning rate that rises over a tenth of the steps and then decays to zero."""

    def __init__(self, network: nn.Module, steps: int) -> None:
        # With 0.999 in place of 0.95 the network needs about twice the steps.
        self.optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), fused=True)
        rise = max(1, steps // 10)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min((step + 1) / rise, 1 - step / steps)
        )

    def step(self, loss: Tensor) -> None:
        """Take one step down the gradient of a loss."""
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.schedule.step()


def draw_batches(count: int, steps: int, rng: np.random.Generator, size: int = BATCH) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of batches, taken from one permutation after the other.

    >>> [rows.tolist() for rows in draw_batches(3, 2, np.random.default_rng(0), size=4)]
    [[2, 0, 1, 2], [1, 0, 2, 0]]
    """
    order = np.empty(0, np.int64)
    for _ in range(steps):
        while len(order) < size:
            order = np.concatenate([order, rng.permutation(count)])
        rows, order = np.split(order, [size])
        yield rows
