"""Independent columns: noisy one-way marginals, made consistent, sampled. The honest floor for every other model.

1. Noise: column i has kᵢ cells. Minimising the expected total variation Σ kᵢσᵢ for a given cost Σ 1/σᵢ² gives σᵢ ∝
kᵢ^(−1/3). 2. Measure every histogram with discrete Gaussian noise. 3. All histograms count the same records: average
their totals by precision, and project each onto the simplex of that total. 4. Sample every column by itself, each
value as often as the marginal says.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from sundog.data.bins import Bins, bin_count, bins_for
from sundog.data.code_set import CodeSet
from sundog.data.columns import Column, SetColumn
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.models.independent.released import (
    ReleasedIndependent,
    marginal_keys,
    marginal_purpose,
    touched_cells,
    unpaid_marginals,
)
from sundog.models.protocol import Codes, FitContext, Parts, Plan, State, Where, allowed
from sundog.models.systematic_sampling import even_cells
from sundog.privacy.calibration import smallest_noise
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.ledger_views import Disjoint
from sundog.privacy.measure_once import measure_once
from sundog.privacy.mechanisms import Histogram, histogram_charge, noisy_histograms

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


_LEAST = 1e-12  # probability


class Independent:
    """One-way marginals of every column."""

    name: ClassVar[str] = "independent"
    options: ClassVar[frozenset[str]] = frozenset()
    defaults: ClassVar[Mapping[str, Any]] = {}
    counts_records: ClassVar[bool] = False  # the histograms themselves tell
    choices: Mapping[str, int] = {}
    assumptions: Sequence[str] = ()
    private: State | None = None

    def __init__(self, schema: Schema, marginals: dict[str, Floats], records: int) -> None:
        """Takes probabilities: (cells,) of a scalar column, (positions, cells) of an array, (items,) of sets."""
        self.schema = schema
        self.marginals = marginals
        self.records = records

    @functools.cached_property
    def _samplers(self) -> dict[str, _Sampler]:
        return {name: _Sampler(self.schema.columns[name], p) for name, p in self.marginals.items()}

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        """There are none."""

    @classmethod
    def check(cls, schema: Schema, settings: Mapping[str, Any]) -> None:
        """Takes every schema."""

    @classmethod
    def plan(
        cls,
        schema: Schema,
        budget: Budget,
        *,
        already: Sequence[Charge],
        records: int | None,  # noqa: ARG003  the marginals do without it
        settings: Mapping[str, Any],  # noqa: ARG003  there are none
    ) -> Plan:
        """The noise of each column's marginal; columns marked public are measured exactly and cost nothing."""
        private = {name: column for name, column in schema.columns.items() if not column.public}
        if not private:
            return Plan(charges=(), settings={"sigma": {}})
        weights = {name: _cells(column) ** (-1 / 3) for name, column in private.items()}

        def charges(scale: float) -> list[Charge]:
            return [_charge(name, private[name], scale * weight, schema.cap) for name, weight in weights.items()]

        scale = smallest_noise(lambda s: [*already, *charges(s)], epsilon=budget.epsilon, delta=budget.delta)
        sigma = {name: scale * weight for name, weight in weights.items()}
        return Plan(charges=tuple(charges(scale)), settings={"sigma": sigma})

    @classmethod
    def fit(cls, records: Records, plan: Plan, ledger: Ledger, context: FitContext) -> Self:
        """Measures every marginal for one charge of the ledger, then makes them consistent."""
        return cls.fit_parts(records, Parts.whole(len(records)), plan, ledger, context)[0]

    @classmethod
    def fit_parts(cls, records: Records, parts: Parts, plan: Plan, ledger: Ledger, context: FitContext) -> list[Self]:
        """One for each part, all of them for the price of one: a record is in one part only."""
        sigma: Mapping[str, float] = plan.settings["sigma"]
        counts = _count_all(records, parts, context)

        def measure(ledger: Ledger) -> dict[str, npt.NDArray[Any]]:
            noisy = [
                noisy_histograms(_histograms(records.schema, part, sigma), ledger=own)
                for part, own in zip(counts, Disjoint.parts(ledger, len(counts)), strict=True)
            ]
            return {str(place): np.stack(measured) for place, measured in enumerate(zip(*noisy, strict=True))}

        found = measure_once("marginals", plan.charges, measure, ledger, context.checkpoint) if sigma else {}
        return [
            cls._consistent(records.schema, {**part, **_part(found, sigma, number)}, sigma)
            for number, part in enumerate(counts)
        ]

    @classmethod
    def _consistent(cls, schema: Schema, noisy: Mapping[str, Integers], sigma: Mapping[str, float]) -> Self:
        total = _total(schema, noisy, sigma)
        marginals = {name: _marginal(schema.columns[name], noisy[name], total) for name in schema.columns}
        return cls(schema, marginals, total)

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draws every column by itself; a condition changes its column and no other."""
        codes: Codes = {name: self._samplers[name].draw(n, rng) for name in self.schema.columns}
        for name, codes_of in where.items():  # afterwards: the other columns keep the values that they have without
            codes[name] = self._samplers[name].draw(n, rng, allowed(codes_of))
        return codes

    def log_evidence(self, where: Where) -> float:
        """The sum over the columns, each of which is by itself."""
        total = 0.0
        for name, codes in where.items():
            shares = bins_for(self.schema.columns[name]).shares(allowed(codes))
            total += math.log(max(float(self.marginals[name] @ shares), _LEAST))
        return total

    def unexplained(self, charges: Sequence[Charge]) -> list[str]:
        """Private marginals that no charge paid for."""
        return unpaid_marginals(self.schema, charges)

    def state(self) -> State:
        """The marginals, by the place of their column: names may hold what no file should."""
        return State(
            tensors=dict(zip(marginal_keys(self.schema), self.marginals.values(), strict=True)),
            config={"records": self.records},
        )

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Checks that the marginals are ones and fit the schema."""
        released = ReleasedIndependent(schema, state)
        marginals = {name: state.tensors[key] for name, key in zip(schema.columns, marginal_keys(schema), strict=True)}
        return cls(schema, marginals, released.records)


