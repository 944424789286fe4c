"""A graphical model of noisy marginals (after McKenna, Miklau and Sheldon 2021): the best that is known for tables.

1. Measure the marginal of every column, and put its rare values into groups. 2. In two rounds: score all pairs of
columns, and in narrow tables triples, by how far the model is from the data, measure the worst, each with noise by its
size, and fit the model again. 3. Records are drawn from the model exactly, also under conditions.

The model is the distribution of largest entropy that explains the measurements: a product of one potential for each
measured marginal. Exact inference on a bucket tree bounds which pairs it can hold.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.models.independent.column_marginals import get_marginal
from sundog.models.independent.released import name_marginal_key
from sundog.models.marginals.axes import Axes
from sundog.models.marginals.bucket_tree import BucketTree, Clique
from sundog.models.marginals.configuration import MarginalsConfiguration
from sundog.models.marginals.estimation import Measurement
from sundog.models.marginals.impossible_cells import find_impossible
from sundog.models.marginals.inference import Calibrated, Floats, calibrate, merge_factors
from sundog.models.marginals.learner import Learner
from sundog.models.marginals.marginals_plan import MarginalsPlan, Round, plan_marginals
from sundog.models.marginals.released import (
    ReleasedMarginals,
    build_tree,
    list_scalars,
    name_groups_key,
    name_potential_key,
    name_subgroups_key,
)
from sundog.models.marginals.tree_sampling import draw_records
from sundog.models.marginals.variable import Variable
from sundog.models.protocol import Codes, FitContext, Parts, State, Where, to_code_set
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.ledger_views import Disjoint
from sundog.privacy.measure_once import Arrays, check_unpaid, measure_once
from sundog.privacy.mechanisms.counts import Histogram, add_histogram_noise

Integers = npt.NDArray[np.int64]

_LEAST_VARIANCE = 0.25  # of the counts of public columns, which have no noise


class Marginals:
    """Scalar columns as variables with potentials over cliques of them; all other columns are independent.

    Args:
        schema: of the records.
        marginals: the probabilities of each column's values, by name.
        groups: the group of each bin of the scalar columns, by name.
        subgroups: the subgroup of each bin, of the columns whose groups are divided.
        potentials: by clique of variables, which `Axes` numbers.
        order: of elimination, in which the model was checked to be small enough.
        records: about how many records it was fitted on.
        units: by round, how often each clique was measured.
        public: whether it began with public records.
    """

    name: ClassVar[str] = "marginals"

    def __init__(
        self,
        schema: Schema,
        marginals: Mapping[str, Floats],
        groups: Mapping[str, Integers],
        subgroups: Mapping[str, Integers],
        potentials: Mapping[Clique, Floats],
        order: Sequence[int],
        records: int,
        units: Sequence[Sequence[int]],
        *,
        public: bool = False,
    ) -> None:
        self.schema, self.marginals, self.groups, self.subgroups = (
            schema,
            dict(marginals),
            dict(groups),
            dict(subgroups),
        )
        self.potentials, self.order, self.records, self.public = dict(potentials), tuple(order), records, public
        self.units = [list(each) for each in units]

    # --- learning ---

    @classmethod
    def plan(
        cls,
        schema: Schema,
        budget: Budget,
        configuration: MarginalsConfiguration,
        *,
        already: Sequence[Charge],
        records: int | None,  # noqa: ARG003  the marginals do without it
    ) -> MarginalsPlan:
        """Plan the noise of columns, scores and pairs."""
        return plan_marginals(schema, budget, configuration, already)

    @classmethod
    def fit(cls, records: Records, plan: MarginalsPlan, ledger: Ledger, context: FitContext) -> Self:
        """Measure columns and pairs, and fit the model to them."""
        check_unpaid(plan.charges, ledger)
        return cls.fit_parts(records, Parts.whole(len(records)), plan, ledger, context)[0]

    @classmethod
    def fit_parts(
        cls, records: Records, parts: Parts, plan: MarginalsPlan, ledger: Ledger, context: FitContext
    ) -> list[Self]:
        """Fit one model on each part; a record is in one part only, so all of them cost what one does."""
        learners = _measure_columns(records, parts, plan, ledger, context)
        units: list[list[dict[Clique, int]]] = [[] for _ in learners]
        for number, each in enumerate(plan.rounds):
            context.progress(f"round {number + 1} of {len(plan.rounds)}", number / len(plan.rounds))
            for own, measured in zip(units, _run_round(number, each, learners, plan, ledger, context), strict=True):
                own.append(measured)
        context.progress("fitting the model", 0.0)
        public = plan.configuration.public
        models = [cls._finish(learner, own, public=public) for learner, own in zip(learners, units, strict=True)]
        if plan.rounds:
            context.progress(_describe_measured(models), 1.0)
        return models

    @classmethod
    def _finish(cls, learner: Learner, units: Sequence[Mapping[Clique, int]], *, public: bool) -> Self:
        potentials, axes = learner.finish(), learner.axes
        # A column was measured as (v,); public records may have a potential of that name beside it.
        of_columns: dict[Clique, Clique] = {(v,): axes.find_clique([name]) for v, name in enumerate(learner.names)}
        found = [{of_columns.get(clique, clique): count for clique, count in own.items()} for own in units]
        counts = [[own.get(clique, 0) for clique in potentials] for own in found]
        groups = {name: variable.groups for name, variable in axes.coarse.items()}
        total, order = max(1, learner.total), learner.tree.order
        return cls(
            learner.schema, learner.marginals, groups, axes.divided, potentials, order, total, counts, public=public
        )

    def list_measured(self) -> list[Clique]:
        """Return the sets of several columns that were measured; other potentials are those of public records."""
        units = zip(self.potentials, *self.units, strict=True)
        measured = dict.fromkeys(self.axes.list_places(clique) for clique, *counts in units if any(counts))
        return [columns for columns in measured if len(columns) > 1]

    # --- drawing ---

    @functools.cached_property
    def axes(self) -> Axes:
        """The variables that the potentials are of."""
        coarse = {
            name: Variable(self.schema.columns[name], groups, self.marginals[name])
            for name, groups in self.groups.items()
        }
        return Axes(coarse, self.subgroups)

    @functools.cached_property
    def _fixed(self) -> dict[Clique, Floats]:
        """The factors that follow from the rest: what the rules exclude, and the shares of subgroups."""
        return merge_factors(find_impossible(self.schema, self.axes), self.axes.weigh_subgroups())

    @functools.cached_property
    def _tree(self) -> BucketTree:
        return build_tree(self.axes.sizes, [*self.potentials, *self._fixed], self.order)

    @functools.cached_property
    def _calibrated(self) -> Calibrated:
        return calibrate(self._tree, self.potentials, self._fixed)

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draw n records given the conditions, exactly."""
        model = self._condition(where) if where else self._calibrated
        if math.isinf(model.log_partition):
            raise DataError("where: no record can satisfy all conditions together")
        drawn = dict(enumerate(draw_records(model, n, rng)))
        return {name: self._draw_column(name, drawn, n, rng, where) for name in self.schema.columns}

    def _draw_column(
        self, name: str, drawn: Mapping[int, npt.NDArray[Any]], n: int, rng: np.random.Generator, where: Where
    ) -> Any:
        """Return codes of the variables of a scalar column, or of the marginal of another."""
        if name not in self.groups:
            return get_marginal(self.schema.columns[name]).draw(self.marginals[name], n, rng)
        return self.axes.decode(name, drawn, rng, to_code_set(where[name]) if name in where else None)

    def log_evidence(self, where: Where) -> float:
        """Return the logarithm of the probability that a record satisfies the conditions."""
        return self._condition(where).log_partition - self._calibrated.log_partition

    def log_density(self, records: Records) -> Floats:
        """Return the logarithm of the probability of each record, exactly; −∞ where it is impossible."""
        codes, tree = records.codes, self._tree
        values = self.axes.encode(codes)
        total = np.zeros(len(records))
        for place, conditional in enumerate(self._calibrated.conditionals):
            with np.errstate(divide="ignore"):
                total += np.log(conditional[tuple(values[axis] for axis in tree.scope(place))])
        for name, column in self.schema.columns.items():
            if name in self.groups:
                total += self.axes.fine[name].compute_log_shares(codes[name])
            else:
                total += get_marginal(column).compute_log_density(self.marginals[name], codes[name])
        return total

    def _condition(self, where: Where) -> Calibrated:
        """Return the model of the records that satisfy the conditions."""
        evidence: dict[Clique, Floats] = {}
        for name, codes in where.items():
            shares = self.axes.fine[name].find_shares(to_code_set(codes))
            clique, table = self.axes.spread(shares, [name])
            with np.errstate(divide="ignore"):
                evidence[clique] = np.log(table)
        return calibrate(self._tree, self.potentials, self._fixed, evidence)

    # --- the release ---

    def state(self) -> State:
        """Return marginals, groups and potentials, by the places of columns and cliques."""
        tensors: dict[str, npt.NDArray[Any]] = {}
        for place, name in enumerate(self.schema.columns):
            tensors[name_marginal_key(place)] = self.marginals[name]
            if name in self.groups:
                tensors[name_groups_key(place)] = self.groups[name]
            if name in self.subgroups:
                tensors[name_subgroups_key(place)] = self.subgroups[name]
        for place, potential in enumerate(self.potentials.values()):
            tensors[name_potential_key(place)] = potential
        cliques = [list(clique) for clique in self.potentials]
        config = {"records": self.records, "cliques": cliques, "order": list(self.order), "units": self.units}
        return State(tensors, config | {"public": self.public})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Return the model that the state came from."""
        released = ReleasedMarginals(schema, state)
        places = {name: place for place, name in enumerate(schema.columns)}
        marginals = {name: state.tensors[name_marginal_key(place)].copy() for name, place in places.items()}
        groups = {name: state.tensors[name_groups_key(places[name])].copy() for name in list_scalars(schema)}
        subgroups = {name: state.tensors[name_subgroups_key(places[name])].copy() for name in released.divided}
        potentials = {
            clique: state.tensors[name_potential_key(place)].copy() for place, clique in enumerate(released.cliques)
        }
        order, records, units = released.order, released.records, released.units
        return cls(schema, marginals, groups, subgroups, potentials, order, records, units, public=released.public)


def _describe_measured(models: Sequence[Marginals]) -> str:
    """Return how many marginals of several columns were measured, or what it means that none was."""
    counts = [len(model.list_measured()) for model in models]
    if any(counts):
        return f"{', '.join(map(str, counts))} pairs or triples of columns were measured\n"
    if models[0].public:
        return "no pair of columns differs from the public records by more than the noise\n"
    return (
        "no pair of columns stood out of the noise, so that all columns are independent in this release; structure "
        "that shows only in three or more columns together, such as parity, cannot be learned from pairs "
        "(try --set order=3, or --model rbm)\n"
    )


# --- the marginals of columns ---


def _measure_columns(
    records: Records, parts: Parts, plan: MarginalsPlan, ledger: Ledger, context: FitContext
) -> list[Learner]:
    """Measure the marginals of all columns in each part, and return what learns from there."""
    fragments = [records if parts.owner is None else records.take(parts.owner == n) for n in range(len(parts.sizes))]
    exact = [_count_columns(fragment) for fragment in fragments]
    cap, sigma, charges = records.schema.cap, plan.sigma, plan.one_way_charges

    def measure(ledger: Ledger) -> Arrays:
        found: Arrays = {}
        for number, (counts, own) in enumerate(zip(exact, Disjoint.split(ledger, len(exact)), strict=True)):
            own.spend(*charges)
            for place, (name, noise) in enumerate(sigma.items()):
                histogram = Histogram(counts[name], noise, name, contribution=cap)
                found[f"{number}.{place}"] = add_histogram_noise(histogram, own)
        return found

    noisy = measure_once("columns", charges, measure, ledger, context.checkpoint) if charges else {}
    seeds = np.random.default_rng(context.seed).integers(2**63, size=len(fragments)).tolist()
    learners = []
    for number, (fragment, counts) in enumerate(zip(fragments, exact, strict=True)):
        columns = {
            name: Measurement(each.astype(np.float64), np.array(_LEAST_VARIANCE)) for name, each in counts.items()
        }
        for place, (name, noise) in enumerate(sigma.items()):
            columns[name] = Measurement(noisy[f"{number}.{place}"].astype(np.float64), np.array(cap * noise**2))
        rng = np.random.default_rng(seeds[number])
        public = context.public if plan.configuration.public else None
        learners.append(Learner(fragment, columns, plan.configuration, plan.scale, rng, public))
    return learners


def _count_columns(records: Records) -> dict[str, Integers]:
    """Return the exact counts of each column."""
    return {name: get_marginal(column).count(records.codes[name]) for name, column in records.schema.columns.items()}


# --- a round ---


def _run_round(
    number: int, each: Round, learners: Sequence[Learner], plan: MarginalsPlan, ledger: Ledger, context: FitContext
) -> list[dict[Clique, int]]:
    """Choose marginals and measure them, in every part; return how often each was measured."""
    choice_charge, measured_charge = plan.round_charges(number)
    for learner in learners if number else ():  # the first round has the columns' own marginals, already fitted
        learner.refine()
        learner.estimate()

    def choose(ledger: Ledger) -> Arrays:
        found: Arrays = {}
        for place, (learner, own) in enumerate(zip(learners, Disjoint.split(ledger, len(learners)), strict=True)):
            own.spend(choice_charge)
            cliques, order = learner.select(each, own)
            found[f"{place}.order"] = np.array(order)
            for index, clique in enumerate(cliques):
                found[f"{place}.{index}"] = np.array(clique)
        return found

    chosen = measure_once(f"choice {number}", [choice_charge], choose, ledger, context.checkpoint)

    def measure(ledger: Ledger) -> Arrays:
        found: Arrays = {}
        for place, (learner, own) in enumerate(zip(learners, Disjoint.split(ledger, len(learners)), strict=True)):
            own.spend(measured_charge)
            for index, (clique, units) in enumerate(learner.divide(each, list_chosen(chosen, place)).items()):
                found[f"{place}.{index}"] = learner.measure(each, clique, units, own)
        return found

    tables = measure_once(f"measured {number}", [measured_charge], measure, ledger, context.checkpoint)
    units = []
    for place, learner in enumerate(learners):
        learner.order = tuple(chosen[f"{place}.order"].tolist())
        own_units = learner.divide(each, list_chosen(chosen, place))
        for index, (clique, count) in enumerate(own_units.items()):
            learner.learn(each, clique, count, tables[f"{place}.{index}"])
        units.append(own_units)
    return units


def list_chosen(chosen: Arrays, place: int) -> list[Clique]:
    """Return the marginals that were chosen in a part."""
    cliques: list[Clique] = []
    while (found := chosen.get(f"{place}.{len(cliques)}")) is not None:
        cliques.append(tuple(int(v) for v in found))
    return cliques
