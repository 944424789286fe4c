"""Training of targets, without privacy, and the scores of their discriminators (the white-box attack)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

from imagery.target_networks import (
    LATENT,
    Defence,
    Discriminator,
    initialise,
    new_elu_decoder,
    new_elu_encoder,
    new_encoder,
    new_generator,
)
from sundog.auditing.attacks.discriminator_training import FAKE, REAL, compare_with_labels
from sundog.training.speed.cuda_graphs import ReplayedWork

BATCH = 32  # as in the text
SCORED = 256  # images that are normalised together
DCGAN, TWICE, VAE, BEGAN = "DCGAN", "DCGAN with two generator steps", "DCGAN+VAE", "BEGAN"


@dataclass(frozen=True)
class Sizes:
    """The size of the networks.

    Args:
        colours: channels of an image.
        channels: of the first layer.
    """

    colours: int
    channels: int


class Game(nn.Module, ABC):
    """Networks that learn from batches of images."""

    generator: nn.Module

    @abstractmethod
    def update(self, real: Tensor) -> None:
        """Take a step on a batch: (B, colours, 32, 32)."""

    @abstractmethod
    def score(self, images: Tensor) -> Tensor:
        """Return how real the discriminator takes each image to be."""

    def draw(self, count: int) -> Tensor:
        """Return generated images."""
        device = next(self.parameters()).device
        made: Tensor = self.generator(torch.randn(count, LATENT, device=device))
        return made


class Dcgan(Game):
    """Deep convolutional GAN (Radford et al. 2016)."""

    def __init__(self, sizes: Sizes, defence: Defence, device: torch.device) -> None:
        super().__init__()
        self.generator = new_generator(sizes.colours, sizes.channels)
        self.discriminator = Discriminator(sizes.colours, sizes.channels, defence)
        initialise(self, defence)
        self.to(device)
        self.learns_to_tell = new_adam(self.discriminator.parameters(), device)
        self.learns_to_make = new_adam(self.generator.parameters(), device)

    def update(self, real: Tensor) -> None:
        """Take a step of the discriminator, and one of the generator."""
        made = self.draw(len(real))
        told = judge(self.discriminator(real), 1.0) + judge(self.discriminator(made.detach()), 0.0)
        descend(self.learns_to_tell, told)
        descend(self.learns_to_make, judge(self.discriminator(made), 1.0))

    def score(self, images: Tensor) -> Tensor:
        """Return the logits of the discriminator, without dropout and noise."""
        logits: Tensor = self.discriminator(images)
        return logits


class DcganTwice(Dcgan):
    """DCGAN as a widely used implementation trains it: two steps of the generator for one of the discriminator."""

    def update(self, real: Tensor) -> None:
        """Take a step of the discriminator, and two of the generator."""
        super().update(real)
        descend(self.learns_to_make, judge(self.discriminator(self.draw(len(real))), 1.0))


class DcganAttacker(Dcgan):
    """The text's attacker: a second DCGAN, whose discriminator learns from labels that are drawn, some swapped."""

    def update(self, real: Tensor) -> None:
        """Take a step of the discriminator, and one of the generator."""
        made = self.draw(len(real))
        told = compare_with_labels(self.discriminator(real), REAL, FAKE)
        descend(self.learns_to_tell, told + compare_with_labels(self.discriminator(made.detach()), FAKE, REAL))
        descend(self.learns_to_make, judge(self.discriminator(made), 1.0))


class DcganVae(Game):
    """A variational autoencoder whose decoder is the generator; it compares features of the discriminator."""

    def __init__(self, sizes: Sizes, defence: Defence, device: torch.device) -> None:
        super().__init__()
        self.generator = new_generator(sizes.colours, sizes.channels)
        self.encoder = new_encoder(sizes.colours, sizes.channels, 2 * LATENT)
        self.discriminator = Discriminator(sizes.colours, sizes.channels, defence)
        initialise(self, defence)
        self.to(device)
        self.learns_to_tell = new_adam(self.discriminator.parameters(), device)
        self.learns_to_make = new_adam(self.generator.parameters(), device)
        self.learns_to_encode = new_adam(self.encoder.parameters(), device)

    def update(self, real: Tensor) -> None:
        """Take a step of all three networks."""
        mean, spread = self.encoder(real).chunk(2, dim=1)
        spread = spread.clamp(-8, 8)
        again = self.generator(mean + torch.randn_like(mean) * (spread / 2).exp())
        made = self.draw(len(real))
        told = judge(self.discriminator(made.detach()), 0.0) + judge(self.discriminator(again.detach()), 0.0)
        descend(self.learns_to_tell, judge(self.discriminator(real), 1.0) + told / 2)
        wanted = self.discriminator.features(real).detach()
        likeness = mse_loss(self.discriminator.features(again), wanted)
        divergence = 0.5 * (mean.square() + spread.exp() - 1 - spread).sum(dim=1).mean() / wanted[0].numel()
        fooled = judge(self.discriminator(made), 1.0) + judge(self.discriminator(again), 1.0)
        descend(self.learns_to_encode, likeness + divergence, retain_graph=True)
        descend(self.learns_to_make, likeness + fooled / 2)

    def score(self, images: Tensor) -> Tensor:
        """Return the logits of the discriminator, without dropout and noise."""
        logits: Tensor = self.discriminator(images)
        return logits


