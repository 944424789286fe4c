"""A model of marginals as it is in a release."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sundog.data.schema import MOST_COLUMNS, Schema
from sundog.errors import ReleaseError
from sundog.models.independent.released import check_marginal, list_due_marginals, name_marginal_key
from sundog.models.marginals.bucket_tree import BucketTree, Clique, TreeTooLargeError, eliminate
from sundog.models.marginals.configuration import MOST_CELLS, MOST_ORDER, MOST_SUBGROUPS
from sundog.models.protocol import State
from sundog.models.released import (
    MOST_RECORDS,
    DueCharge,
    MeasuredMarginal,
    ReleasedModel,
    find_unpaid_counts,
    is_whole,
)
from sundog.privacy.events import Charge, DiscreteGaussian

PUBLIC_RECORDS = "the records that were given as public, with which the model began"
_MOST_CLIQUES = 10 * MOST_COLUMNS  # a fit measures each column, and a few pairs for each
_ROOM = 8  # by which rules and public records may exceed what was planned
_KEYS = {"records", "cliques", "order", "units", "public"}
_LARGEST = 1e100  # potential: sums of them are finite


class ReleasedMarginals(ReleasedModel):
    """The marginal of each column, the groups of its bins if it is scalar, perhaps their subgroups, and potentials.

    `config` has the number of records, an order of elimination, and for each clique its variables (as `Axes` numbers
    them), and how often each round measured it.
    """

    counts_records: ClassVar[bool] = False  # the marginals themselves tell
    records: int

    def __init__(self, schema: Schema, state: State) -> None:
        config, scalars = state.config, list_scalars(schema)
        if set(config) != {"records", "cliques", "order", "units", "public"} or not is_whole(
            config["records"], MOST_RECORDS
        ):
            raise _make_refusal("its configuration is not one")
        if type(config["public"]) is not bool:
            raise _make_refusal("it does not say whether it began with public records")
        places = {name: place for place, name in enumerate(schema.columns)}
        self.divided = [name for name in scalars if name_subgroups_key(places[name]) in state.tensors]
        variables = len(scalars) + len(self.divided)
        cliques = _read_cliques(config["cliques"], variables)
        if set(state.tensors) != {
            *_list_column_keys(schema),
            *(name_subgroups_key(places[name]) for name in self.divided),
            *(name_potential_key(place) for place in range(len(cliques))),
        }:
            raise _make_refusal("it has other arrays")
        for place, (name, column) in enumerate(schema.columns.items()):
            check_marginal(name, column, state.tensors[name_marginal_key(place)])
        sizes = [_check_groups(schema, name, state) for name in scalars]
        sizes += [_check_subgroups(schema, name, state) for name in self.divided]
        own = [(scalars.index(name), len(scalars) + place) for place, name in enumerate(self.divided)]
        self.order = _read_order(config["order"], variables)
        build_tree(sizes, [*cliques, *own], self.order)
        self._places = [*range(len(scalars)), *(group for group, _ in own)]  # of each variable's column
        for place, clique in enumerate(cliques):
            potential = state.tensors[name_potential_key(place)]
            shape = tuple(sizes[v] for v in clique)
            if potential.dtype != np.float64 or potential.shape != shape or not (np.abs(potential) < _LARGEST).all():
                raise _make_refusal("a potential is not that of its columns")
        self.schema, self.records, self.cliques, self.public = schema, config["records"], cliques, config["public"]
        self.assumptions = [PUBLIC_RECORDS] if self.public else []
        if any(len(self._list_places(clique)) > MOST_ORDER for clique in cliques):
            raise _make_refusal(f"a clique has more than {MOST_ORDER} columns")
        self.units = _read_units(config["units"], len(cliques))

    def find_unpaid(self, charges: Sequence[Charge]) -> list[str]:
        """Name the marginals of private columns, the choices and the measurements that no charge paid for."""
        cap = self.schema.cap
        purposes = [name_measured_purpose(number) for number in range(len(self.units))]
        measured = [DueCharge(p, p, sum(units) * cap) for p, units in zip(purposes, self.units, strict=True)]
        missing = find_unpaid_counts(charges, [*list_due_marginals(self.schema), *measured])
        return missing + self._find_unpaid_choices(charges) + self._find_unmeasured()

    def _find_unpaid_choices(self, charges: Sequence[Charge]) -> list[str]:
        """Name the rounds whose choice was not paid for: noise on all scores, or a selection of each marginal."""
        paid = Counter({(c.purpose, c.event.kind): c.count for c in charges})
        pairs = math.comb(len(list_scalars(self.schema)), 2)
        missing = []
        for number, units in enumerate(self.units):
            purpose = name_choice_purpose(number)
            counts = zip(self.cliques, units, strict=True)
            measured = sum(bool(count) for clique, count in counts if len(self._list_places(clique)) > 1)
            if paid[purpose, "discrete_gaussian"] < pairs and not 0 < paid[purpose, "pure"] >= measured:
                missing.append(purpose)
        return missing

    def _find_unmeasured(self) -> list[str]:
        """Name the cliques of several columns that no round measured; public records may have told of them."""
        counts = np.array(self.units, np.int64).reshape(len(self.units), len(self.cliques)).sum(axis=0)
        cliques = zip(self.cliques, counts.tolist(), strict=True)
        joint = [clique for clique, count in cliques if not count and not self.public]
        names = [self._name_columns(clique) for clique in joint if len(self._list_places(clique)) > 1]
        return [f"marginal of {' and '.join(each)}" for each in names]

    def _list_places(self, clique: Clique) -> list[int]:
        """Return the places of a clique's columns among the scalar ones."""
        return sorted({self._places[variable] for variable in clique})

    def _is_fine(self, clique: Clique) -> bool:
        """Return whether a clique has subgroups, and several columns: columns by themselves are measured by bins."""
        return len(clique) > len(self._list_places(clique)) > 1

    def _name_columns(self, clique: Clique) -> tuple[str, ...]:
        names = list_scalars(self.schema)
        return tuple(names[place] for place in self._list_places(clique))

    def list_measured(self, charges: Sequence[Charge]) -> list[MeasuredMarginal]:
        """Return what the rounds measured, in the order of the columns; a round that nothing paid for is left out."""
        cap = self.schema.cap
        sigmas = {(c.purpose, c.count): c.event.sigma for c in charges if isinstance(c.event, DiscreteGaussian)}
        precision = np.zeros(len(self.cliques))
        for number, units in enumerate(self.units):
            sigma = sigmas.get((name_measured_purpose(number), sum(units) * cap))
            if sigma is not None:
                precision += np.array(units, np.float64) / (cap * sigma**2)
        deviations = dict(zip(self.cliques, precision.tolist(), strict=True))
        return [
            MeasuredMarginal(self._name_columns(clique), deviations[clique] ** -0.5, is_fine=self._is_fine(clique))
            for clique in sorted(self.cliques, key=lambda each: (self._list_places(each), each))
            if deviations[clique] > 0
        ]


