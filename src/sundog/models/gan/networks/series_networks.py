"""Networks for series: an LSTM generator, and the spectrum that a critic sees."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from sundog.data.columns import Form
from sundog.models.gan.geometry import FRESH, TOGETHER
from sundog.models.gan.networks.base import GeneratorNetwork, compute_others
from sundog.models.gan.networks.grid import NEARLY_NONE, Grid, take_root
from sundog.models.neural.decoder_sampling import replace_features
from sundog.models.neural.features import Features


class Recurrent(GeneratorNetwork):
    """An LSTM that makes a series a few values at a time (Frigerio et al. 2019); other features by a linear layer."""

    def __init__(self, grid: Grid, latent: int, condition: int, *, hidden: int, others: int) -> None:
        super().__init__()
        self.grid, self.lasting = grid, latent + condition
        (length,) = grid.size
        self.steps = math.ceil(length / TOGETHER)
        self.latent = latent + FRESH * self.steps
        self.cell = nn.LSTM(FRESH + latent + condition, hidden, batch_first=True)
        self.out = nn.Linear(hidden, TOGETHER)
        self.others = nn.Linear(latent + condition, others) if others else None

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits: (B, latent + condition) to (B, features). The latent variables of single steps come first."""
        fresh, lasting = inputs[:, : -self.lasting], inputs[:, -self.lasting :]
        steps = torch.cat([fresh.reshape(-1, self.steps, FRESH), lasting[:, None].expand(-1, self.steps, -1)], dim=2)
        states, _ = self.cell(steps)
        return self.grid.put_in(self.out(states).flatten(1)[:, None], compute_others(self.others, lasting))


class Spectrum(nn.Module):
    """Series as a critic sees them: square roots of levels, followed by the amplitude of each frequency.

    Roots show differences between small levels, which most are. Amplitudes do not depend on the phase, which a critic
    would have to learn through the noise.
    """

    def __init__(self, series: list[slice]) -> None:
        super().__init__()
        self.series = series

    @classmethod
    def of(cls, features: Features, without: slice) -> Spectrum:
        """Return the spectrum of all series of a schema; the features `without`, all before them, were removed."""
        columns, fewer = features.schema.columns.items(), without.stop - without.start
        places = [features.at(name) for name, column in columns if column.form is Form.SERIES]
        return cls([slice(at.start - fewer, at.stop - fewer) for at in places])

    @property
    def count(self) -> int:
        """The number of frequencies."""
        return sum((at.stop - at.start) // 2 for at in self.series)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features with the amplitudes appended: (…, features) to (…, features + frequencies)."""
        seen, strengths = x, []
        for at in self.series:
            roots = take_root(x[..., at])
            seen = replace_features(seen, roots, at)
            strengths.append(_compute_amplitudes(roots))
        return torch.cat([seen, *strengths], dim=-1)


def _compute_amplitudes(values: Tensor) -> Tensor:
    """Return the amplitudes of 1, 2, … cycles: (…, length) to (…, length // 2)."""
    if not values.numel():  # torch's transform refuses an empty batch
        return values[..., : values.shape[-1] // 2]
    waves = torch.view_as_real(torch.fft.rfft(values, norm="ortho")[..., 1:])
    return (waves.square().sum(dim=-1) + NEARLY_NONE).sqrt()
