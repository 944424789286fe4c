"""The network of a restricted Boltzmann machine: its energy, its gradient in two phases, and its chain.

E(x, h) = −zᵀb − (h − ½)ᵀc − zᵀWᵀ(h − ½), with z = x − μ where units are Bernoulli or the cells of a scalar, and
z = (x − μ) / s, plus ‖z‖²/2, where they are Gaussian. An intensity that is missing has z = 0.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sundog.models.neural.features import LARGEST_EXPONENT, Compact, Features
from sundog.models.neural.network_training import LARGEST_LOGIT, TrainableNetwork
from sundog.models.protocol import Where
from sundog.models.rbm.gibbs import start_chains

_WEIGHT = 0.1  # the standard deviation of the weights in the beginning
_LEAST_INTENSITY = 1e-6  # whose logit is small enough for any lattice


class RbmNetwork(TrainableNetwork):
    """Weights, and the particles of the chain; everything works on the last dimension.

    Args:
        features: the visible units.
        means: the noisy means of the features, (width,); None if weights are loaded.
        least: the smallest mean with which a unit begins.
        hidden: the number of hidden units.
        chains: the number of particles.
        moves: Gibbs steps of the particles after each step.
        deviation: the standard deviation of intensities, which are then Gaussian; None for Bernoulli units.
    """

    has_public_loss = True
    centre: Tensor
    particles: Tensor

    def __init__(
        self,
        features: Features,
        means: Tensor | None,
        *,
        least: float = 0.0,
        hidden: int,
        chains: int,
        moves: int = 1,
        deviation: float | None = None,
    ) -> None:
        super().__init__()
        self.features, self.moves, self.deviation = features, moves, deviation
        self.hidden = nn.Linear(features.width, hidden)  # W and c
        self.visible = nn.Linear(features.width, 1, bias=False)  # b
        self.register_buffer("centre", torch.empty(1, features.width))
        self.register_buffer("particles", torch.empty(chains, features.width))
        if means is not None:
            self._initialise(features.condition_on_presence(means)[None], least)

    @torch.no_grad()
    def _initialise(self, means: Tensor, least: float) -> None:
        """Start as independent columns with these means, with small weights."""
        self.centre.copy_(means)
        bias = self.features.logits(means, least=least)
        if self.deviation is not None:
            bias[:, self.features.levels] = 0.0
        levels, gaps = self.features.gapped
        bias[:, gaps] += self._compute_log_mass(bias[:, levels])
        self.hidden.weight.normal_(std=_WEIGHT)
        self.hidden.bias.zero_()
        self.visible.weight.copy_(bias)
        logits = self.logits(torch.full((1, self.hidden.out_features), 0.5)).expand(len(self.particles), -1)
        self.particles.copy_(self.draw(logits))

    # --- learning ---

    def loss(self, batch: Compact) -> Tensor:
        """Return the free energy of each record."""
        return self.free_energy(self.features.to_dense(batch))

    def free_energy(self, x: Tensor) -> Tensor:
        """Return −log Σₕ exp(−E(x, h)) of each vector."""
        z = self._centre(x)
        field = self.hidden(z)
        energy: Tensor = (field / 2 - functional.softplus(field)).sum(dim=-1) - self.visible(z)[..., 0]
        if self.deviation is not None:
            energy = energy + z[..., self.features.levels].square().sum(dim=-1) / 2
        return energy

    def public_loss(self) -> Tensor:
        """Return minus the mean free energy of the particles, each weighted as a clipped record would be."""
        energy = self._compute_weights() * self.free_energy(self.particles)
        return -energy.mean(dim=-1).sum()

    @torch.no_grad()
    def _compute_weights(self) -> Tensor:
        """Return min(1, C / norm); the gradient is z in b, p in c and z ⊗ p in W."""
        z = self._centre(self.particles)
        p: Tensor = self.hidden(z).sigmoid() - 0.5
        squares: Tensor = (1 + z.square().sum(dim=-1)) * (1 + p.square().sum(dim=-1)) - 1
        weights: Tensor = (self.clip * squares.sqrt().reciprocal()).clamp_max(1.0)
        return weights

    @torch.no_grad()
    def update_buffers(self, done: float) -> None:
        """Move the particles after a step."""
        if done > 0:
            seed = int(torch.randint(2**62, ()))  # from the generator on the host, whatever the device
            chains = start_chains(self.particles, self, {}, np.random.Generator(np.random.SFC64(seed)))
            for _ in range(self.moves):
                chains.move()
            self.particles.copy_(chains.to_vectors())

    # --- the chain ---

    def move(self, x: Tensor, generator: torch.Generator | None = None, where: Where | None = None) -> Tensor:
        """Take a Gibbs step: all hidden units given the visible ones, then all visible ones, as `where` allows."""
        logits = self.logits(self.draw_hidden(x, generator))
        return self.draw(self.features.restrict(logits, where or {}), generator)

    def draw_hidden(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw the hidden units."""
        p: Tensor = self.hidden(self._centre(x)).sigmoid()
        return (torch.rand(p.shape, generator=generator, device=p.device) < p).to(p.dtype)

    def logits(self, h: Tensor) -> Tensor:
        """Return the natural parameters of the visible units, given the hidden ones."""
        logits: Tensor = (h - 0.5) @ self.hidden.weight + self.visible.weight
        logits = logits.nan_to_num(0.0).clamp(-LARGEST_LOGIT, LARGEST_LOGIT)
        levels, gaps = self.features.gapped
        if gaps.start == gaps.stop:
            return logits
        return torch.cat(
            [logits[..., : gaps.start], logits[..., gaps] - self._compute_log_mass(logits[..., levels])], dim=-1
        )

    @torch.no_grad()
    def has_small_logits(self) -> bool:
        """Return whether all logits are within `LARGEST_EXPONENT` for any hidden units; gaps are not checked."""
        largest = self.visible.weight.abs() + self.hidden.weight.abs().sum(dim=-2, keepdim=True) / 2
        return bool((largest <= LARGEST_EXPONENT).all())

    def _compute_log_mass(self, natural: Tensor) -> Tensor:
        """Return log Σ exp(−E) over all values of an intensity: the weight of its being present."""
        if self.deviation is None:
            return functional.softplus(natural) - self.centre[..., self.features.gapped[0]] * natural
        return natural.square() / 2 + math.log(self.deviation * math.sqrt(2 * math.pi))

    def draw(self, logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw the visible units."""
        x: Tensor = self.features.draw(logits, generator)
        if self.deviation is not None:
            x[..., self.features.levels] = self._draw_intensities(logits, generator)
        levels, gaps = self.features.gapped
        x[..., levels] *= 1 - x[..., gaps]
        return x

    def compute_sampling_logits(self, h: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return the logits from which `Features` draws a record; Gaussian intensities are drawn here."""
        logits = self.logits(h)
        if self.deviation is not None:
            logits[..., self.features.levels] = self._draw_intensities(logits, generator).logit(eps=_LEAST_INTENSITY)
        return logits

    def _draw_intensities(self, logits: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draw Gaussian intensities."""
        natural = logits[..., self.features.levels]
        noise = torch.randn(natural.shape, generator=generator, device=natural.device)
        return self.centre[..., self.features.levels] + (self.deviation or 1.0) * (natural + noise)

    def _centre(self, x: Tensor) -> Tensor:
        """Return z: centred, and divided by the deviation where units are Gaussian; 0 where values are missing."""
        z = x - self.centre
        if self.deviation is not None:
            z[..., self.features.levels] /= self.deviation
        levels, gaps = self.features.gapped
        if gaps.start < gaps.stop:
            z[..., levels] *= 1 - x[..., gaps]
        return z
