"""Series: an LSTM that makes them, and what a critic sees of them."""

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
    """A series, a few moments after the other, as in Frigerio et al. (2019); other features by a linear layer."""

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
        """(B, latent + condition) to (B, features): what is new at each step comes first."""
        fresh, lasting = inputs[:, : -self.lasting], inputs[:, -self.lasting :]
        steps = torch.cat([fresh.reshape(-1, self.steps, FRESH), lasting[:, None].expand(-1, self.steps, -1)], dim=2)
        states, _ = self.cell(steps)
        return self.grid.put_in(self.out(states).flatten(1)[:, None], compute_others(self.others, lasting))


class Spectrum(nn.Module):
    """Series as a critic sees them: the roots of levels in their place, and how strong each rhythm is at the end.

    Most of what is measured is small, and differences there are to be seen. A rhythm is as strong at any hour, which a
    critic would have to learn through the noise, for each hour by itself.
    """

    def __init__(self, series: list[slice]) -> None:
        super().__init__()
        self.series = series

    @classmethod
    def of(cls, features: Features, without: slice) -> Spectrum:
        """Return that for all series of a schema; `without` says which features, all before them, were taken out."""
        columns, fewer = features.schema.columns.items(), without.stop - without.start
        places = [features.at(name) for name, column in columns if column.form is Form.SERIES]
        return cls([slice(at.start - fewer, at.stop - fewer) for at in places])

    @property
    def count(self) -> int:
        """How many rhythms there are."""
        return sum((at.stop - at.start) // 2 for at in self.series)

    def forward(self, x: Tensor) -> Tensor:
        """(…, features) to (…, features + rhythms)."""
        seen, strengths = x, []
        for at in self.series:
            roots = take_root(x[..., at])
            seen = replace_features(seen, roots, at)
            strengths.append(_compute_amplitudes(roots))
        return torch.cat([seen, *strengths], dim=-1)


def _compute_amplitudes(values: Tensor) -> Tensor:
    """(…, length) to the amplitudes of 1, 2, … cycles in that length: (…, length // 2)."""
    if not values.numel():  # of no records, which the transform refuses
        return values[..., : values.shape[-1] // 2]
    waves = torch.view_as_real(torch.fft.rfft(values, norm="ortho")[..., 1:])
    return (waves.square().sum(dim=-1) + NEARLY_NONE).sqrt()
