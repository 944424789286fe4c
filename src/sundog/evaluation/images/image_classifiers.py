"""Small classifiers of images: a logistic regression, one hidden layer, a convolutional network.

Images are float arrays (count, channels, height, width) with pixels in 0 … 1. The number of steps is fixed beforehand,
whatever the data: nothing is chosen by looking at results, and small data takes no less time than large. A seed fixes
everything, and the state of torch's own generator is left as it was.
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
from sundog.training.speed.threads import one_thread

Images = NDArray[np.float32]
Labels = NDArray[np.int64]
Kind = Literal["logistic", "mlp", "cnn"]

BATCH = 128
STEPS = 400
CHECKS = 8  # of a training that is stopped early
LEARNING_RATE = 1e-2
FEATURES = 128
SLOPE = 0.1  # below zero, so that no network can die of labels that are all alike at first
SIDE = 16  # places of an image, when it is convolved
_CHUNK = 1000  # images at a time, when nothing is learned


class Network(nn.Module):
    """Features of images, by a body that sees them with mean 0 and variance 1, and a linear layer over the features."""

    def __init__(self, body: nn.Sequential, features: int, classes: int, *, mean: float, deviation: float) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(features, classes)
        self.mean, self.deviation = mean, deviation or 1.0

    def features(self, images: Tensor) -> Tensor:
        """What the last layer sees."""
        features: Tensor = self.body((images - self.mean) / self.deviation)
        return features

    def forward(self, images: Tensor) -> Tensor:
        """The logits of the classes."""
        logits: Tensor = self.head(self.features(images))
        return logits


@dataclass(frozen=True)
class Classifier:
    """A network that has learned, for arrays."""

    network: Network

    def features(self, images: Images) -> Images:
        """What the last layer sees, one row an image."""
        return self._of(self.network.features, images)

    def logits(self, images: Images) -> Images:
        """The logits of the classes, one row an image."""
        return self._of(self.network, images)

    def probabilities(self, images: Images) -> NDArray[np.float64]:
        """Of the classes, one row an image."""
        logits = torch.from_numpy(self.logits(images)).double()
        return np.asarray(logits.softmax(dim=1))

    def predict(self, images: Images) -> Labels:
        """The likeliest class of each image."""
        return np.asarray(self.logits(images).argmax(axis=1), np.int64)

    @torch.no_grad()
    def _of(self, function: Callable[[Tensor], Tensor], images: Images) -> Images:
        starts = range(0, max(1, len(images)), _CHUNK)
        return np.concatenate([function(torch.from_numpy(images[start : start + _CHUNK])).numpy() for start in starts])


def measure_accuracy(classifier: Classifier, images: Images, labels: Labels) -> Measure:
    """The share of images that are given their own label."""
    return measure_share(int((classifier.predict(images) == labels).sum()), len(labels))


def build_network(kind: Kind, images: Images, classes: int, seed: int) -> Network:
    """A network for images such as these, that has learned nothing yet.

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
        return Network(body, features, classes, mean=float(images.mean()), deviation=float(images.std()))


def _build_convolutions(shape: tuple[int, ...]) -> nn.Sequential:
    """Two convolutions and a layer over them. Blocks of pixels of large images become channels: all cost the same."""
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
    """Makes channels of the pixels of each block, as `nn.PixelUnshuffle` does, but for no images at all too."""

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
    """Trains for a fixed number of steps, and takes the last weights or the best of some.

    >>> images = np.zeros((40, 1, 4, 4), np.float32)
    >>> images[20:] = 1
    >>> labels = np.repeat([0, 1], 20)
    >>> classifier = train_classifier("logistic", images, labels, classes=2, seed=0, steps=50)
    >>> measure_accuracy(classifier, images, labels).value
    1.0

    Args:
        kind: logistic, mlp or cnn.
        images: to learn from.
        labels: from 0 to `classes` - 1.
        classes: how many there are, in the images or not.
        seed: of the first weights and of the order of images.
        steps: of gradient descent.
        watched: other images and their labels; the weights with the least loss on them are taken.
    """
    network = build_network(kind, images, classes, seed)
    descent = AdamDescent(network, steps)
    best, least = network, np.inf
    with one_thread():
        for step, rows in enumerate(draw_batches(len(images), steps, np.random.default_rng(seed)), start=1):
            descent.step(cross_entropy(network(torch.from_numpy(images[rows])), torch.from_numpy(labels[rows])))
            if watched is not None and step % max(1, steps // CHECKS) == 0:
                loss = _compute_loss(network, *watched)
                if loss < least:
                    best, least = copy.deepcopy(network), loss
    return Classifier(best)


def _compute_loss(network: Network, images: Images, labels: Labels) -> float:
    logits = torch.from_numpy(Classifier(network).logits(images))
    return float(cross_entropy(logits, torch.from_numpy(labels)))


class AdamDescent:
    """Steps of Adam whose size rises for a tenth of them, and then falls to nothing."""

    def __init__(self, network: nn.Module, steps: int) -> None:
        # A short memory of squared gradients: with 0.999 the same network needs about twice the steps.
        self.optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), fused=True)
        rise = max(1, steps // 10)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min((step + 1) / rise, 1 - step / steps)
        )

    def step(self, loss: Tensor) -> None:
        """One step down."""
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.schedule.step()


def draw_batches(count: int, steps: int, rng: np.random.Generator, size: int = BATCH) -> Iterator[NDArray[np.int64]]:
    """The places of so many batches: all of one permutation, then of the next.

    >>> [rows.tolist() for rows in draw_batches(3, 2, np.random.default_rng(0), size=4)]
    [[2, 0, 1, 2], [1, 0, 2, 0]]
    """
    order = np.empty(0, np.int64)
    for _ in range(steps):
        while len(order) < size:
            order = np.concatenate([order, rng.permutation(count)])
        rows, order = np.split(order, [size])
        yield rows
