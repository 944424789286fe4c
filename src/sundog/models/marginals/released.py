"""A model of marginals as it is in a release."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from sundog.data.schema import MOST_COLUMNS, Schema
from sundog.errors import ReleaseError
from sundog.models.independent.released import check_marginal, list_due_marginals, name_marginal_key
from sundog.models.marginals.bucket_tree import BucketTree, Clique, TreeTooLargeError, eliminate
from sundog.models.marginals.configuration import MOST_CELLS, MOST_ORDER
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
    """The marginal of each column, the groups of its bins if it is scalar, and a potential for each clique.

    `config` has the number of records, an order of elimination, and for each clique its columns (by place), and how
    often each round measured it.
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
        cliques = _read_cliques(config["cliques"], len(scalars))
        if set(state.tensors) != {
            *_list_column_keys(schema),
            *(name_potential_key(place) for place in range(len(cliques))),
        }:
            raise _make_refusal("it has other arrays")
        for place, (name, column) in enumerate(schema.columns.items()):
            check_marginal(name, column, state.tensors[name_marginal_key(place)])
        sizes = [_check_groups(schema, name, state) for name in scalars]
        self.order = _read_order(config["order"], len(scalars))
        build_tree(sizes, cliques, self.order)
        for place, clique in enumerate(cliques):
            potential = state.tensors[name_potential_key(place)]
            shape = tuple(sizes[v] for v in clique)
            if potential.dtype != np.float64 or potential.shape != shape or not (np.abs(potential) < _LARGEST).all():
                raise _make_refusal("a potential is not that of its columns")
        self.schema, self.records, self.cliques, self.public = schema, config["records"], cliques, config["public"]
        self.assumptions = [PUBLIC_RECORDS] if self.public else []
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
            measured = sum(bool(count) for clique, count in zip(self.cliques, units, strict=True) if len(clique) > 1)
            if paid[purpose, "discrete_gaussian"] < pairs and not 0 < paid[purpose, "pure"] >= measured:
                missing.append(purpose)
        return missing

    def _find_unmeasured(self) -> list[str]:
        """Name the cliques of several columns that no round measured; public records may have told of them."""
        names = list_scalars(self.schema)
        counts = np.array(self.units, np.int64).reshape(len(self.units), len(self.cliques)).sum(axis=0)
        cliques = zip(self.cliques, counts.tolist(), strict=True)
        unmeasured = [clique for clique, count in cliques if len(clique) > 1 and not count and not self.public]
        return [f"marginal of {' and '.join(names[v] for v in clique)}" for clique in unmeasured]

    def list_measured(self, charges: Sequence[Charge]) -> list[MeasuredMarginal]:
        """Return what the rounds measured, in the order of the columns; a round that nothing paid for is left out."""
        names, cap = list_scalars(self.schema), self.schema.cap
        sigmas = {(c.purpose, c.count): c.event.sigma for c in charges if isinstance(c.event, DiscreteGaussian)}
        precision = np.zeros(len(self.cliques))
        for number, units in enumerate(self.units):
            sigma = sigmas.get((name_measured_purpose(number), sum(units) * cap))
            if sigma is not None:
                precision += np.array(units, np.float64) / (cap * sigma**2)
        deviations = dict(zip(self.cliques, precision.tolist(), strict=True))
        return [
            MeasuredMarginal(tuple(names[v] for v in clique), deviations[clique] ** -0.5)
            for clique in sorted(self.cliques)
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
    groups = state.tensors[name_groups_key(list(schema.columns).index(name))]
    if groups.dtype != np.int64 or groups.shape != (schema.columns[name].bin_count,):
        raise _make_refusal(f"the groups of column {name!r} are not those of its bins")
    if groups.min() < 0 or groups.max() >= len(groups) or len(np.unique(groups)) != groups.max() + 1:
        raise _make_refusal(f"the groups of column {name!r} are not numbered from 0")
    return int(groups.max()) + 1


def _read_cliques(given: Any, columns: int) -> list[Clique]:
    if not isinstance(given, list) or len(given) > _MOST_CLIQUES:
        raise _make_refusal("its cliques are not a list")
    for clique in given:
        if (
            not isinstance(clique, list)
            or not 1 <= len(clique) <= MOST_ORDER
            or not all(type(v) is int and 0 <= v < columns for v in clique)
            or any(after <= before for before, after in pairwise(clique))
        ):
            raise _make_refusal(f"{clique!r:.50} is not a clique")
    cliques = [tuple(clique) for clique in given]
    if len(set(cliques)) != len(cliques):
        raise _make_refusal("a clique stands twice")
    return cliques


def _read_order(given: Any, columns: int) -> tuple[int, ...]:
    if not isinstance(given, list) or not all(type(v) is int for v in given) or sorted(given) != list(range(columns)):
        raise _make_refusal("its order is not one of its columns")
    return tuple(given)


def _read_units(given: Any, cliques: int) -> list[list[int]]:
    if not isinstance(given, list) or not all(
        isinstance(units, list) and len(units) == cliques and all(type(u) is int and 0 <= u < 2**31 for u in units)
        for units in given
    ):
        raise _make_refusal("its measurements are not one number for each clique and round")
    return given
