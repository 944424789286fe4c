"""Encoded records as flat vectors that a network can read, and back.

A scalar column is cut into cells and has a feature for each (one of them is 1); a set has a feature for each item; an
array has its intensity at each position, between 0 and 1, and if values may be missing a second feature that says so.

A network answers with one number, a logit, for each feature. They are the natural parameters of an exponential family:
a categorical distribution for each scalar, a Bernoulli one for everything else. So the negative log-likelihood of all
columns together is A(logits) − x · logits, with one logarithm of a normaliser for each of them in A.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from sundog.data.bins import make_bins
from sundog.data.columns import Column, SetColumn
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.models.neural.layout import Layout
from sundog.models.protocol import Codes, Where, to_code_set
from sundog.models.systematic_sampling import draw_items, draw_points

if TYPE_CHECKING:
    from sundog.training.batches.examples import Device
    from sundog.training.batches.poisson import Index

Array = npt.NDArray[Any]
_LEAST = 2.0**-25  # torch's uniform numbers may be 0
_BELOW_ONE = 1 - 2.0**-22  # a point times this and a total is below the total, rounded or not
LARGEST_EXPONENT = 80.0  # whose exponential is a float32, and that of its negative too
_LEAST_MEAN = 1e-6
_LEAST_SHARE = 1e-3  # of records in which a value is not missing, to divide by

Compact = dict[str, Tensor]  # `places` of the ones, and `levels` of arrays; absent if there are none


class Features:
    """The features of a schema: all cells, then the items of all sets, then intensities, then what is missing.

    >>> schema = Schema.from_dict({"columns": {"sex": {"type": "categorical", "values": ["f", "m"]}}})
    >>> records = Records(schema, {"sex": np.array([1, 0], np.uint8)}, 2)
    >>> features = Features(schema)
    >>> features.to_dense(features.to_examples(records).take(np.array([0]))).tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, schema: Schema) -> None:
        self.schema, layout = schema, Layout(schema)
        self._bins = {name: make_bins(schema.columns[name]) for name in layout.cells}
        self._sets: dict[str, Any] = {name: schema.columns[name] for name in layout.items}
        self._arrays = {name: schema.columns[name] for name in layout.levels}
        self._at, self._gaps_at = layout.places, layout.gaps
        self._counts = list(layout.cells.values())
        self._cells, self._levels = sum(self._counts), layout.first_level
        self._gaps, self.width = layout.first_gap, layout.width

    @property
    def levels(self) -> slice:
        """The intensities; the first of them have gaps, in the same order."""
        return slice(self._levels, self._gaps)

    @property
    def gaps(self) -> slice:
        """The features that mark missing intensities."""
        return slice(self._gaps, self.width)

    @property
    def gapped(self) -> tuple[slice, slice]:
        """The intensities that may be missing, and the features that mark whether they are."""
        return slice(self._levels, self._levels + self.width - self._gaps), self.gaps

    # --- records to vectors ---

    def to_examples(self, records: Records, device: Device = None) -> FeatureRows:
        """Return the records for a training: compact, unfolded by `to_dense` where they are used."""
        return FeatureRows(self, records, device)

    def to_compact(self, codes: Codes) -> dict[str, Array]:
        """Return the places of the ones, and the intensities (−1 if missing)."""
        places = [
            bins.to_bins(codes[name])[:, None] + np.int32(self._at[name].start) for name, bins in self._bins.items()
        ]
        places += [self._find_item_places(name, codes[name]) for name in self._sets]
        levels = [_to_intensities(column, codes[name]) for name, column in self._arrays.items()]
        found = {"places": (places, np.int32), "levels": (levels, np.float32)}
        return {key: np.concatenate(parts, axis=1).astype(dtype) for key, (parts, dtype) in found.items() if parts}

    def to_dense(self, batch: Compact) -> Tensor:
        """Return dense vectors, with any number of leading dimensions."""
        parts = []
        if "places" in batch:
            places = batch["places"].long()
            # one more place, for unused items
            ones = torch.zeros(*places.shape[:-1], self._levels + 1, device=places.device)
            parts.append(ones.scatter(-1, places, 1.0)[..., :-1])
        if "levels" in batch:
            levels = batch["levels"]
            parts += [levels.clamp_min(0.0), (levels[..., : self.width - self._gaps] < 0).to(levels.dtype)]
        return torch.cat(parts, dim=-1)

    def _find_item_places(self, name: str, sets: Any) -> Array:
        """Return one place for each item a set may have; unused ones are beyond the last feature."""
        lengths = np.diff(sets.indptr)
        row = np.repeat(np.arange(len(lengths)), lengths)
        rank = np.arange(len(row)) - np.repeat(sets.indptr[:-1], lengths)
        places = np.full((len(lengths), self._sets[name].max_size), self._levels, np.int32)
        places[row, rank] = self._at[name].start + sets.indices
        return places

    # --- likelihoods ---

    def loss(self, logits: Tensor, x: Tensor) -> Tensor:
        """Return the negative log-likelihood of each vector, all columns together."""
        total = functional.softplus(logits[..., self._cells :]).sum(dim=-1) - (x * logits).sum(dim=-1)
        if self._cells:
            for cells in torch.split(logits[..., : self._cells], self._counts, dim=-1):
                total = total + cells.logsumexp(dim=-1)
        count = self.width - self._gaps
        if count:  # a missing intensity has no likelihood
            missing = functional.softplus(logits[..., self._levels : self._levels + count]) * x[..., self._gaps :]
            total = total - missing.sum(dim=-1)
        return total

    def compare_all(self, logits: Tensor, x: Tensor) -> Tensor:
        """Return the log-likelihood of each vector under each row of logits: (vectors, rows)."""
        normaliser = self.loss(logits, torch.zeros_like(logits))
        total = x @ logits.T - normaliser
        count = self.width - self._gaps
        if count:  # a missing intensity has no likelihood
            total = total + x[:, self._gaps :] @ functional.softplus(logits[:, self._levels : self._levels + count]).T
        return total

    def log_likelihood(self, logits: Tensor, where: Where) -> Tensor:
        """Return the log-probability that scalar columns have allowed codes."""
        total = torch.zeros(logits.shape[:-1], device=logits.device)
        for name in where:
            shares = self.log_shares(name, where).to(logits.device)
            total = total + (logits[..., self._at[name]].log_softmax(dim=-1) + shares).logsumexp(dim=-1)
        return total

    def log_shares(self, name: str, where: Where) -> Tensor:
        """Return the log-share of each cell's codes that a condition allows: −∞ for a cell without any."""
        with np.errstate(divide="ignore"):
            shares = np.log(self._bins[name].compute_shares(to_code_set(where[name])))
        return torch.from_numpy(shares).float()

    def restrict(self, logits: Tensor, where: Where) -> Tensor:
        """Return the logits under conditions; a cell is weighted by its share of allowed codes."""
        if not where:
            return logits
        logits = logits.clone()
        for name in where:
            logits[..., self._at[name]] += self.log_shares(name, where).to(logits.device)
        return logits

    # --- logits to vectors ---

    def draw(self, logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw a vector from each row of logits: one cell of each scalar, and 0 or 1 for everything else.

        Args:
            logits: of any number of leading dimensions.
            generator: on the device of the logits; by default torch's own.
        """
        x = torch.empty_like(logits)
        rest = logits[..., self._cells :]
        x[..., self._cells :] = _draw_uniform(rest.shape, logits, generator) < rest.sigmoid()
        if self._cells:
            x[..., : self._cells] = 0.0
            x.scatter_(-1, self.draw_places(logits, generator), 1.0)
        return x

    def draw_places(self, logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw the feature that is 1 in each scalar column from each row of logits: (…, scalars)."""
        cells = logits[..., : self._cells]
        if not cells.is_cuda:
            points = _draw_uniform((*cells.shape[:-1], len(self._counts)), logits, generator)
            return self.find_places(self._to_shares(cells), points)
        # On a GPU random numbers cost little, and every operation costs something.
        # The least of exponential waiting times, with rates in proportion to the probabilities.
        waits = (-_draw_uniform(cells.shape, logits, generator).clamp_min(_LEAST).log()).log() - cells
        return self._join_places(
            [part.argmin(dim=-1, keepdim=True) for part in torch.split(waits, self._counts, dim=-1)]
        )

    def find_places(self, shares: Tensor, points: Tensor) -> Tensor:
        """Return the features whose cells hold given points of the cumulative distributions: (…, scalars).

        Args:
            shares: of each cell in its scalar column, which need not add up to one: (…, cells).
            points: between 0 and 1, one for each scalar column: (…, scalars).
        """
        ends = [part.cumsum(dim=-1) for part in torch.split(shares, self._counts, dim=-1)]
        below = torch.split(points * _BELOW_ONE, 1, dim=-1)
        pairs = zip(ends, below, strict=True)
        return self._join_places([torch.searchsorted(end, point * end[..., -1:], right=True) for end, point in pairs])

    def _to_shares(self, cells: Tensor) -> Tensor:
        """Return the exponentials of logits, the largest in each scalar column being 1."""
        parts = torch.split(cells, self._counts, dim=-1)
        return torch.cat([part - part.amax(dim=-1, keepdim=True) for part in parts], dim=-1).exp()

    def _join_places(self, cells: Sequence[Tensor]) -> Tensor:
        """Return the features of these cells, one of each scalar column."""
        starts = [self._at[name].start for name in self._bins]
        return torch.cat([cell + start for cell, start in zip(cells, starts, strict=True)], dim=-1)

    @property
    def are_scalars(self) -> bool:
        """Whether there are scalar columns and nothing else."""
        return self.width == self._cells

    def read_places(self, x: Tensor) -> Tensor:
        """Return the feature that is 1 in each scalar column: (…, scalars)."""
        parts = torch.split(x[..., : self._cells], self._counts, dim=-1)
        return self._join_places([part.argmax(dim=-1, keepdim=True) for part in parts])

    def at(self, name: str | None) -> slice:
        """Return the features of a column; an empty slice for None."""
        return slice(0, 0) if name is None else self._at[name]

    def spread_by_column(self, values: Mapping[str, float]) -> npt.NDArray[np.float64]:
        """Return the value of its column for each feature."""
        found = np.zeros(self.width)
        for name, at in [*self._at.items(), *self._gaps_at.items()]:
            found[at] = values[name]
        return found

    def to_cells(self, name: str, codes: Array) -> Array:
        """Return the cell of each code of a scalar column."""
        return self._bins[name].to_bins(codes).astype(np.int64)

    def logits(self, means: Tensor, *, least: float) -> Tensor:
        """Return the logits of independent features with these means, clamped to `least` and 1 − `least`."""
        least = min(max(least, _LEAST_MEAN), 0.25)
        kept = means.clamp(least, 1 - least)
        return torch.cat([kept[..., : self._cells].log(), kept[..., self._cells :].logit()], dim=-1)

    def means(self, logits: Tensor) -> Tensor:
        """Return the mean of each feature, given its logit; a missing intensity counts as 0, as in vectors."""
        groups = torch.split(logits[..., : self._cells], self._counts, dim=-1)
        found = torch.cat([*(cells.softmax(dim=-1) for cells in groups), logits[..., self._cells :].sigmoid()], dim=-1)
        levels, gaps = self.gapped
        found[..., levels] *= 1 - found[..., gaps]
        return found

    def compute_presence(self, means: Tensor) -> Tensor:
        """Return the share of records in which each feature is present: 1, except for intensities with gaps."""
        levels, gaps = self.gapped
        share = torch.ones_like(means)
        share[..., levels] = (1 - means[..., gaps]).clamp_min(_LEAST_SHARE)
        return share

    def condition_on_presence(self, means: Tensor) -> Tensor:
        """Return the means of present values, to which logits refer: means over all records count gaps as 0."""
        return (means / self.compute_presence(means)).clamp(0.0, 1.0)

    # --- logits to records ---

    def sample(self, logits: Tensor, rng: np.random.Generator, where: Where | None = None) -> Codes:
        """Draw a record that satisfies `where` from each row of logits; intensities are their means."""
        where = where or {}
        logits = self.restrict(logits.detach().cpu(), where)
        numbers, cells = logits.numpy(), self._draw_evenly(logits, rng)
        codes: Codes = {}
        for name, column in self.schema.columns.items():
            own = numbers[:, self._at[name]]
            if name in self._bins:
                within = to_code_set(where[name]) if name in where else None
                drawn = self._bins[name].to_codes(cells[name], rng, within)
            elif name in self._sets:
                codes[name] = _draw_sets(self._sets[name], own, rng)
                continue
            else:
                gaps = numbers[:, self._gaps_at[name]] if column.nullable else None
                drawn = _draw_levels(column, own, gaps, rng)
            codes[name] = drawn.reshape(len(numbers), *column.shape).astype(column.dtype, copy=False)
        return codes

    def _draw_evenly(self, logits: Tensor, rng: np.random.Generator) -> dict[str, Array]:
        """Draw a cell of each scalar column for each row of logits, by systematic sampling."""
        if not self._bins:
            return {}
        points = torch.from_numpy(np.stack([draw_points(len(logits), rng) for _ in self._bins], axis=1))
        places = self.find_places(self._to_shares(logits[:, : self._cells]), points.to(logits.dtype)).numpy()
        return {name: places[:, number] - self._at[name].start for number, name in enumerate(self._bins)}


class FeatureRows:
    """Records for a training; each row is encoded when it is taken.

    Args:
        features: of their schema.
        records: the records.
        device: where batches are wanted.
    """

    def __init__(self, features: Features, records: Records, device: Device = None) -> None:
        self._features, self._records = features, records
        self.device = torch.device("cpu" if device is None else device)

    def __len__(self) -> int:
        return len(self._records)

    def take(self, index: Index) -> Compact:
        """Return the rows at these places."""
        rows = {name: codes[index] for name, codes in self._records.codes.items()}
        return {key: torch.from_numpy(array).to(self.device) for key, array in self._features.to_compact(rows).items()}

    def take_vectors(self, index: Index) -> Tensor:
        """Return the vectors at these places."""
        return self._features.to_dense(self.take(index))


def join_codes(parts: Sequence[Codes]) -> Codes:
    """Concatenate the records of all parts, of which there is at least one."""
    from scipy import sparse

    if len(parts) == 1:
        return parts[0]
    return {
        name: sparse.vstack([part[name] for part in parts], format="csr")
        if sparse.issparse(first)
        else np.concatenate([part[name] for part in parts])
        for name, first in parts[0].items()
    }


def _draw_uniform(shape: Sequence[int], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw points between 0 and 1, on the same device."""
    return torch.rand(shape, generator=generator, device=like.device, dtype=like.dtype)


def _to_intensities(column: Column, codes: Array) -> Array:
    flat = codes.reshape(len(codes), math.prod(column.shape))
    levels = flat / np.float64(max(1, column.lattice_size - 1))
    return np.where(flat == column.null_code, -1.0, levels) if column.nullable else levels


def _draw_levels(column: Column, logits: Array, gaps: Array | None, rng: np.random.Generator) -> Array:
    from scipy.special import expit

    codes: Array = np.rint(expit(logits.astype(np.float64)) * (column.lattice_size - 1)).astype(np.int64)
    if gaps is None:
        return codes
    missing = rng.random(gaps.shape, np.float32) < expit(gaps)
    return np.asarray(np.where(missing, column.lattice_size, codes))


def _draw_sets(column: SetColumn, logits: Array, rng: np.random.Generator) -> Any:
    """Draw each item independently; a set that is too large loses items at random."""
    from scipy import sparse
    from scipy.special import expit

    held = draw_items(expit(logits), rng)
    large = np.flatnonzero(held.sum(axis=1) > column.max_size)
    if len(large):
        order = np.where(held[large], rng.random((len(large), held.shape[1]), np.float32), np.inf)
        kept = np.argpartition(order, column.max_size - 1, axis=1)[:, : column.max_size]
        held[large] = False
        held[large[:, None], kept] = True
    return sparse.csr_array(held.astype(np.uint8))
