"""Learning from one part of the records: rounds of choosing marginals and measuring them.

The learner holds exact counts, and shows them through noise only: `select` and `measure` draw it from a ledger that
was charged. Everything else is computed from what they returned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.data.schema import Schema
from sundog.models.marginals.bucket_tree import BucketTree, Clique, GrowingTree, eliminate
from sundog.models.marginals.clique_selection import (
    bound_weight,
    choose_by_exponential_mechanism,
    choose_by_scores,
    expect_noise,
    score_cliques,
)
from sundog.models.marginals.configuration import MarginalsConfiguration
from sundog.models.marginals.counting import count_cliques
from sundog.models.marginals.estimation import Measurement, estimate_potentials
from sundog.models.marginals.inference import Floats, calibrate
from sundog.models.marginals.marginals_plan import Round
from sundog.models.marginals.released import list_scalars
from sundog.models.marginals.tree_sampling import draw_records
from sundog.models.marginals.variable import Variable
from sundog.privacy.events import DiscreteGaussian, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms.counts import Histogram, draw_histogram_noise

Integers = npt.NDArray[np.int64]

_OVERSAMPLING = 8  # records drawn for each record, to compare the model with the counts
_MOST_DRAWN = 400_000
_ITERATIONS, _TOLERANCE = 60, 1e-3  # of the fits between rounds
_LAST_ITERATIONS, _LAST_TOLERANCE = 1000, 1e-4


class Learner:
    """A model of one part of the records, on its way.

    Args:
        schema: of the records.
        configuration: of the model.
        codes: the private codes of each column.
        variables: the scalar columns, grouped.
        total: the number of records, as measured.
        measured: the noisy counts of each variable.
        rng: for records drawn from the model.
    """

    def __init__(
        self,
        schema: Schema,
        configuration: MarginalsConfiguration,
        codes: Mapping[str, npt.NDArray[Any]],
        variables: list[Variable],
        total: float,
        measured: Mapping[Clique, Measurement],
        rng: np.random.Generator,
    ) -> None:
        self.cap, self.configuration, self.rng = schema.cap, configuration, rng
        self.variables, self.total, self.measured = variables, total, dict(measured)
        names = list_scalars(schema)
        self.target = names.index(schema.target) if schema.target in names else None
        self.weight = bound_weight(schema)
        self.sizes = tuple(variable.size for variable in variables)
        self.pairs = list(combinations(range(len(variables)), 2))
        self._values = [variable.encode(codes[name]) for name, variable in zip(names, variables, strict=True)]
        self._counts: dict[Clique, Integers] = {}
        self.potentials: dict[Clique, Floats] = {}
        self.estimate()

    @property
    def tree(self) -> BucketTree:
        """The bucket tree of what was measured so far."""
        return eliminate(self.sizes, self.measured)

    def estimate(self, iterations: int = _ITERATIONS, tolerance: float = _TOLERANCE) -> None:
        """Fit the potentials to what was measured so far."""
        self.potentials = estimate_potentials(
            self.tree,
            self.measured,
            self.total,
            fixed={},
            start=self.potentials,
            iterations=iterations,
            tolerance=tolerance,
        )

    def select(self, each: Round, ledger: Ledger) -> list[Clique]:
        """Return what to measure, chosen with noise; the caller has paid for it.

        Where no pair is worth its noise, single columns are measured again.
        """
        expected = self._expect(self.pairs)
        scores = score_cliques(self._count(self.pairs), expected, cap=self.cap)
        tree = GrowingTree(self.sizes, self.measured, self.configuration.cells)
        event = each.choice.event
        if isinstance(event, Pure):
            gains = self._compute_gains(each, expected, scores)
            chosen = choose_by_exponential_mechanism(
                gains, tree, each.cliques, scale=event.epsilon / (2 * self.weight), noise=ledger.noise
            )
        else:
            assert isinstance(event, DiscreteGaussian)  # noqa: S101  as planned
            noisy = scores + ledger.noise.discrete_gaussian(sigma=event.sigma, size=len(scores))
            chosen = choose_by_scores(self._compute_gains(each, expected, noisy), tree, each.cliques)
        return chosen or list(self.measured)[: each.cliques]

    def measure(self, each: Round, clique: Clique, units: int, ledger: Ledger) -> Integers:
        """Return the sum of several noisy counts of a clique; the caller has paid for them.

        Each is a measurement with noise of its own, and so is what each slot of a unit's records adds to it.
        """
        slots = Histogram(
            units * self._count([clique])[clique], each.sigma, each.choice.purpose, contribution=units * self.cap
        )
        return slots.counts + draw_histogram_noise(slots, ledger)

    def learn(self, each: Round, clique: Clique, units: int, noisy: Integers) -> None:
        """Take note of a measurement."""
        found = Measurement(noisy / units, each.sigma**2 * self.cap / units)
        known = self.measured.get(clique)
        self.measured[clique] = found if known is None else known.combine(found)

    def finish(self) -> None:
        """Fit the potentials to convergence."""
        self.estimate(_LAST_ITERATIONS, _LAST_TOLERANCE)

    def _count(self, cliques: Sequence[Clique]) -> dict[Clique, Integers]:
        """Return the exact counts of some cliques; those of pairs are kept."""
        new = [clique for clique in cliques if clique not in self._counts]
        counted = count_cliques(self._values, self.sizes, new)
        self._counts.update({clique: cells for clique, cells in counted.items() if len(clique) == 2})
        return {clique: counted[clique] if clique in counted else self._counts[clique] for clique in cliques}

    def _expect(self, cliques: Sequence[Clique]) -> dict[Clique, Integers]:
        """Return how many records the model has in each cell, rounded, by drawing records from it."""
        drawn = int(min(_OVERSAMPLING * self.total, _MOST_DRAWN)) + 1
        records = draw_records(calibrate(self.tree, self.potentials), drawn, self.rng)
        counts = count_cliques(list(records), self.sizes, cliques)
        return {clique: np.rint(cells * (self.total / drawn)).astype(np.int64) for clique, cells in counts.items()}

    def _compute_gains(self, each: Round, expected: Mapping[Clique, Integers], scores: Integers) -> dict[Clique, float]:
        """Return how much nearer a measurement would bring the model to each clique, in units of `cap` records."""
        deviation = each.sigma * math.sqrt(self.cap * each.cliques / each.units)
        gains = {}
        for (clique, cells), score in zip(expected.items(), scores.tolist(), strict=True):
            weight = self.weight if self.target in clique else 1.0
            gains[clique] = weight * (score - expect_noise(cells, deviation) / self.cap)
        return gains
