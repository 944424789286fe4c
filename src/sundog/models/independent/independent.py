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
from sundog.models.independent.column_marginals import Floats, Integers, Sampler, get_marginal
from sundog.models.independent.configuration import IndependentConfiguration
from sundog.models.independent.released import ReleasedIndependent, list_marginal_keys, name_marginal_purpose
from sundog.models.protocol import Codes, FitContext, Parts, State, Where, to_code_set
from sundog.privacy.calibration import find_smallest_noise
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.ledger_views import Disjoint
from sundog.privacy.measure_once import measure_once
from sundog.privacy.mechanisms import Histogram, compute_histogram_charge, noisy_histograms

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
        return {name: Sampler(get_marginal(self.schema.columns[name]), p) for name, p in self.marginals.items()}

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
        """Plan the noise of each column's marginal; public columns are measured exactly and cost nothing."""
        private = {name: column for name, column in schema.columns.items() if not column.public}
        if not private:
            return IndependentPlan(charges=(), sigma={})
        weights = {name: get_marginal(column).cells ** (-1 / 3) for name, column in private.items()}

        def make_charges(scale: float) -> list[Charge]:
            return [_make_charge(name, private[name], scale * weight, schema.cap) for name, weight in weights.items()]

        scale = find_smallest_noise(lambda s: [*already, *make_charges(s)], epsilon=budget.epsilon, delta=budget.delta)
        sigma = {name: scale * weight for name, weight in weights.items()}
        return IndependentPlan(charges=tuple(make_charges(scale)), sigma=sigma)

    @classmethod
    def fit(cls, records: Records, plan: IndependentPlan, ledger: Ledger, context: FitContext) -> Self:
        """Measure every marginal for one charge of the ledger, then make them consistent."""
        return cls.fit_parts(records, Parts.whole(len(records)), plan, ledger, context)[0]

    @classmethod
    def fit_parts(
        cls, records: Records, parts: Parts, plan: IndependentPlan, ledger: Ledger, context: FitContext
    ) -> list[Self]:
        """Measure the marginals of each part. A record is in one part only, so all parts cost as much as one."""
        sigma = plan.sigma
        counts = _count_all(records, parts, context)

        def measure(ledger: Ledger) -> dict[str, npt.NDArray[Any]]:
            noisy = [
                noisy_histograms(_list_histograms(records.schema, part, sigma), ledger=own)
                for part, own in zip(counts, Disjoint.split(ledger, len(counts)), strict=True)
            ]
            return {str(place): np.stack(measured) for place, measured in enumerate(zip(*noisy, strict=True))}

        found = measure_once("marginals", plan.charges, measure, ledger, context.checkpoint) if sigma else {}
        return [
            cls._make_consistent(records.schema, {**part, **_select_part(found, sigma, number)}, sigma)
            for number, part in enumerate(counts)
        ]

    @classmethod
    def _make_consistent(cls, schema: Schema, noisy: Mapping[str, Integers], sigma: Mapping[str, float]) -> Self:
        total = estimate_total(schema, noisy, sigma)
        columns = schema.columns.items()
        marginals = {name: get_marginal(column).to_probabilities(noisy[name], total) for name, column in columns}
        return cls(schema, marginals, total)

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draw every column by itself; a condition changes its column and no other."""
        codes: Codes = {name: self._samplers[name].draw(n, rng) for name in self.schema.columns}
        for name, codes_of in where.items():  # last: the other columns are drawn as without conditions
            codes[name] = self._samplers[name].draw(n, rng, to_code_set(codes_of))
        return codes

    def log_evidence(self, where: Where) -> float:
        """Return the log-probability of the conditions, summed over the columns."""
        total = 0.0
        for name, codes in where.items():
            shares = make_bins(self.schema.columns[name]).compute_shares(to_code_set(codes))
            total += math.log(max(float(self.marginals[name] @ shares), _LEAST))
        return total

    def log_density(self, records: Records) -> Floats:
        """Return the logarithm of the probability of each record."""
        parts = (get_marginal(self.schema.columns[name]) for name in self.marginals)
        logs = [
            marginal.compute_log_density(p, records.codes[name])
            for marginal, (name, p) in zip(parts, self.marginals.items(), strict=True)
        ]
        return np.asarray(np.sum(logs, axis=0))

    def state(self) -> State:
        """Return the marginals, by the place of their column."""
        return State(
            tensors=dict(zip(list_marginal_keys(self.schema), self.marginals.values(), strict=True)),
            config={"records": self.records},
        )

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Return the model of a state; raise ReleaseError if its marginals do not fit the schema."""
        released = ReleasedIndependent(schema, state)
        keys = list_marginal_keys(schema)
        marginals = {name: state.tensors[key].copy() for name, key in zip(schema.columns, keys, strict=True)}
        return cls(schema, marginals, released.records)


# --- measurements ----------------------------------------------------------------------------------


def _make_charge(name: str, column: AnyColumn, sigma: float, contribution: int) -> Charge:
    return compute_histogram_charge(
        sigma=sigma,
        purpose=name_marginal_purpose(name),
        touched=get_marginal(column).touched,
        contribution=contribution,
    )


def _count_all(records: Records, parts: Parts, context: FitContext) -> list[dict[str, Integers]]:
    """Return the exact counts of every column in each part."""
    columns, found = records.schema.columns, []
    for number in range(len(parts.sizes)):
        part = records if parts.owner is None else records.take(parts.owner == number)
        counts = {}
        for done, (name, column) in enumerate(columns.items()):
            context.progress("counting", (number + done / len(columns)) / len(parts.sizes))
            counts[name] = get_marginal(column).count(part.codes[name])
        found.append(counts)
    return found


def _list_histograms(schema: Schema, counts: Mapping[str, Integers], sigma: Mapping[str, float]) -> list[Histogram]:
    """Return the histograms to measure with noise: those of all private columns."""
    return [
        Histogram(
            counts[name], scale, name_marginal_purpose(name), get_marginal(schema.columns[name]).touched, schema.cap
        )
        for name, scale in sigma.items()
    ]


def _select_part(found: Mapping[str, npt.NDArray[Any]], sigma: Mapping[str, float], number: int) -> dict[str, Integers]:
    """Return the noisy counts of one part; the file has numbers instead of names, which may hold any character."""
    return {name: found[str(place)][number] for place, name in enumerate(sigma)}


# --- consistency: post-processing, free ----------------------------------------------------------------------------


def estimate_total(schema: Schema, noisy: Mapping[str, npt.NDArray[Any]], sigma: Mapping[str, float]) -> int:
    """Return the number of records on which all histograms agree best: an average of their totals, by precision.

    Args:
        schema: of the records.
        noisy: the counts of each column.
        sigma: the standard deviation of the noise in them; none, or zero, for public columns.
    """
    exact = [name for name in noisy if not sigma.get(name)]
    if exact:  # a public column is counted exactly
        totals, _ = get_marginal(schema.columns[exact[0]]).compute_totals(noisy[exact[0]])
        return max(1, round(float(np.mean(totals))))
    weighted, weight = 0.0, 0.0
    for name, counts in noisy.items():
        totals, cells = get_marginal(schema.columns[name]).compute_totals(counts)
        precision = len(totals) / (cells * sigma[name] ** 2)
        weighted += precision * float(np.mean(totals))
        weight += precision
    return max(1, round(weighted / weight))
