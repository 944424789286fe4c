"""The downstream classifier by which private image generators are compared since Chen et al. (2020).

Two convolutions and dropout, ten epochs; the best epoch is chosen on held-out generated images. Real images are used
only for the final test.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy

EPOCHS, BATCH, RATE = 10, 256, 1e-3
APART = 12  # one image in 12 is held out

Pixels = NDArray[np.float32]  # (count, channels, height, width), from 0 to 1
Labels = NDArray[np.int64]


def train_and_test(generated: tuple[Pixels, Labels], test: tuple[Pixels, Labels], *, seed: int, device: str) -> float:
    """Return the accuracy on test images of a network trained on generated ones."""
    images, labels = (torch.from_numpy(each).to(device) for each in generated)
    fewer = len(images) // APART
    with torch.random.fork_rng([device] if device == "cuda" else []):
        torch.manual_seed(seed)
        network = _build_network(images.shape[1:], int(labels.max()) + 1).to(device)
        optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
        best, weights = -1.0, network.state_dict()
        for _ in range(EPOCHS):
            network.train()
            for rows in torch.split(torch.randperm(len(images) - fewer, device=device) + fewer, BATCH):
                optimizer.zero_grad()
                cross_entropy(network(images[rows]), labels[rows]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            chosen = _measure_accuracy(network, images[:fewer], labels[:fewer])
            if chosen > best:
                best, weights = chosen, copy.deepcopy(network.state_dict())
    network.load_state_dict(weights)
    return _measure_accuracy(network, *(torch.from_numpy(each).to(device) for each in test))


def _build_network(shape: torch.Size, classes: int) -> nn.Sequential:
    channels, height, width = shape
    return nn.Sequential(
        *(nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten()),
        *(nn.Linear(64 * (height // 2) * (width // 2), 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, classes)),
    )


@torch.no_grad()
def _measure_accuracy(network: nn.Sequential, images: torch.Tensor, labels: torch.Tensor) -> float:
    network.eval()
    found = torch.cat([network(some).argmax(dim=1) for some in torch.split(images, 1000)])
    return float((found == labels).float().mean())
