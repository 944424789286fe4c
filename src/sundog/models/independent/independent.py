"""Independent columns: noisy one-way marginals, made consistent, sampled. The baseline for every other model.

1. Noise: column i has kᵢ cells. Minimising the expected total variation Σ kᵢσᵢ for a given cost Σ 1/σᵢ² gives σᵢ ∝
kᵢ^(−1/3). 2. Measure every histogram with discrete Gaussian noise. 3. All histograms count the same records: average
their totals by precision, and project each onto the simplex of that total. 4. Sample every column by itself, each
value as often as the marginal says.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from sundog.data.bins import make_bins
from sundog.data.columns import AnyColumn
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.models.independent.column_marginals import Floats, Integers, Sampler, marginal_of
from sundog.models.independent.configuration import IndependentConfiguration
from sundog.models.independent.released import ReleasedIndependent, marginal_keys, marginal_purpose
from sundog.models.protocol import Codes, FitContext, Parts, State, Where, allowed_codes
from sundog.privacy.calibration import smallest_noise
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.ledger_views import Disjoint
from sundog.privacy.measure_once import measure_once
from sundog.privacy.mechanisms import Histogram, histogram_charge, noisy_histograms

_LEAST = 1e-12  # probability


@dataclass(frozen=True)
class IndependentPlan:
    """The noise of each marginal.

    Args:
        charges: one for each private column.
        sigma: the standard deviation of the noise on each cell, by column.
    """

    charges: tuple[Charge, ...]
    sigma: Mapping[str, float]


class Independent:
    """One-way marginals of every column."""

    name: ClassVar[str] = "independent"

    def __init__(self, schema: Schema, marginals: dict[str, Floats], records: int) -> None:
        """Take probabilities: (cells,) of a scalar column, (positions, cells) of an array, (items,) of sets."""
        self.schema = schema
        self.marginals = marginals
        self.records = records

    @functools.cached_property
    def _samplers(self) -> dict[str, Sampler]:
        return {name: Sampler(marginal_of(self.schema.columns[name]), p) for name, p in self.marginals.items()}

    @classmethod
    def plan(
        cls,
        schema: Schema,
        budget: Budget,
        configuration: IndependentConfiguration,  # noqa: ARG003  there is nothing to set
        *,
        already: Sequence[Charge],
        records: int | None,  # noqa: ARG003  the marginals do without it
    ) -> IndependentPlan:
        """Plans the noise of each column's marginal; public columns are measured exactly and cost nothing."""
        private = {name: column for name, column in schema.columns.items() if not column.public}
        if not private:
            return IndependentPlan(charges=(), sigma={})
        weights = {name: marginal_of(column).cells ** (-1 / 3) for name, column in private.items()}

        def charges(scale: float) -> list[Charge]:
            return [_charge(name, private[name], scale * weight, schema.cap) for name, weight in weights.items()]

        scale = smallest_noise(lambda s: [*already, *charges(s)], epsilon=budget.epsilon, delta=budget.delta)
        sigma = {name: scale * weight for name, weight in weights.items()}
        return IndependentPlan(charges=tuple(charges(scale)), sigma=sigma)

    @classmethod
    def fit(cls, records: Records, plan: IndependentPlan, ledger: Ledger, context: FitContext) -> Self:
        """Measure every marginal for one charge of the ledger, then make them consistent."""
        return cls.fit_parts(records, Parts.whole(len(records)), plan, ledger, context)[0]

    @classmethod
    def fit_parts(
        cls, records: Records, parts: Parts, plan: IndependentPlan, ledger: Ledger, context: FitContext
    ) -> list[Self]:
        """Return one for each part, all of them for the price of one: a record is in one part only."""
        sigma = plan.sigma
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
        columns = schema.columns.items()
        marginals = {name: marginal_of(column).to_probabilities(noisy[name], total) for name, column in columns}
        return cls(schema, marginals, total)

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draw every column by itself; a condition changes its column and no other."""
        codes: Codes = {name: self._samplers[name].draw(n, rng) for name in self.schema.columns}
        for name, codes_of in where.items():  # afterwards: the other columns keep the values that they have without
            codes[name] = self._samplers[name].draw(n, rng, allowed_codes(codes_of))
        return codes

    def log_evidence(self, where: Where) -> float:
        """Return the sum over the columns, each of which is by itself."""
        total = 0.0
        for name, codes in where.items():
            shares = make_bins(self.schema.columns[name]).compute_shares(allowed_codes(codes))
            total += math.log(max(float(self.marginals[name] @ shares), _LEAST))
        return total

    def state(self) -> State:
        """Return the marginals, by the place of their column: names may hold what no file should."""
        return State(
            tensors=dict(zip(marginal_keys(self.schema), self.marginals.values(), strict=True)),
            config={"records": self.records},
        )

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Check that the marginals are ones and fit the schema."""
        released = ReleasedIndependent(schema, state)
        marginals = {name: state.tensors[key] for name, key in zip(schema.columns, marginal_keys(schema), strict=True)}
        return cls(schema, marginals, released.records)


# --- what is measured of a column ----------------------------------------------------------------------------------


def _charge(name: str, column: AnyColumn, sigma: float, contribution: int) -> Charge:
    return histogram_charge(
        sigma=sigma, purpose=marginal_purpose(name), touched=marginal_of(column).touched, contribution=contribution
    )


def _count_all(records: Records, parts: Parts, context: FitContext) -> list[dict[str, Integers]]:
    """Return the exact counts of every column in each part."""
    columns, found = records.schema.columns, []
    for number in range(len(parts.sizes)):
        part = records if parts.owner is None else records.take(parts.owner == number)
        counts = {}
        for done, (name, column) in enumerate(columns.items()):
            context.progress("counting", (number + done / len(columns)) / len(parts.sizes))
            counts[name] = marginal_of(column).count(part.codes[name])
        found.append(counts)
    return found


def _histograms(schema: Schema, counts: Mapping[str, Integers], sigma: Mapping[str, float]) -> list[Histogram]:
    """Return what is measured with noise: all but the public columns."""
    return [
        Histogram(counts[name], scale, marginal_purpose(name), marginal_of(schema.columns[name]).touched, schema.cap)
        for name, scale in sigma.items()
    ]


def _part(found: Mapping[str, npt.NDArray[Any]], sigma: Mapping[str, float], number: int) -> dict[str, Integers]:
    """Return the noisy counts of one part; columns are kept by their place, because names may hold what no file should."""
    return {name: found[str(place)][number] for place, name in enumerate(sigma)}


# --- consistency: post-processing, free ----------------------------------------------------------------------------


def _total(schema: Schema, noisy: Mapping[str, Integers], sigma: Mapping[str, float]) -> int:
    """Return the number of records on which all histograms agree best: the average of their totals, weighted by precision."""
    exact = [name for name in noisy if name not in sigma]
    if exact:  # a public column tells how many records there are
        totals, _ = marginal_of(schema.columns[exact[0]]).totals(noisy[exact[0]])
        return max(1, round(float(np.mean(totals))))
    weighted, weight = 0.0, 0.0
    for name, counts in noisy.items():
        totals, cells = marginal_of(schema.columns[name]).totals(counts)
        precision = len(totals) / (cells * sigma[name] ** 2)
        weighted += precision * float(np.mean(totals))
        weight += precision
    return max(1, round(weighted / weight))