def build_tree(sizes: Sequence[int], cliques: Iterable[Clique], order: Sequence[int]) -> BucketTree:
    """Return the tree of a released model; raise ReleaseError if it takes more memory than that of any fit."""
    try:
        return eliminate(sizes, cliques, order, limit=_ROOM * MOST_CELLS)
    except TreeTooLargeError:
        raise _make_refusal("its cliques take more memory than any fit allows") from None


def list_scalars(schema: Schema) -> list[str]:
    """Return the columns that are variables of the graphical model; all others are independent."""
    return [name for name, column in schema.columns.items() if column.is_scalar]


def name_groups_key(place: int) -> str:
    """Return the name of the array of a column's groups."""
    return f"groups.{place}"


def name_subgroups_key(place: int) -> str:
    """Return the name of the array of a column's subgroups."""
    return f"subgroups.{place}"


def name_potential_key(place: int) -> str:
    """Return the name of the array of a clique's potential."""
    return f"potential.{place}"


def name_choice_purpose(number: int) -> str:
    """Return what the charge for choosing the marginals of a round is for."""
    return f"choice, round {number + 1}"


def name_measured_purpose(number: int) -> str:
    """Return what the charge for the marginals that a round measures is for."""
    return f"marginals, round {number + 1}"


def _make_refusal(why: str) -> ReleaseError:
    return ReleaseError(f"the weights are not those of a `marginals` model of this schema: {why}")