# --- what is measured of a column ----------------------------------------------------------------------------------


def _cells(column: Column) -> int:
    return 2 if isinstance(column, SetColumn) else bin_count(column)


def _positions(column: Column) -> int:
    return math.prod(column.shape)


def _charge(name: str, column: Column, sigma: float, contribution: int) -> Charge:
    return histogram_charge(
        sigma=sigma, purpose=marginal_purpose(name), touched=touched_cells(column), contribution=contribution
    )


def _count_all(records: Records, parts: Parts, context: FitContext) -> list[dict[str, Integers]]:
    """The exact counts of every column in each part."""
    columns, found = records.schema.columns, []
    for number in range(len(parts.sizes)):
        part = records if parts.owner is None else records.take(parts.owner == number)
        counts = {}
        for done, (name, column) in enumerate(columns.items()):
            context.progress("counting", (number + done / len(columns)) / len(parts.sizes))
            counts[name] = _count(column, part.codes[name])
        found.append(counts)
    return found


def _histograms(schema: Schema, counts: Mapping[str, Integers], sigma: Mapping[str, float]) -> list[Histogram]:
    """What is measured with noise: all but the public columns."""
    return [
        Histogram(counts[name], scale, marginal_purpose(name), touched_cells(schema.columns[name]), schema.cap)
        for name, scale in sigma.items()
    ]


def _part(found: Mapping[str, npt.NDArray[Any]], sigma: Mapping[str, float], number: int) -> dict[str, Integers]:
    """The noisy counts of one part; columns are kept by their place, because names may hold what no file should."""
    return {name: found[str(place)][number] for place, name in enumerate(sigma)}


