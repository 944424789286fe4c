"""Canaries for models of marginals: records in cells that are declared and that no other record can be in.

The fit that is audited learns a widened table: every private column with one value a record becomes a category for each
of its bins, and one for each canary. A canary has its own category in every column, so it changes all the counts that a
record can change, and nobody else is in its cells. What the release says about these cells is the score: the
probabilities that came out of the noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from sundog.data.bins import make_bins
from sundog.data.columns import CategoricalColumn, Form
from sundog.data.records import Records, stack_codes
from sundog.data.schema import Schema
from sundog.errors import NotApplicableError

Floats = npt.NDArray[np.float64]

_LEAST_NOISE = 0.1  # in a cell; only scores depend on it


class HasMarginals(Protocol):
    """A model of one-way marginals, and of others.

    Args:
        marginals: the probabilities of each column's values, by name.
        records: about how many records it was fitted on.
    """

    marginals: Mapping[str, Floats]
    records: int


@dataclass(frozen=True)
class TableCanaries:
    """A table with cells for canaries.

    Args:
        records: the private records, of a complete schema.
        canaries: how many there are, included or not.
    """

    records: Records
    canaries: int

    @property
    def _names(self) -> list[str]:
        return [name for name, column in self.records.schema.columns.items() if column.form is Form.SCALAR]

    @cached_property
    def schema(self) -> Schema:
        """The schema of the widened table: without public columns, which are counted exactly, and without rules."""
        columns: dict[str, Any] = {}
        for name, column in self.records.schema.columns.items():
            if column.public:
                continue
            values = [str(cell) for cell in range(column.bin_count + self.canaries)] if name in self._names else []
            columns[name] = CategoricalColumn(values=tuple(values)) if values else column
        if not set(columns) & set(self._names):
            raise NotApplicableError("canaries need a private column with one value a record; the schema has none")
        target = self.records.schema.target
        changed = {"columns": columns, "rules": (), "target": target if target in columns else None}
        return self.records.schema.model_copy(update=changed)

    def plant(self, included: npt.NDArray[np.bool_]) -> Records:
        """Return the widened table and the canaries that are included, each with all records that a person may have."""
        cap = self.schema.cap
        planted = np.repeat(np.flatnonzero(included), cap)
        codes = {name: self._plant_column(name, planted) for name in self.schema.columns}
        unit = self.records.unit
        if unit is not None:
            people = int(unit.max(initial=-1)) + 1
            unit = np.append(unit, people + np.repeat(np.arange(int(included.sum())), cap))
        return Records(self.schema, codes, len(self.records) + len(planted), unit)

    def _plant_column(self, name: str, planted: npt.NDArray[np.int64]) -> Any:
        own, column = self.records.codes[name], self.records.schema.columns[name]
        if name in self._names:
            bins = make_bins(column).to_bins(own).astype(np.int64)
            cells = np.append(bins, column.bin_count + planted)
            return cells.astype(self.schema.columns[name].dtype)
        if sparse.issparse(own):
            return stack_codes([own, sparse.csr_array((len(planted), own.shape[1]), dtype=own.dtype)])
        return stack_codes([own, np.zeros((len(planted), *own.shape[1:]), own.dtype)])

    def score(self, components: Sequence[HasMarginals]) -> Floats:
        """Return how much likelier a release is if a canary is included, as the logarithm of a ratio.

        Columns are independent. A canary is in one component, which is not known.
        """
        prior = 0.5 / len(components)
        names = [name for name in self._names if name in self.schema.columns]
        ratios = [
            sum(
                compute_cell_log_ratios(
                    each.records * each.marginals[name][-self.canaries :], shift=self.schema.cap, prior=prior
                )
                for name in names
            )
            for each in components
        ]
        return np.asarray(special.logsumexp(ratios, axis=0)) - math.log(len(components))


def compute_cell_log_ratios(cells: Floats, *, shift: float, prior: float) -> Floats:
    """Return the log-likelihood ratio of each cell, between a canary in it and none.

    Noisy counts became probabilities by a threshold that was subtracted from all; what was below is zero. The cells are
    taken for normal numbers of one variance: the share of zeros and the mean of the others tell threshold and variance.

    >>> included = np.random.default_rng(1).random(10_000) < 0.5
    >>> noisy = included + np.random.default_rng(0).normal(size=10_000)
    >>> found = compute_cell_log_ratios(np.maximum(0, noisy - 0.8), shift=1.0, prior=0.5)
    >>> bool(abs(found[noisy > 0.8] - (noisy[noisy > 0.8] - 0.5)).max() < 0.2), round(float(found.min()), 1)
    (True, -0.6)

    Args:
        cells: what a release says is in each cell, of which some are zero.
        shift: what a canary adds.
        prior: the share of cells with a canary.
    """
    below = cells <= 0
    share = float(below.mean())
    if share == 1.0:
        return np.zeros(len(cells))
    if share == 0.0:
        deviation, threshold = float(cells.std()), -float(cells.mean())
    else:
        threshold = float(special.ndtri(share))
        density = math.exp(-(threshold**2) / 2) / math.sqrt(2 * math.pi)
        deviation = float(cells[~below].mean()) / (density / (1 - share) - threshold)
        threshold *= deviation
    threshold += prior * shift
    noise = math.sqrt(max(deviation**2 - prior * (1 - prior) * shift**2, _LEAST_NOISE**2))
    clipped = special.log_ndtr((threshold - shift) / noise) - special.log_ndtr(threshold / noise)
    seen = shift * (cells + threshold - shift / 2) / noise**2
    return np.where(below, clipped, seen)