class Began(Game):
    """Boundary equilibrium GAN: the discriminator is an autoencoder, and real is what it can reproduce."""

    GAMMA, RATE = 0.5, 0.001

    def __init__(self, sizes: Sizes, defence: Defence, device: torch.device) -> None:
        super().__init__()
        if defence != Defence():
            raise ValueError("BEGAN has no discriminator with logits; the text has no defence of it either")
        self.generator = new_elu_decoder(sizes.colours, sizes.channels)
        self.autoencoder = nn.Sequential(
            new_elu_encoder(sizes.colours, sizes.channels), new_elu_decoder(sizes.colours, sizes.channels)
        )
        self.to(device)
        self.weight = torch.zeros((), device=device)  # k in the text
        self.learns_to_tell = new_adam(self.autoencoder.parameters(), device, 1e-4)
        self.learns_to_make = new_adam(self.generator.parameters(), device, 1e-4)

    def update(self, real: Tensor) -> None:
        """Take a step of both networks, and of the weight of generated images."""
        made = self.draw(len(real))
        own, other = self._lose(real).mean(), self._lose(made.detach()).mean()
        descend(self.learns_to_tell, own - self.weight * other)
        fooled = self._lose(made).mean()
        descend(self.learns_to_make, fooled)
        with torch.no_grad():
            self.weight.add_(self.RATE * (self.GAMMA * own - fooled)).clamp_(0, 1)

    def score(self, images: Tensor) -> Tensor:
        """Return minus the loss of the autoencoder."""
        return -self._lose(images)

    def _lose(self, images: Tensor) -> Tensor:
        lost: Tensor = (self.autoencoder(images) - images).abs().mean(dim=(1, 2, 3))
        return lost


NewGame = Callable[[Sizes, Defence, torch.device], Game]

GAMES: dict[str, NewGame] = {DCGAN: Dcgan, TWICE: DcganTwice, VAE: DcganVae, BEGAN: Began}


class TargetTraining:
    """A target and its training set.

    Args:
        pixels: the training set, 8 bits.
        game: the networks, on their device.
        device: of the networks.
    """

    def __init__(self, pixels: NDArray[np.uint8], game: Game, device: torch.device) -> None:
        self.game, self.device = game, device
        self.images = to_images(pixels, device)
        self.places = torch.zeros(BATCH, dtype=torch.int64, device=device)
        self._step = ReplayedWork(lambda: self.game.update(self.images[self.places]), device)

    def train_epoch(self) -> int:
        """Train on all images once, in batches of equal size; return the number of steps."""
        count = len(self.images)
        order = torch.randperm(count, device=self.device)
        starts = range(0, max(1, count - BATCH + 1), BATCH)
        for start in starts:
            batch = order[start : start + BATCH]
            self.places[: len(batch)].copy_(batch)
            self._step()
        return len(starts)

    def take_steps(self, count: int) -> None:
        """Train on batches that are drawn at random."""
        for _ in range(count):
            self.places.random_(len(self.images))
            self._step()

    @torch.no_grad()
    def score(self, pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the score of each image; those in a row are normalised together, so members must be spread evenly."""
        self.game.eval()
        parts = np.array_split(pixels, max(1, len(pixels) // SCORED))
        found = torch.cat([self.game.score(to_images(part, self.device)) for part in parts])
        self.game.train()
        return found.double().cpu().numpy()

    @torch.no_grad()
    def sample(self, count: int, like: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return generated images, of the shape of others."""
        parts = []
        for start in range(0, count, SCORED):
            made = self.game.draw(min(SCORED, count - start))
            parts.append(((made.clamp(-1, 1) + 1) * 127.5).round().byte().movedim(1, -1).cpu().numpy())
        return np.concatenate(parts).reshape(count, *like.shape[1:])


def to_images(pixels: NDArray[np.uint8], device: torch.device) -> Tensor:
    """Return pixels between −1 and 1: (B, colours, height, width)."""
    levels = torch.from_numpy(np.ascontiguousarray(pixels)).to(device).float() / 127.5 - 1
    return levels[:, None] if levels.ndim == 3 else levels.movedim(-1, 1).contiguous()


def descend(optimizer: torch.optim.Optimizer, loss: Tensor, *, retain_graph: bool = False) -> None:
    """Take a step of the weights of one optimiser."""
    optimizer.zero_grad()
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    loss.backward(inputs=weights, retain_graph=retain_graph)  # type: ignore[no-untyped-call]
    optimizer.step()


def judge(logits: Tensor, label: float) -> Tensor:
    """Return the cross-entropy of logits with one label."""
    return binary_cross_entropy_with_logits(logits, torch.full_like(logits, label))


def new_adam(weights: Iterable[nn.Parameter], device: torch.device, rate: float = 2e-4) -> torch.optim.Optimizer:
    """Return Adam with DCGAN's moments."""
    options: dict[str, Any] = {"capturable": True, "foreach": True} if device.type == "cuda" else {"fused": True}
    return torch.optim.Adam(list(weights), lr=rate, betas=(0.5, 0.999), **options)
