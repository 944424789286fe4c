"""Generators and critics by shape: perceptrons for anything, convolutions for images and series, an LSTM for series.

A generator turns latent variables, and the cells of a column that it is told, into the logits of all features; a critic
judges the features of a record. A critic has no statistics across records: what it says of one depends on that one
alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from sundog.data.columns import ImageColumn, ScalarColumn, SeriesColumn, SetColumn
from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.models.decoded import replaced
from sundog.models.features import Features

SHAPES = ("mlp", "pairs", "conv", "lstm")
_SLOPE = 0.2  # of critics' rectifiers, below zero
_GROUPS = 8  # of channels that are normalised together
_KERNEL = 5
_SMALLEST = 8  # a grid of this size is not made smaller by a generator
_WIDEST = 2048  # features: a critic of pairs has a weight for each two of them
_LEAST_VARIANCE = 1e-3  # of all features together
_FRESH = 4  # new latent variables at each step through a series
_TOGETHER = 4  # values of a series that are made in one step
_NEARLY_NONE = 1e-4  # of a range: a root is too steep at zero


class Body(nn.Module):
    """A generator's network; `latent` is how many normal numbers it wants."""

    latent: int


def best_shape(schema: Schema) -> str:
    """Pairs for tables, convolutions where there is one image or series; where an example is a person, a perceptron."""
    scalar = all(isinstance(column, ScalarColumn) for column in schema.columns.values())
    if scalar and Features(schema).width <= _WIDEST:
        return "pairs"
    return "conv" if len(_arrays(schema)) == 1 and not has_people(schema) else "mlp"


def has_people(schema: Schema) -> bool:
    """Whether an example is a person with several records."""
    return schema.unit is not None and schema.cap > 1


def refuse_shape(schema: Schema, shape: str) -> None:
    """Raises if records are not of this shape."""
    arrays = _arrays(schema)
    if shape not in ("mlp", "pairs") and len(arrays) != 1:
        raise SundogError(
            f"model 'gan': shape {shape!r} needs one image or series, and there are {len(arrays)}; use mlp"
        )
    if shape == "conv" and has_people(schema):
        raise SundogError(
            f"model 'gan': shape 'conv' judges single records, and people have up to {schema.cap} here; use mlp or lstm"
        )
    if shape == "lstm" and isinstance(schema.columns[arrays[0]], ImageColumn):
        raise SundogError(f"model 'gan': shape 'lstm' is for series, and {arrays[0]!r} is an image; use conv")


