"""Perceptrons, for anything; and a critic of pairs, for tables."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from sundog.models.gan.networks.base import CriticNetwork, GeneratorNetwork

_GAIN = 30.0
_LEAST_VARIANCE = 1e-3  # of all features together


class Perceptron(GeneratorNetwork):
    """Linear layers with layer normalisation."""

    def __init__(self, sizes: list[int], latent: int) -> None:
        super().__init__()
        self.latent = latent
        layers: list[nn.Module] = []
        for size, after in pairwise(sizes[:-1]):
            layers += [nn.Linear(size, after), nn.LayerNorm(after), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits: (…, latent + condition) to (…, features)."""
        logits: Tensor = self.layers(inputs)
        return logits


class Pairs(CriticNetwork):
    """A quadratic form: for each pair of features, how much more often real records have both.

    It is linear in what it learns, so gradients are as long at the end as in the beginning, noise does not multiply
    from layer to layer, and what one column says of another is all that there is to learn: features are centred by
    their measured means.
    """

    def __init__(self, condition: slice, means: Tensor) -> None:
        layer = nn.Linear(len(means), len(means), bias=False)
        nn.init.zeros_(layer.weight)
        super().__init__(layer, condition)
        self.means: Tensor
        self.scale: Tensor
        self.register_buffer("means", means.clone())
        self.register_buffer("scale", 1 / (means * (1 - means)).sum().clamp_min(_LEAST_VARIANCE))

    @property
    def gain(self) -> float:
        """The scale of the weights: scores shrink with the squared variance, and rare cells have small gradients.

        The factor is right for Adult, for six Gaussians and for a table of two columns with three values each.
        """
        rarity = self.means.sum() / self.means.square().sum().clamp_min(_LEAST_VARIANCE)
        return float(_GAIN * rarity / self.scale.square())

    def forward(self, x: Tensor) -> Tensor:
        """Return the score of each record: (…, features) to (…); labels are in pairs, too."""
        centred = x - self.means
        score: Tensor = self.scale * (self.body(centred) * centred).sum(dim=-1)
        return score
