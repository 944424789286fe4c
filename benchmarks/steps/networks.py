"""The networks: each is called with a batch and returns the loss of every example.

If a part of the loss does not depend on records (the particles of a chain, the fakes of a generator), it is in
`public_loss`; what every trainer must do once a step is in `before_step`.
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
    """A network that every contestant trains; most have no public loss."""

    has_public_loss = False

    def before_step(self) -> None:
        """Do nothing; a network with a chain updates it."""

    def public_loss(self) -> Tensor:
        """Return the part of the loss that does not depend on records."""
        raise NotImplementedError


class Vae(Network):
    """784-200-2 and back, for black and white pixels; it can be stacked."""

    def __init__(self, width: int = 200, codes: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, width), nn.ReLU(), nn.Linear(width, 2 * codes))
        self.decoder = nn.Sequential(nn.Linear(codes, width), nn.ReLU(), nn.Linear(width, PIXELS))

    def forward(self, x: Tensor) -> Tensor:
        """Return reconstruction loss plus divergence for each example."""
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        code = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        logits = self.decoder(code)
        reconstruction: Tensor = functional.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(dim=-1)
        divergence: Tensor = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(dim=-1)
        return reconstruction + divergence


class Rbm(Network):
    """784×200, trained by persistent contrastive divergence; the particles of the chain are not records."""

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
        """Take one Gibbs step of the chain."""
        hidden = torch.bernoulli(self.hidden(self.particles).sigmoid())
        self.particles.copy_(torch.bernoulli((hidden @ self.hidden.weight + self.visible.weight).sigmoid()))

    def public_loss(self) -> Tensor:
        """Return minus the free energy of the particles."""
        energy: Tensor = self(self.particles)
        return -energy.mean()


def by_autograd(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return the gradient of each example's score in its input, as a differentiable function."""
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
        """Return −D(x) + 10 (‖∇D(x̂)‖ − 1)² for each example."""
        real, fake = batch
        share = torch.rand_like(real.flatten(1)[:, :1]).reshape(-1, *[1] * (real.dim() - 1))
        mixed = (fake + share * (real - fake)).detach()
        slope: Tensor = self.input_gradient(self.score, mixed).flatten(1).norm(dim=1)
        worth: Tensor = self.score(real)[:, 0]
        return PENALTY * (slope - 1).square() - worth

    def public_loss(self) -> Tensor:
        """Return D of the fakes."""
        worth: Tensor = self.score(self.fakes)
        return worth.mean()


def mlp_score(width: int = 256) -> nn.Module:
    """Return a 784-256-256-1 network."""
    return nn.Sequential(
        nn.Linear(PIXELS, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, 1),
    )


def conv_score() -> nn.Module:
    """Return a network of two convolutions over 28×28 pixels."""
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
    """Draw random black and white pixels, a fifth of them white; the speed does not depend on them."""
    return (torch.rand(batch, PIXELS, device=device) < DENSITY).float()
