"""The networks: each is called with a batch and gives the loss of every example by itself.

A network whose loss has a part without records (the particles of a chain, the fakes of a generator) gives it in
`public_loss`, and does what must be done once a step, whoever trains it, in `before_step`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PIXELS = 784
DENSITY = 0.2
PENALTY = 10.0

InputGradient = Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]


class Network(nn.Module):
    """What every contestant trains; most have no public part."""

    has_public_loss = False

    def before_step(self) -> None:
        """Nothing, unless there is a chain to move."""

    def public_loss(self) -> Tensor:
        """Return the loss in which no record is."""
        raise NotImplementedError


class Vae(Network):
    """784-200-2 and back, for black and white pixels; it can be stacked."""

    def __init__(self, width: int = 200, codes: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, width), nn.ReLU(), nn.Linear(width, 2 * codes))
        self.decoder = nn.Sequential(nn.Linear(codes, width), nn.ReLU(), nn.Linear(width, PIXELS))

    def forward(self, x: Tensor) -> Tensor:
        """Reconstruction and divergence, for each example."""
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        code = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        logits = self.decoder(code)
        reconstruction: Tensor = functional.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(dim=-1)
        divergence: Tensor = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(dim=-1)
        return reconstruction + divergence


class Rbm(Network):
    """784×200, trained by persistent contrastive divergence: the chain's particles are no records."""

    has_public_loss = True

    def __init__(self, particles: Tensor, width: int = 200) -> None:
        super().__init__()
        self.hidden = nn.Linear(PIXELS, width)
        self.visible = nn.Linear(PIXELS, 1, bias=False)
        self.particles = particles.clone()

    def forward(self, v: Tensor) -> Tensor:
        """Return the free energy of each example."""
        bias: Tensor = self.visible(v)[:, 0]
        return -bias - functional.softplus(self.hidden(v)).sum(dim=1)

    @torch.no_grad()
    def before_step(self) -> None:
        """One Gibbs step of the chain."""
        hidden = torch.bernoulli(self.hidden(self.particles).sigmoid())
        self.particles.copy_(torch.bernoulli((hidden @ self.hidden.weight + self.visible.weight).sigmoid()))

    def public_loss(self) -> Tensor:
        """Minus the free energy of the particles."""
        energy: Tensor = self(self.particles)
        return -energy.mean()


def by_autograd(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return the gradient of each example's score in its input, to be differentiated again."""
    x = x.requires_grad_()
    (gradient,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    return gradient


class Critic(Network):
    """A WGAN-GP critic: each record is mixed with its own fake, and the penalty on its gradient is exact."""

    has_public_loss = True

    def __init__(self, score: nn.Module, fakes: Tensor, input_gradient: InputGradient = by_autograd) -> None:
        super().__init__()
        self.score, self.fakes, self.input_gradient = score, fakes, input_gradient

    def forward(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """−D(x) + 10 (‖∇D(x̂)‖ − 1)², for each example."""
        real, fake = batch
        share = torch.rand_like(real.flatten(1)[:, :1]).reshape(-1, *[1] * (real.dim() - 1))
        mixed = (fake + share * (real - fake)).detach()
        slope: Tensor = self.input_gradient(self.score, mixed).flatten(1).norm(dim=1)
        worth: Tensor = self.score(real)[:, 0]
        return PENALTY * (slope - 1).square() - worth

    def public_loss(self) -> Tensor:
        """D of the fakes."""
        worth: Tensor = self.score(self.fakes)
        return worth.mean()


def mlp_score(width: int = 256) -> nn.Module:
    """784-256-256-1."""
    return nn.Sequential(
        nn.Linear(PIXELS, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, 1),
    )


def conv_score() -> nn.Module:
    """Return two convolutions over 28×28 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(64 * 49, 1),
    )


class Recurrent(Network):
    """An LSTM and a linear head; `layer` says whose LSTM, because Opacus needs its own."""

    def __init__(self, layer: Callable[..., Any] = nn.LSTM) -> None:
        super().__init__()
        self.lstm = layer(8, 64, batch_first=True)
        self.head = nn.Linear(64, 1)

    def forward(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Return the squared error of each example."""
        series, target = batch
        outputs, _ = self.lstm(series)
        error: Tensor = self.head(outputs[:, -1])[:, 0] - target
        return error.square()


class Embedded(Network):
    """The mean of embedded tokens, and a small network on it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 32)
        self.head = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Return the squared error of each example."""
        tokens, target = batch
        error: Tensor = self.head(self.embedding(tokens).mean(dim=1))[:, 0] - target
        return error.square()


def pixels(batch: int, device: str) -> Tensor:
    """Black and white, a fifth of them white: speed does not depend on what they show."""
    return (torch.rand(batch, PIXELS, device=device) < DENSITY).float()