def _list_column_keys(schema: Schema) -> list[str]:
    places = {name: place for place, name in enumerate(schema.columns)}
    return [*map(name_marginal_key, places.values()), *(name_groups_key(places[name]) for name in list_scalars(schema))]


def _check_groups(schema: Schema, name: str, state: State) -> int:
    """Return how many groups a column has; raise ReleaseError if they are not those of its bins."""
    groups = _take_numbers(schema, name, state, name_groups_key)
    if len(np.unique(groups)) != groups.max() + 1:
        raise _make_refusal(f"the groups of column {name!r} are not numbered from 0")
    return int(groups.max()) + 1


def _check_subgroups(schema: Schema, name: str, state: State) -> int:
    """Return how many subgroups a column has at the most; raise ReleaseError if they do not divide its groups."""
    groups, subgroups = (_take_numbers(schema, name, state, key) for key in (name_groups_key, name_subgroups_key))
    divisions = np.unique(np.stack([groups, subgroups]), axis=1)
    counts = np.bincount(divisions[0])
    if (divisions[1] >= counts[divisions[0]]).any():
        raise _make_refusal(f"the subgroups of column {name!r} are not numbered from 0 in each group")
    if counts.max() > MOST_SUBGROUPS:
        raise _make_refusal(f"column {name!r} has a group of more than {MOST_SUBGROUPS} subgroups")
    return int(counts.max())


def _take_numbers(schema: Schema, name: str, state: State, key: Callable[[int], str]) -> npt.NDArray[np.int64]:
    """Return an array that has a number from 0 for each bin of a column; raise ReleaseError if it is not one."""
    numbers = state.tensors[key(list(schema.columns).index(name))]
    if numbers.dtype != np.int64 or numbers.shape != (schema.columns[name].bin_count,):
        raise _make_refusal(f"the groups of column {name!r} are not those of its bins")
    if numbers.min() < 0 or numbers.max() >= len(numbers):
        raise _make_refusal(f"the groups of column {name!r} are not numbered from 0")
    return numbers


def _read_cliques(given: Any, variables: int) -> list[Clique]:
    if not isinstance(given, list) or len(given) > _MOST_CLIQUES:
        raise _make_refusal("its cliques are not a list")
    for clique in given:
        if (
            not isinstance(clique, list)
            or not 1 <= len(clique) <= 2 * MOST_ORDER
            or not all(type(v) is int and 0 <= v < variables for v in clique)
            or any(after <= before for before, after in pairwise(clique))
        ):
            raise _make_refusal(f"{clique!r:.50} is not a clique")
    cliques = [tuple(clique) for clique in given]
    if len(set(cliques)) != len(cliques):
        raise _make_refusal("a clique stands twice")
    return cliques


def _read_order(given: Any, variables: int) -> tuple[int, ...]:
    if not isinstance(given, list) or not all(type(v) is int for v in given) or sorted(given) != list(range(variables)):
        raise _make_refusal("its order is not one of its variables")
    return tuple(given)


def _read_units(given: Any, cliques: int) -> list[list[int]]:
    if not isinstance(given, list) or not all(
        isinstance(units, list) and len(units) == cliques and all(type(u) is int and 0 <= u < 2**31 for u in units)
        for units in given
    ):
        raise _make_refusal("its measurements are not one number for each clique and round")
    return given
