"""The variables of the graphical model: the group of each column's value, and of some columns also its subgroup.

Most pairs of columns show all there is in a few groups of each. Two numbers that follow one another closely do not:
within a group each of them would be independent of the other. The groups of such columns are divided into subgroups. A
subgroup is a variable of its own, which depends on the group: pairs of groups stay small, and only a marginal of two
columns' groups and subgroups, four variables, is large.

Variables are numbered: first the groups of all columns, then the subgroups of those that have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.data.code_set import CodeSet
from sundog.models.marginals.bucket_tree import Clique
from sundog.models.marginals.inference import Floats
from sundog.models.marginals.variable import Integers, Variable


@dataclass(frozen=True, eq=False)
class Axes:
    """The variables of a model's columns.

    Args:
        coarse: the groups of each column, by its name.
        divided: of the columns that have subgroups, the subgroup of each bin, by name. Those of a group are numbered
            from 0.
    """

    coarse: Mapping[str, Variable]
    divided: Mapping[str, Integers]

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.coarse)

    @cached_property
    def fine(self) -> dict[str, Variable]:
        """Each column with its subgroups as groups, numbered in the order of groups; without any, its groups."""
        return {name: replace(own, groups=self._number(name)) for name, own in self.coarse.items()}

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many values each variable has."""
        subgroups = (int(self.divided[name].max()) + 1 for name in self.names if name in self.divided)
        return (*(variable.size for variable in self.coarse.values()), *subgroups)

    @cached_property
    def _subgroups(self) -> dict[str, int]:
        """The number of the variable of each divided column's subgroups."""
        divided = (name for name in self.names if name in self.divided)
        return {name: len(self.names) + place for place, name in enumerate(divided)}

    def list_columns(self, clique: Clique) -> list[str]:
        """Return the columns of a clique's variables.

        >>> from sundog.data.columns import IntegerColumn
        >>> one = Variable(IntegerColumn(min=0, max=3), np.array([0, 0, 1, 1]), np.full(4, 0.25))
        >>> axes = Axes({"a": one, "b": one}, {"b": np.array([0, 1, 0, 1])})
        >>> axes.sizes, axes.list_columns((1, 2)), axes.fine["b"].groups.tolist()
        ((2, 2, 2), ['b'], [0, 1, 2, 3])
        """
        return [self.names[place] for place in self.list_places(clique)]

    def list_places(self, clique: Clique) -> Clique:
        """Return the places of a clique's columns: the variables of their groups."""
        columns = enumerate(self.names)
        return tuple(place for place, name in columns if {place, self._subgroups.get(name)} & set(clique))

    def find_clique(self, names: Sequence[str], *, coarse: bool = False) -> Clique:
        """Return the variables of some columns: their groups, and unless `coarse` their subgroups."""
        groups = [place for place, name in enumerate(self.names) if name in names]
        return (*groups, *(() if coarse else (v for name, v in self._subgroups.items() if name in names)))

    def encode(self, codes: Mapping[str, npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Return the value of each variable for each record."""
        groups = [variable.encode(codes[name]) for name, variable in self.coarse.items()]
        return [*groups, *self.encode_subgroups(codes)]

    def encode_subgroups(self, codes: Mapping[str, npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Return the subgroup of each record, for each column that has subgroups."""
        return [self._take_subgroups(name, codes[name]) for name in self._subgroups]

    def decode(
        self,
        name: str,
        drawn: Mapping[int, npt.NDArray[Any]],
        rng: np.random.Generator,
        within: CodeSet | None = None,
    ) -> npt.NDArray[Any]:
        """Return a code of a column for each record, from the values of variables; only codes of a set, if given."""
        group, subgroup = drawn[self.names.index(name)], self._subgroups.get(name)
        if subgroup is None or subgroup not in drawn:
            return self.coarse[name].decode(group, rng, within)
        return self.fine[name].decode(self._numbers[name][group, drawn[subgroup]], rng, within)

    def spread(self, table: Floats, names: Sequence[str], *, absent: float = 0.0) -> tuple[Clique, Floats]:
        """Return a table over `fine` groups of some columns as one over their variables.

        Args:
            table: an axis for each column.
            names: the columns.
            absent: what stands where a group does not have such a subgroup. `weigh_subgroups` makes that impossible.
        """
        clique = self.find_clique(names)
        found = np.full([self.sizes[v] for v in clique], absent)
        index = [np.empty(0, np.int64)] * len(clique)
        for axis, name in enumerate(names):
            shape = [-1 if other == axis else 1 for other in range(len(names))]
            for variable, values in zip(self.find_clique([name]), self._pairs[name], strict=False):
                index[clique.index(variable)] = values.reshape(shape)
        found[tuple(index)] = table
        return clique, found

    def weigh_subgroups(self) -> dict[Clique, Floats]:
        """Return the logarithm of the probability of each subgroup, given its group; −∞ if the group has fewer."""
        found = {}
        for name in self._subgroups:
            clique, table = self.spread(self.fine[name].weigh_groups(), [name])
            with np.errstate(divide="ignore"):
                found[clique] = np.log(table / table.sum(axis=1, keepdims=True))
        return found

    def _number(self, name: str) -> Integers:
        """Return the number of each bin's subgroup, counting through all groups."""
        groups = self.coarse[name].groups
        if name not in self.divided:
            return groups
        counts = np.zeros(self.coarse[name].size, np.int64)
        np.maximum.at(counts, groups, self.divided[name] + 1)
        return (np.cumsum(counts) - counts)[groups] + self.divided[name]

    @cached_property
    def _pairs(self) -> dict[str, tuple[Integers, Integers]]:
        """The group and the subgroup of each group in `fine`."""
        found = {}
        for name, fine in self.fine.items():
            bins = np.unique(fine.groups, return_index=True)[1]  # one in each
            subgroups = self.divided.get(name, np.zeros_like(fine.groups))
            found[name] = self.coarse[name].groups[bins], subgroups[bins]
        return found

    @cached_property
    def _numbers(self) -> dict[str, npt.NDArray[Any]]:
        """The number in `fine` of each group and subgroup; any, where a group does not have such a subgroup."""
        found = {}
        for name in self._subgroups:
            table = np.zeros(
                [self.sizes[v] for v in self.find_clique([name])], np.min_scalar_type(self.fine[name].size)
            )
            table[self._pairs[name]] = np.arange(self.fine[name].size)
            found[name] = table
        return found

    def _take_subgroups(self, name: str, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        small = self.divided[name].astype(np.min_scalar_type(int(self.divided[name].max())))
        return small.take(self.coarse[name].bins.to_bins(codes))


def divide_groups(variable: Variable, *, most: int, least: float) -> Integers:
    """Return a subgroup of each bin: neighbours, about equally probable, as many in each group as there is room for.

    >>> from sundog.data.columns import IntegerColumn
    >>> groups, shares = np.array([0, 0, 0, 0, 1, 2, 2]), np.array([0.1, 0.2, 0.1, 0.2, 0.2, 0.1, 0.1])
    >>> divide_groups(Variable(IntegerColumn(min=0, max=6), groups, shares), most=2, least=0.15).tolist()
    [0, 0, 1, 1, 0, 0, 0]

    Args:
        variable: the column in groups.
        most: how many subgroups a group may have.
        least: the smallest probability that a subgroup should have.
    """
    found = np.zeros(len(variable.groups), np.int64)
    for group in range(variable.size):
        bins = np.flatnonzero(variable.groups == group)
        shares = variable.shares[bins]
        room = min(most, len(bins), int(shares.sum() / least))
        if room > 1:
            middles = (np.cumsum(shares) - shares / 2) / shares.sum()
            parts = np.minimum(np.floor(middles * room), room - 1)  # a last bin without records has its middle at 1
            found[bins] = np.unique(parts, return_inverse=True)[1]
    return found
