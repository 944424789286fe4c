"""A warm start (dp-GAN, 4.3): both networks are first trained on public records, which costs no budget."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator

import numpy as np
import torch

from sundog.models.gan.adversarial_step import MOMENTS, AdversarialGame
from sundog.models.neural.features import FeatureRows
from sundog.progress import Progress

_BATCH = 256


@contextlib.contextmanager
def fix_seed(seed: int | None, device: torch.device) -> Iterator[None]:
    """Seed torch inside the block, and restore its generators afterwards."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(secrets.randbits(62) if seed is None else seed)
        yield


def train_on_public(
    game: AdversarialGame,
    public: FeatureRows,
    *,
    steps: int,
    learning_rate: float,
    seed: int | None,
    progress: Progress,
) -> None:
    """Take steps of the critic on public records, and the generator's between them.

    Args:
        game: the networks.
        public: public records.
        steps: the number of steps of the critic.
        learning_rate: of the critic.
        seed: of what is drawn.
        progress: the progress callback.
    """
    rng = np.random.default_rng(seed)
    weights = list(game.critic.parameters())
    optimizer = torch.optim.Adam(weights, lr=learning_rate, betas=MOMENTS)
    with fix_seed(seed, game.prior.device):
        for number in range(steps):
            batch = public.take(rng.integers(len(public), size=min(_BATCH, len(public))))
            gradients = torch.autograd.grad(game.loss(batch).mean(), weights)
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.grad = gradient
            optimizer.step()
            game.train_generator(0)
            progress("warming up on public records", (number + 1) / steps)
    for weight in weights:
        weight.grad = None
