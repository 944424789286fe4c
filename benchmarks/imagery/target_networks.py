"""The text's targets, without privacy: DCGAN, DCGAN+VAE (Larsen et al. 2016) and BEGAN (Berthelot et al. 2017).

Images are 32 × 32. Batch normalisation always uses the statistics of the current batch, also for scores.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

LATENT = 100
SLOPE = 0.2


@dataclass(frozen=True)
class Defence:
    """What is changed in the networks.

    Args:
        dropout: the share of units of each layer of the discriminator that are dropped.
        weight_norm: whether all layers of both networks are parametrised by length and direction.
        noise: the standard deviation of noise before the last layer of the discriminator, in each forward pass.
    """

    dropout: float = 0.0
    weight_norm: bool = False
    noise: float = 0.0


class Noise(nn.Module):
    """Adds Gaussian noise while it trains. Without a bound on what it is added to, this is not private."""

    def __init__(self, deviation: float) -> None:
        super().__init__()
        self.deviation = deviation

    def forward(self, x: Tensor) -> Tensor:
        """Return x with noise."""
        return x + self.deviation * torch.randn_like(x) if self.training else x


class Discriminator(nn.Module):
    """From an image to a logit; `features` are the activations before the last layer."""

    def __init__(self, colours: int, channels: int, defence: Defence) -> None:
        super().__init__()
        widths = [colours, channels, 2 * channels, 4 * channels]
        layers: list[nn.Module] = []
        for width, after in itertools.pairwise(widths):
            layers.append(nn.Conv2d(width, after, 4, 2, 1, bias=width == colours))
            if width != colours:
                layers.append(normalise(after))
            layers.append(nn.LeakyReLU(SLOPE))
            if defence.dropout:
                layers.append(nn.Dropout(defence.dropout))
        if defence.noise:
            layers.append(Noise(defence.noise))
        self.features = nn.Sequential(*layers)
        self.last = nn.Conv2d(4 * channels, 1, 4)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits: (B, colours, 32, 32) to (B,)."""
        logits: Tensor = self.last(self.features(images)).flatten()
        return logits


def new_generator(colours: int, channels: int) -> nn.Sequential:
    """Return a network from latent variables (B, LATENT) to images between −1 and 1."""
    widths = [4 * channels, 2 * channels, channels]
    layers: list[nn.Module] = [nn.Unflatten(1, (LATENT, 1, 1)), nn.ConvTranspose2d(LATENT, widths[0], 4, bias=False)]
    for width, after in zip(widths, [*widths[1:], colours], strict=True):
        layers += [normalise(width), nn.ReLU(), nn.ConvTranspose2d(width, after, 4, 2, 1, bias=after == colours)]
    return nn.Sequential(*layers, nn.Tanh())


def new_encoder(colours: int, channels: int, outputs: int) -> nn.Sequential:
    """Return a network from images to numbers."""
    widths = [colours, channels, 2 * channels, 4 * channels]
    layers: list[nn.Module] = []
    for width, after in itertools.pairwise(widths):
        layers += [nn.Conv2d(width, after, 4, 2, 1, bias=False), normalise(after), nn.LeakyReLU(SLOPE)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * channels * 16, outputs))


def new_elu_decoder(colours: int, channels: int) -> nn.Sequential:
    """Return BEGAN's generator, which is also the second half of its discriminator: (B, LATENT) to images."""
    layers: list[nn.Module] = [nn.Linear(LATENT, channels * 64), nn.Unflatten(1, (channels, 8, 8))]
    for _ in range(2):
        layers += [*_convolve_twice(channels), nn.Upsample(scale_factor=2)]
    return nn.Sequential(*layers, *_convolve_twice(channels), nn.Conv2d(channels, colours, 3, 1, 1))


def new_elu_encoder(colours: int, channels: int) -> nn.Sequential:
    """Return the first half of BEGAN's discriminator: images to (B, LATENT)."""
    layers: list[nn.Module] = [nn.Conv2d(colours, channels, 3, 1, 1), nn.ELU()]
    for width in (channels, 2 * channels):
        layers += [*_convolve_twice(width), nn.Conv2d(width, width + channels, 3, 2, 1), nn.ELU()]
    return nn.Sequential(*layers, *_convolve_twice(3 * channels), nn.Flatten(), nn.Linear(3 * channels * 64, LATENT))


def _convolve_twice(channels: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, channels, 3, 1, 1), nn.ELU(), nn.Conv2d(channels, channels, 3, 1, 1), nn.ELU()]


def normalise(channels: int) -> nn.BatchNorm2d:
    """Return a batch normalisation that keeps no averages."""
    return nn.BatchNorm2d(channels, track_running_stats=False)


def initialise(network: nn.Module, defence: Defence) -> None:
    """Draw the weights as in DCGAN, and parametrise them if the defence does."""
    kinds: Any = (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)
    for module in list(network.modules()):
        if isinstance(module, kinds):
            nn.init.normal_(module.weight, 0.0, 0.02)
            if defence.weight_norm:
                parametrizations.weight_norm(module)