def _count(column: Column, codes: Any) -> Integers:
    if isinstance(column, SetColumn):
        return np.append(np.bincount(codes.indices, minlength=column.shape[0]), codes.shape[0]).astype(np.int64)
    bins = bins_for(column)
    if not column.shape:
        return np.bincount(bins.to_bins(codes), minlength=bins.count).astype(np.int64)
    positions = _positions(column)
    counts = np.zeros(positions * bins.count, np.int64)
    offsets = np.arange(positions) * bins.count
    rows = max(1, 2**22 // positions)  # a few MB at a time, however many records there are
    for start in range(0, len(codes), rows):
        flat = bins.to_bins(codes[start : start + rows].reshape(-1, positions)).astype(np.int64) + offsets
        counts += np.bincount(flat.ravel(), minlength=len(counts))
    return counts.reshape(positions, bins.count)


# --- consistency: post-processing, free ----------------------------------------------------------------------------


def _total(schema: Schema, noisy: Mapping[str, Integers], sigma: Mapping[str, float]) -> int:
    """The number of records on which all histograms agree best: the average of their totals, weighted by precision."""
    exact = [name for name in noisy if name not in sigma]
    if exact:  # a public column tells how many records there are
        return max(1, round(float(np.mean(_totals_of(schema.columns[exact[0]], noisy[exact[0]])))))
    weighted, weight = 0.0, 0.0
    for name, counts in noisy.items():
        totals = _totals_of(schema.columns[name], counts)
        cells = 1 if isinstance(schema.columns[name], SetColumn) else counts.shape[-1]
        precision = len(totals) / (cells * sigma[name] ** 2)
        weighted += precision * float(np.mean(totals))
        weight += precision
    return max(1, round(weighted / weight))


def _totals_of(column: Column, counts: Integers) -> Integers:
    return counts[-1:] if isinstance(column, SetColumn) else np.atleast_1d(counts.sum(axis=-1))


def _marginal(column: Column, noisy: Integers, total: int) -> Floats:
    if isinstance(column, SetColumn):
        return np.asarray(np.clip(noisy[:-1] / total, 0.0, 1.0))
    return _to_simplex(noisy / total)


def _to_simplex(p: Floats) -> Floats:
    """The nearest probabilities, along the last axis (Duchi et al. 2008)."""
    k = p.shape[-1]
    ordered = -np.sort(-p, axis=-1)
    excess = np.cumsum(ordered, axis=-1) - 1
    support = (ordered - excess / np.arange(1, k + 1) > 0).sum(axis=-1, keepdims=True)
    threshold = np.take_along_axis(excess, support - 1, axis=-1) / support
    nearest = np.maximum(p - threshold, 0.0)
    return np.asarray(nearest / nearest.sum(axis=-1, keepdims=True))


def _restricted(p: Floats, shares: Floats) -> Floats:
    """The probabilities under a condition: codes are uniform in a cell, so it keeps the share that is allowed.

    What was measured as impossible can be asked for all the same: then what is allowed is uniform.
    """
    kept = p * shares
    return kept if kept.any() else shares


class _Sampler:
    """Draws the codes of one column."""

    def __init__(self, column: Column, p: Floats) -> None:
        self.column = column
        self.p = p
        self.bins: Bins | None = None if isinstance(column, SetColumn) else bins_for(column)

    def draw(self, n: int, rng: np.random.Generator, within: CodeSet | None = None) -> Any:
        if self.bins is None:
            return self._draw_sets(n, rng)
        p = self.p if within is None else _restricted(self.p, self.bins.shares(within))
        codes = self.bins.to_codes(even_cells(p, n, rng), rng, within)
        return codes.reshape(n, *self.column.shape).astype(self.column.dtype, copy=False)

    def _draw_sets(self, n: int, rng: np.random.Generator) -> Any:
        """Each item in as many sets as its probability says, whichever these are."""
        from scipy import sparse

        holders = np.floor(n * self.p + rng.random(len(self.p))).astype(np.int64)  # its mean is n · p
        items = np.repeat(np.arange(len(holders)), holders)
        rows = [rng.choice(n, k, replace=False, shuffle=False) for k in holders if k]
        row = np.concatenate(rows) if rows else np.empty(0, np.int64)
        shuffled = rng.permutation(len(row))  # so that a set over the limit loses items at random
        row, items = row[shuffled], items[shuffled]
        order = np.argsort(row, kind="stable")
        row, items = row[order], items[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        assert isinstance(self.column, SetColumn)  # noqa: S101
        kept = rank < self.column.max_size
        ones = np.ones(int(kept.sum()), np.uint8)
        drawn = sparse.csr_array((ones, (row[kept], items[kept])), shape=(n, len(holders)))
        drawn.sort_indices()
        return drawn