def new_generator(features: Features, shape: str, told: int, *, hidden: int, latent: int) -> Body:
    """The network from latent variables and what it is told, side by side, to logits."""
    if shape in ("mlp", "pairs"):
        return Perceptron([latent + told, 2 * hidden, 2 * hidden, features.width], latent)
    grid = Grid.of(features)
    if shape == "conv":
        return Deconvolution(grid, latent, told, channels=max(1, hidden // 2), others=features.width - grid.numel)
    return Recurrent(grid, latent, told, hidden=hidden, others=features.width - grid.numel)


def new_critic(features: Features, shape: str, told: slice, *, hidden: int, means: Tensor | None = None) -> Judge:
    """The network from features to a score, and to what it takes the told column to be; `means` are of all records."""
    if shape == "pairs":
        return Pairs(told, torch.zeros(features.width) if means is None else means)
    values = told.stop - told.start
    width = features.width - values
    if shape == "conv":
        grid = Grid.of(features, without=told)
        body: nn.Module = ConvolvedCritic(grid, max(1, hidden // 4), others=width - grid.numel, outputs=1 + 2 * values)
    else:
        seen = Rhythms.of(features, without=told)
        sizes = [width + seen.count, hidden, hidden]
        layers: list[nn.Module] = [seen] if seen.series else []
        for size, after in pairwise(sizes):
            layers += [nn.Linear(size, after), nn.LeakyReLU(_SLOPE)]
        body = nn.Sequential(*layers, nn.Linear(hidden, 1 + 2 * values))
    return Judge(body, told)


class Judge(nn.Module):
    """Looks at a record without its label: how real it is, how real with that label, and which label it should have.

    The first two make the score (Miyato and Koyama 2018); the third is learned from real records alone (Odena et al.
    2017), and is what a generator hears most clearly through the noise.
    """

    def __init__(self, body: nn.Module, told: slice) -> None:
        super().__init__()
        self.body, self.told = body, told

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(…, features) to scores (…) and the logits of labels (…, values)."""
        given, values = x[..., self.told], self.told.stop - self.told.start
        found = self.body(torch.cat([x[..., : self.told.start], x[..., self.told.stop :]], dim=-1))
        score = found[..., 0] + (given * found[..., 1 : 1 + values]).sum(dim=-1)
        return score, found[..., 1 + values :]


class Pairs(Judge):
    """Knows for each pair of features how much more often real records have both: the score is a quadratic form.

    It is linear in what it learns, so gradients are as long at the end as in the beginning, noise does not multiply
    from layer to layer, and what one column says of another is all that there is to learn: features are centred by
    their measured means.
    """

    def __init__(self, told: slice, means: Tensor) -> None:
        layer = nn.Linear(len(means), len(means), bias=False)
        nn.init.zeros_(layer.weight)
        super().__init__(layer, told)
        self.means: Tensor
        self.scale: Tensor
        self.register_buffer("means", means.clone())
        self.register_buffer("scale", 1 / (means * (1 - means)).sum().clamp_min(_LEAST_VARIANCE))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(…, features) to scores (…), and nothing about labels: they are in pairs too."""
        centred = x - self.means
        return self.scale * (self.body(centred) * centred).sum(dim=-1), torch.zeros_like(x[..., self.told])


def _arrays(schema: Schema) -> list[str]:
    return [name for name, column in schema.columns.items() if not isinstance(column, ScalarColumn | SetColumn)]


# --- perceptrons ---


class Perceptron(Body):
    """Linear layers, each normalised by itself."""

    def __init__(self, sizes: list[int], latent: int) -> None:
        super().__init__()
        self.latent = latent
        layers: list[nn.Module] = []
        for size, after in pairwise(sizes[:-1]):
            layers += [nn.Linear(size, after), nn.LayerNorm(after), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))

    def forward(self, inputs: Tensor) -> Tensor:
        """(…, latent + told) to (…, features)."""
        logits: Tensor = self.layers(inputs)
        return logits


# --- series ---


class Rhythms(nn.Module):
    """Series as a critic sees them: the roots of levels in their place, and how strong each rhythm is at the end.

    Most of what is measured is small, and differences there are to be seen. A rhythm is as strong at any hour, which a
    critic would have to learn through the noise, for each hour by itself.
    """

    def __init__(self, series: list[slice]) -> None:
        super().__init__()
        self.series = series

    @classmethod
    def of(cls, features: Features, without: slice) -> Rhythms:
        """That for all series of a schema; `without` says which features, all before them, were taken out."""
        columns, fewer = features.schema.columns.items(), without.stop - without.start
        places = [features.at(name) for name, column in columns if isinstance(column, SeriesColumn)]
        return cls([slice(at.start - fewer, at.stop - fewer) for at in places])

    @property
    def count(self) -> int:
        """How many rhythms there are."""
        return sum((at.stop - at.start) // 2 for at in self.series)

    def forward(self, x: Tensor) -> Tensor:
        """(…, features) to (…, features + rhythms)."""
        seen, strengths = x, []
        for at in self.series:
            roots = rooted(x[..., at])
            seen = replaced(seen, roots, at)
            strengths.append(_strengths(roots))
        return torch.cat([seen, *strengths], dim=-1)


def rooted(levels: Tensor) -> Tensor:
    """From −1, for the least, to 1."""
    return 2 * (levels + _NEARLY_NONE).sqrt() - 1


def _strengths(values: Tensor) -> Tensor:
    """(…, length) to the amplitudes of 1, 2, … cycles in that length: (…, length // 2)."""
    if not values.numel():  # of no records, which the transform refuses
        return values[..., : values.shape[-1] // 2]
    waves = torch.view_as_real(torch.fft.rfft(values, norm="ortho")[..., 1:])
    return (waves.square().sum(dim=-1) + _NEARLY_NONE).sqrt()


# --- convolutions ---


@dataclass(frozen=True)
class Grid:
    """The one image or series of a record: where its features are, its size in each direction, its channels."""

    at: slice
    size: tuple[int, ...]
    channels: int

    @classmethod
    def of(cls, features: Features, without: slice = slice(0, 0)) -> Grid:
        """That of a schema that has one; `without` says which features, all before it, were taken out."""
        (name,) = _arrays(features.schema)
        shape = features.schema.columns[name].shape
        size, channels = (shape[:2], shape[2]) if len(shape) == 3 else (shape, 1)
        at, fewer = features.at(name), without.stop - without.start
        return cls(slice(at.start - fewer, at.stop - fewer), size, channels)

    @property
    def numel(self) -> int:
        """How many features it has."""
        return math.prod(self.size) * self.channels

    @property
    def halvings(self) -> int:
        """So often it is made half as large, until it is small.

        >>> [Grid(slice(0), (size, size), 1).halvings for size in (8, 28, 32, 64)]
        [1, 2, 2, 3]
        """
        return max(1, math.ceil(math.log2(max(self.size) / _SMALLEST)))

    def halved(self, times: int) -> tuple[int, ...]:
        """The size after so many halvings, rounded up each time."""
        return tuple(math.ceil(size / 2**times) for size in self.size)

    def widths(self, channels: int, layers: int) -> list[int]:
        """Of so many layers: in an image each has half the width and height of the last, and twice the channels.

        >>> Grid(slice(0), (28, 28), 1).widths(32, 3), Grid(slice(0), (96,), 1).widths(32, 3)
        ([32, 64, 128], [32, 32, 32])
        """
        return [channels * 2 ** (layer * (len(self.size) - 1)) for layer in range(layers)]

    def cut_out(self, x: Tensor) -> Tensor:
        """(B, features) to (B, channels, *size), from −1 to 1."""
        levels = x[:, self.at].view(-1, *self.size, self.channels).movedim(-1, 1)
        return rooted(levels) if len(self.size) == 1 else 2 * levels - 1

    def others(self, x: Tensor) -> Tensor:
        """All other features."""
        return torch.cat([x[:, : self.at.start], x[:, self.at.stop :]], dim=1)

    def put_in(self, values: Tensor, others: Tensor) -> Tensor:
        """The other way round: (B, channels, *at least size), and the other features."""
        for axis, size in enumerate(self.size):
            values = values.narrow(2 + axis, 0, size)
        flat = values.movedim(1, -1).flatten(1)
        return torch.cat([others[:, : self.at.start], flat, others[:, self.at.start :]], dim=1)


class Deconvolution(Body):
    """From a small grid to the whole, twice as large in each step; other features by a linear layer."""

    def __init__(self, grid: Grid, latent: int, told: int, *, channels: int, others: int) -> None:
        super().__init__()
        self.latent, self.grid = latent, grid
        self.smallest = grid.halved(grid.halvings)
        widths = grid.widths(channels, grid.halvings)[::-1]
        self.widest = widths[0]
        self.first = nn.Linear(latent + told, self.widest * math.prod(self.smallest))
        self.others = nn.Linear(latent + told, others) if others else None
        larger: Any = nn.ConvTranspose2d if len(grid.size) == 2 else nn.ConvTranspose1d
        layers: list[nn.Module] = []
        for width, after in pairwise([*widths, grid.channels]):
            groups = math.gcd(_GROUPS, max(1, width // 4))  # one channel by itself would lose its level
            layers += [nn.GroupNorm(groups, width), nn.ReLU(), larger(width, after, 4, 2, 1)]
        self.layers = nn.Sequential(*layers)

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, latent + told) to (B, features)."""
        values = self.layers(self.first(inputs).view(len(inputs), self.widest, *self.smallest))
        return self.grid.put_in(values, _others(self.others, inputs))


class ConvolvedCritic(nn.Module):
    """Strided convolutions; other features join what they find."""

    def __init__(self, grid: Grid, channels: int, *, others: int, outputs: int) -> None:
        super().__init__()
        self.grid = grid
        smaller: Any = nn.Conv2d if len(grid.size) == 2 else nn.Conv1d
        widths = [grid.channels, *grid.widths(channels, grid.halvings + 1)]
        layers: list[nn.Module] = []
        for width, after in pairwise(widths):
            layers += [smaller(width, after, _KERNEL, 2, _KERNEL // 2), nn.LeakyReLU(_SLOPE)]
        self.layers = nn.Sequential(*layers, nn.Flatten())
        found = widths[-1] * math.prod(grid.halved(grid.halvings + 1))
        self.out = nn.Linear(found, outputs)
        self.others = nn.Linear(others, found, bias=False) if others else None

    def forward(self, x: Tensor) -> Tensor:
        """(B, features) to (B, outputs)."""
        found = self.layers(self.grid.cut_out(x))
        if self.others is not None:
            found = found * (1 + self.others(self.grid.others(x)))
        answers: Tensor = self.out(found)
        return answers


# --- an LSTM ---


class Recurrent(Body):
    """A series, a few moments after the other, as in Frigerio et al. (2019); other features by a linear layer."""

    def __init__(self, grid: Grid, latent: int, told: int, *, hidden: int, others: int) -> None:
        super().__init__()
        self.grid, self.lasting = grid, latent + told
        (length,) = grid.size
        self.steps = math.ceil(length / _TOGETHER)
        self.latent = latent + _FRESH * self.steps
        self.cell = nn.LSTM(_FRESH + latent + told, hidden, batch_first=True)
        self.out = nn.Linear(hidden, _TOGETHER)
        self.others = nn.Linear(latent + told, others) if others else None

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, latent + told) to (B, features): what is new at each step comes first."""
        fresh, lasting = inputs[:, : -self.lasting], inputs[:, -self.lasting :]
        steps = torch.cat([fresh.reshape(-1, self.steps, _FRESH), lasting[:, None].expand(-1, self.steps, -1)], dim=2)
        states, _ = self.cell(steps)
        return self.grid.put_in(self.out(states).flatten(1)[:, None], _others(self.others, lasting))


def _others(layer: nn.Linear | None, inputs: Tensor) -> Tensor:
    """The other features, if there are any."""
    return inputs[:, :0] if layer is None else layer(inputs)
