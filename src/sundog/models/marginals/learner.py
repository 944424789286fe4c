"""Learning from one part of the records: rounds of choosing marginals and measuring them.

The learner holds exact counts, and shows them through noise only: `select` and `measure` draw it from a ledger that
was charged. Everything else is computed from what they returned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from sundog.data.columns import Scale
from sundog.data.records import Records
from sundog.models.independent.column_marginals import get_marginal
from sundog.models.independent.independent import estimate_total
from sundog.models.marginals.axes import Axes, divide_groups
from sundog.models.marginals.bucket_tree import BucketTree, Clique, GrowingTree, eliminate
from sundog.models.marginals.clique_selection import (
    Forest,
    bound_weight,
    choose_by_exponential_mechanism,
    choose_by_scores,
    divide_units,
    expect_chance,
    expect_noise,
    score_cliques,
    weigh_size,
)
from sundog.models.marginals.configuration import MOST_SUBGROUPS, MarginalsConfiguration
from sundog.models.marginals.counting import count_cliques
from sundog.models.marginals.estimation import COLUMN_PRIOR, PAIR_PRIOR, Measurement, estimate_potentials
from sundog.models.marginals.expectation import Expectation, split_cliques
from sundog.models.marginals.impossible_cells import find_impossible
from sundog.models.marginals.inference import Factors, Floats, calibrate, merge_factors
from sundog.models.marginals.marginals_plan import Round
from sundog.models.marginals.public_prior import fit_public_prior
from sundog.models.marginals.released import list_scalars
from sundog.models.marginals.rule_acceptance import estimate_acceptance, is_partial, rake_shares
from sundog.models.marginals.variable import RARE, Variable, choose_groups, group_bins
from sundog.privacy.events import DiscreteGaussian, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms.counts import Histogram, add_histogram_noise

Integers = npt.NDArray[np.int64]

_MOST_COUNTED = 2**16  # cells of a marginal of three columns
_CAUTION = 2.0  # gains below the largest noise of all scores, times this, are not trusted
_TARGET = 2.5  # how many times as often a pair of the target is measured as another of its size
_ITERATIONS, _TOLERANCE = 60, 0.5  # of the fits between rounds; the tolerance is in standard deviations of a count
_LAST_ITERATIONS, _LAST_TOLERANCE = 400, 0.02
_RAKINGS = 4  # after which rejection by the rules moves the marginals of columns no further


class Learner:
    """A model of one part of the records, on its way.

    Args:
        records: the private records.
        columns: the noisy counts of each column.
        configuration: of the model.
        scale: the noise of one measurement with the whole budget.
        rng: for records drawn from the model.
        public: records to start from, if there are any.
    """

    def __init__(
        self,
        records: Records,
        columns: Mapping[str, Measurement],
        configuration: MarginalsConfiguration,
        scale: float,
        rng: np.random.Generator,
        public: Records | None = None,
    ) -> None:
        self.schema, self.configuration, self.rng = records.schema, configuration, rng
        self.cap, self.weight, self.names = self.schema.cap, bound_weight(self.schema), list_scalars(self.schema)
        self.target = self.names.index(self.schema.target) if self.schema.target in self.names else None
        self.columns = dict(columns)
        self._total: int | None = None  # until it is asked for
        self._groups = configuration.groups or choose_groups(self.total, noise=scale * math.sqrt(self.cap))
        self._records, self._bins = records, count_bins(records)
        self.measured: dict[Clique, Measurement] = {}
        self.order: tuple[int, ...] | None = None  # of elimination: a greedy one, until pairs are chosen in another
        self.potentials: dict[Clique, Floats] = {}
        self.prior: Factors = {}
        known = {} if public is None else count_bins(public)
        self.marginals = self._compute_marginals()
        self._use_axes(Axes({name: self._group(name, known.get(name)) for name in self.names}, {}))
        self._values = self.axes.encode(records.codes)
        if public is not None and self.names:
            self.prior = self._start_from(public)
        self.estimate()

    @property
    def total(self) -> int:
        """The number of records, as the counts of all columns tell it."""
        if self._total is None:
            counts = {name: each.counts for name, each in self.columns.items()}
            deviations = {name: math.sqrt(float(each.variance)) for name, each in self.columns.items()}
            self._total = estimate_total(self.schema, counts, deviations)
        return self._total

    def _compute_marginals(self) -> dict[str, Floats]:
        """Return the probabilities of each column's values, from all measurements of it."""
        total = self.total
        return {
            name: get_marginal(self.schema.columns[name]).to_probabilities(each.counts, total)
            for name, each in self.columns.items()
        }

    def _use_axes(self, axes: Axes) -> None:
        """Take groups and subgroups, and see which cells the rules exclude."""
        self.axes = axes
        self._impossible = find_impossible(self.schema, axes)
        self._use_marginals(self.marginals)

    def _use_marginals(self, marginals: dict[str, Floats]) -> None:
        """Take the probabilities with which values are drawn, and see how often the rules reject them."""
        self.marginals = marginals
        coarse = {name: replace(variable, shares=marginals[name]) for name, variable in self.axes.coarse.items()}
        self.axes = Axes(coarse, self.axes.divided)
        self._accepted = estimate_acceptance(self.schema, self.axes, self._impossible)

    def refine(self) -> None:
        """Divide the groups of numbers that were measured together into subgroups: such pairs are scored in these next.

        It follows from noisy counts alone. Columns that rules relate are left as they are if the tree has no room.
        """
        found: dict[str, Integers] = {}
        for name in sorted({self.names[v] for pair in self.measured if self._has_order(pair) for v in pair}):
            least = RARE * math.sqrt(float(self.columns[name].variance)) / max(1, self.total)
            subgroups = divide_groups(self.axes.coarse[name], most=MOST_SUBGROUPS, least=least)
            found |= {name: subgroups} if subgroups.any() else {}
        ruled = {name for _, rule in self.schema.bind_rules().rules for name in rule.names}
        for divided in (found, {name: own for name, own in found.items() if name not in ruled}):
            order = self._order_divided(Axes(self.axes.coarse, divided))
            if order is not None:
                self._divide(divided, order)
                break

    def _order_divided(self, axes: Axes) -> tuple[int, ...] | None:
        """Return an order of elimination of groups and subgroups; None if there is no room.

        Each subgroup comes just before its group, or the order is a greedy one, whichever has fewer cells.
        """
        shares = axes.weigh_subgroups()
        cliques = [*find_impossible(self.schema, axes), *self.prior, *shares, *self.measured]
        own = {clique[0]: clique[1] for clique in shares}  # the subgroup of each group
        beside = [v for group in self.tree.order for v in (own.get(group), group) if v is not None]
        tree = min((eliminate(axes.sizes, cliques, order) for order in (beside, None)), key=lambda tree: tree.cells)
        room = self.configuration.cells + eliminate(self.sizes, self._fixed).cells
        return tree.order if tree.cells <= room + sum(each.size for each in shares.values()) else None

    def _divide(self, divided: Mapping[str, Integers], order: tuple[int, ...]) -> None:
        """Take subgroups, and an order of elimination that has room for them."""
        self._use_axes(Axes(self.axes.coarse, divided))
        self._values += self.axes.encode_subgroups(self._records.codes)
        for name in divided:
            clique = self.axes.find_clique([name])
            whole = self.potentials.pop(clique[:1])
            self.potentials[clique] = np.repeat(whole[:, None], self.sizes[clique[1]], axis=1)
        self.order = order

    def _has_order(self, columns: Sequence[int]) -> bool:
        """Return whether all columns are numbers, times or ordered categories."""
        kinds = [self.schema.columns[self.names[v]].scale for v in columns]
        return len(columns) > 1 and all(kind in (Scale.ORDINAL, Scale.INTERVAL) for kind in kinds)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each variable has."""
        return self.axes.sizes

    @property
    def _fixed(self) -> dict[Clique, Floats]:
        """The factors that are not estimated: what the rules accept, public records, and shares of subgroups."""
        return merge_factors(self._accepted, self.prior, self.axes.weigh_subgroups())

    @property
    def tree(self) -> BucketTree:
        """The bucket tree of the pairs that were measured so far, and of fixed factors."""
        return eliminate(self.sizes, [*self._fixed, *self.measured], self.order)

    def estimate(self, iterations: int = _ITERATIONS, tolerance: float = _TOLERANCE) -> None:
        """Fit the potentials to what was measured so far."""
        columns = {self.axes.find_clique([name]): self._sum_groups(name) for name in self.names}
        self.potentials = estimate_potentials(
            self.tree,
            columns | self.measured,
            self.total,
            fixed=self._fixed,
            start=self.potentials,
            iterations=iterations,
            tolerance=tolerance,
            columns=columns,
            column_prior=PAIR_PRIOR if self.prior else COLUMN_PRIOR,
        )

    def select(self, each: Round, ledger: Ledger) -> tuple[list[Clique], tuple[int, ...]]:
        """Return the marginals to measure, chosen with noise, and an order of elimination that has room for them.

        The caller has paid for it.
        """
        growing, forest = self._open_tree(), Forest() if each.is_forest else None
        candidates = self._list_candidates(each.order, growing)
        scores, unexplained = self._compare(each, candidates)
        event = each.choice.event
        if isinstance(event, Pure):
            gains = self._compute_gains(candidates, scores, unexplained)
            scale = event.epsilon / (2 * self.weight)
            chosen = choose_by_exponential_mechanism(
                gains, growing, each.cliques, scale=scale, noise=ledger.noise, forest=forest
            )
            return chosen, growing.order
        assert isinstance(event, DiscreteGaussian)  # noqa: S101  as planned
        noisy = add_histogram_noise(Histogram(scores, event.sigma, each.choice.purpose), ledger)
        largest = event.sigma * math.sqrt(2 * math.log(max(2, len(scores))))  # about, of the noise
        gains = self._compute_gains(candidates, noisy, unexplained)
        return choose_by_scores(gains, growing, each.cliques, least=_CAUTION * largest, forest=forest), growing.order

    def _open_tree(self) -> GrowingTree:
        """Return the tree that pairs are added to; what rules and public records take does not count."""
        fixed = eliminate(self.sizes, self._fixed).cells
        cliques = [*self._fixed, *self.measured]
        return GrowingTree(self.sizes, cliques, self.configuration.cells + fixed, self.order)

    def _list_candidates(self, order: int, growing: GrowingTree) -> list[Clique]:
        """Return all pairs, and all larger cliques up to an order that are not too large to count."""
        columns = range(len(self.names))
        pairs = [self._refine_pair(pair, growing) for pair in combinations(columns, 2)]
        larger = (clique for size in range(3, order + 1) for clique in combinations(columns, size))
        return pairs + [clique for clique in larger if self._count_cells(clique) <= _MOST_COUNTED]

    def _refine_pair(self, pair: Clique, growing: GrowingTree) -> Clique:
        """Return the subgroups, too, of a pair of numbers that was measured by groups, if there is room for them."""
        names = [self.names[v] for v in pair]
        is_fine = pair in self.measured and not self.axes.divided.keys().isdisjoint(names) and self._has_order(pair)
        fine = self.axes.find_clique(names)
        return fine if is_fine and growing.has_room(fine) else pair

    def _count_cells(self, clique: Clique) -> int:
        return math.prod(self.sizes[v] for v in clique)

    def divide(self, each: Round, pairs: Sequence[Clique]) -> dict[Clique, int]:
        """Return how often to measure each pair of a round, and each private column again: fewer pairs leave more.

        A column is measured by its bins, which are finer than its groups. Pairs of the target are measured more often.
        """
        private = [(v,) for v, name in enumerate(self.names) if not self.schema.columns[name].public]
        weights = [weigh_size(self._count_cells(pair)) for pair in pairs]
        weights = [_TARGET * own if self.target in pair else own for pair, own in zip(pairs, weights, strict=True)]
        weights += [weigh_size(len(self._bins[self.names[v]])) for (v,) in private]
        return dict(zip([*pairs, *private], divide_units(weights, each.units), strict=True))

    def measure(self, each: Round, clique: Clique, units: int, ledger: Ledger) -> Integers:
        """Return the sum of several noisy counts of a pair or of a column's bins; the caller has paid for them.

        Each is a measurement with noise of its own, and so is what each slot of a unit's records adds to it.
        """
        if len(clique) == 1:
            exact = self._bins[self.names[clique[0]]]
        else:
            exact = count_cliques(self._values, self.sizes, [clique])[clique]
        slots = Histogram(units * exact, each.sigma, "marginals", contribution=units * self.cap)
        return add_histogram_noise(slots, ledger)

    def learn(self, each: Round, clique: Clique, units: int, noisy: Integers) -> None:
        """Take note of a measurement."""
        found = Measurement(noisy / units, np.array(each.sigma**2 * self.cap / units))
        if len(clique) == 1:
            name = self.names[clique[0]]
            self.columns[name] = self.columns[name].combine(found)
            self._total = None
        else:
            known = self.measured.get(clique)
            self.measured[clique] = found if known is None else known.combine(found)

    def _group(self, name: str, public: Integers | None) -> Variable:
        """Return a column in groups; what is frequent in private or in public records is a group of its own."""
        column, own = self.schema.columns[name], self.columns[name]
        counts, deviation = own.counts, math.sqrt(float(own.variance))
        if public is not None:
            counts, deviation = np.maximum(counts / deviation, public), 1.0
        groups = group_bins(column, counts, deviation=deviation, most=self._groups)
        return Variable(column, groups, get_marginal(column).to_probabilities(own.counts, self.total))

    def _sum_groups(self, name: str) -> Measurement:
        """Return the counts of a column's groups: of the possible counts, those nearest to the noisy ones."""
        variable, own, total = self.axes.fine[name], self.columns[name], self.total
        counts = total * get_marginal(self.schema.columns[name]).to_probabilities(own.counts, total)
        _, sums = self.axes.spread(variable.sum_groups(counts), [name])
        _, variances = self.axes.spread(own.variance * variable.bins_per_group, [name], absent=1.0)
        return Measurement(sums, variances)

    def finish(self) -> dict[Clique, Floats]:
        """Fit the potentials to convergence, and return them with those of public records.

        Where the rules reject some records of a cell, values are drawn with other probabilities than the measured ones.
        """
        measured = self._compute_marginals()
        self._use_marginals(measured)
        for _ in range(_RAKINGS if is_partial(self._accepted) else 0):
            self.estimate()
            model = calibrate(self.tree, self.potentials, self.prior, self._impossible, self.axes.weigh_subgroups())
            self._use_marginals(self.marginals | rake_shares(self.schema, self.axes, model, measured))
        self.estimate(_LAST_ITERATIONS, _LAST_TOLERANCE)
        return merge_factors(self.potentials, self.prior)

    def _start_from(self, public: Records) -> dict[Clique, Floats]:
        """Return the potentials of public records."""
        return fit_public_prior(
            self.axes.encode(public.codes),
            self.sizes,
            rules=self._accepted,
            cells=self.configuration.cells,
            rng=self.rng,
        )

    def _compare(self, each: Round, candidates: Sequence[Clique]) -> tuple[Integers, dict[Clique, float]]:
        """Return the exact scores of candidates, and how much of each a measurement would not explain.

        That is what its noise would leave, and what the noise of one of its columns alone has added to the score.
        """
        deviation = each.sigma * math.sqrt(self.cap * (each.cliques + len(self.names)) / each.units)
        expectation = Expectation.draw(self.tree, [self.potentials, self._fixed], self.total, self.rng)
        single = [(self.axes.find_clique([name]), self._sum_groups(name)) for name in self.names]
        expected = expectation.count([clique for clique, _ in single])
        errors = [expect_noise(expected[clique], np.sqrt(each.variance)) for clique, each in single]
        scores, unexplained = [], {}
        for some in split_cliques(candidates, self.sizes):
            expected = expectation.count(some)
            scores.append(score_cliques(count_cliques(self._values, self.sizes, some), expected, cap=self.cap))
            for clique, cells in expected.items():
                left = expect_noise(cells, deviation) + max(errors[v] for v in self.axes.list_places(clique))
                unexplained[clique] = left + (expect_chance(cells) if len(clique) > 2 else 0.0)
        return np.concatenate(scores), unexplained

    def _compute_gains(
        self, candidates: Sequence[Clique], scores: Integers, unexplained: Mapping[Clique, float]
    ) -> dict[Clique, float]:
        """Return how much nearer a measurement would bring the model to each clique, in units of `cap` records.

        Of a triple only what no pair in it explains counts. Where a column has one group there is nothing to learn.
        """
        gains: dict[Clique, float] = {}
        columns = map(self.axes.list_places, candidates)
        score = dict(zip(columns, scores.tolist(), strict=True))
        for clique, (places, own) in zip(candidates, score.items(), strict=True):
            if min(self.sizes[v] for v in places) > 1:
                explained = max(score[pair] for pair in combinations(places, 2)) if len(places) > 2 else 0.0
                weight = self.weight if self.target in places else 1.0
                gains[clique] = weight * (own - explained - unexplained[clique] / self.cap)
        return gains


def count_bins(records: Records) -> dict[str, Integers]:
    """Return the exact counts of each scalar column's bins."""
    columns = records.schema.columns
    return {name: get_marginal(columns[name]).count(records.codes[name]) for name in list_scalars(records.schema)}
