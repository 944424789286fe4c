"""Bucket trees: an order in which variables are summed out, and the tables that this takes (Dechter 1999).

Eliminating a variable multiplies all factors that mention it into one table, its bucket, whose other variables are its
separator. The separator's first variable in the order is the bucket's parent. Exact inference takes time and memory in
proportion to the cells of all buckets, so that this number decides which marginals a model can have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

Clique = tuple[int, ...]  # variables, in increasing order


@dataclass(frozen=True)
class BucketTree:
    """The buckets of all variables.

    >>> tree = eliminate((2, 3, 4), [(0, 1), (1, 2)])
    >>> tree.order, tree.separators, tree.cells
    ((0, 1, 2), ((1,), (2,), ()), 22)

    Args:
        sizes: how many values each variable has.
        order: the variables, as they are eliminated.
        separators: by variable, those that it shares its bucket with; all of them are eliminated later. The largest
            comes last, so that the tables' innermost axes are long.
    """

    sizes: tuple[int, ...]
    order: tuple[int, ...]
    separators: tuple[tuple[int, ...], ...]

    @cached_property
    def position(self) -> dict[int, int]:
        """The place of each variable in the order."""
        return {variable: place for place, variable in enumerate(self.order)}

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The variables whose buckets send their message to each bucket."""
        found: list[list[int]] = [[] for _ in self.sizes]
        for variable in self.order:
            parent = self.parent(variable)
            if parent is not None:
                found[parent].append(variable)
        return tuple(map(tuple, found))

    @property
    def cells(self) -> int:
        """The cells of all buckets."""
        return sum(count_cells(self.shape(variable)) for variable in self.order)

    def scope(self, variable: int) -> tuple[int, ...]:
        """Return the axes of a bucket: its own variable, then the separator."""
        return (variable, *self.separators[variable])

    def shape(self, variable: int) -> tuple[int, ...]:
        """Return the shape of a bucket."""
        return tuple(self.sizes[axis] for axis in self.scope(variable))

    def parent(self, variable: int) -> int | None:
        """Return the variable whose bucket takes the message of this one; None at a root."""
        return self.find_home(self.separators[variable]) if self.separators[variable] else None

    def find_home(self, clique: tuple[int, ...]) -> int:
        """Return the variable in whose bucket a factor over the clique belongs: the first that is eliminated."""
        return min(clique, key=self.position.__getitem__)


def count_cells(shape: Iterable[int]) -> int:
    """Return the cells of a table; an axis of one value counts as two, so that few cells also means few axes.

    >>> count_cells((3, 4)), count_cells([1] * 5)
    (12, 32)
    """
    return math.prod(max(size, 2) for size in shape)


def eliminate(sizes: Sequence[int], cliques: Iterable[Clique]) -> BucketTree:
    """Return the bucket tree of a greedy order: always the variable with the smallest bucket next."""
    neighbours = connect(len(sizes), cliques)
    logs = [math.log(max(size, 2)) for size in sizes]  # as `count_cells` counts

    def measure(variable: int) -> tuple[float, int]:
        return logs[variable] + math.fsum(logs[other] for other in neighbours[variable]), variable

    left = {variable: measure(variable) for variable in range(len(sizes))}
    order: list[int] = []
    separators: list[tuple[int, ...]] = [()] * len(sizes)
    while left:
        variable = min(left, key=left.__getitem__)
        del left[variable]
        order.append(variable)
        around = neighbours[variable]
        separators[variable] = tuple(sorted(around, key=lambda other: (sizes[other], other)))
        for other in around:
            neighbours[other] |= around
            neighbours[other] -= {other, variable}
        for other in around:
            left[other] = measure(other)
    return BucketTree(tuple(sizes), tuple(order), tuple(separators))


def connect(count: int, cliques: Iterable[Clique]) -> list[set[int]]:
    """Return the neighbours of each variable, when all variables of a clique are neighbours."""
    neighbours: list[set[int]] = [set() for _ in range(count)]
    for clique in cliques:
        for variable in clique:
            neighbours[variable].update(clique)
            neighbours[variable].discard(variable)
    return neighbours


class GrowingTree:
    """Cliques that are added one by one, as long as the bucket tree stays below a number of cells.

    Whether one more fits is first decided in the order that is in use, where only the buckets on the way from the
    clique to the root change. Only if it does not fit there, another order is sought.

    >>> tree = GrowingTree((10, 10, 10), [(0, 1), (1, 2)], limit=500)
    >>> tree.add((0, 2)), tree.cells
    (False, 210)
    """

    def __init__(self, sizes: Sequence[int], cliques: Iterable[Clique], limit: float) -> None:
        self.sizes = tuple(sizes)
        self.cliques = list(cliques)
        self.limit = limit
        self._use(eliminate(sizes, self.cliques))

    def add(self, clique: Clique) -> bool:
        """Add a clique if it fits; return whether it did."""
        changed = self._propagate(clique)
        cells = self._count_changed(changed)
        if cells <= self.limit:
            self._separators.update(changed)
            self.cells = cells
        else:
            tree = eliminate(self.sizes, [*self.cliques, clique])
            if tree.cells > self.limit:
                return False
            self._use(tree)
        self.cliques.append(clique)
        return True

    def has_room(self, clique: Clique) -> bool:
        """Return whether a clique fits in the order that is in use; another order may have room where it has none."""
        return self._count_changed(self._propagate(clique)) <= self.limit

    def _count_changed(self, changed: Mapping[int, set[int]]) -> int:
        """Return the cells of the whole tree with some separators changed."""
        return self.cells + sum(self._count(v, new) - self._count(v, self._separators[v]) for v, new in changed.items())

    def _use(self, tree: BucketTree) -> None:
        self._position = tree.position
        self._separators = {variable: set(separator) for variable, separator in enumerate(tree.separators)}
        self.cells = tree.cells

    def _propagate(self, clique: Clique) -> dict[int, set[int]]:
        """Return the separators that the clique changes: what is new in one is passed on to its parent."""
        changed: dict[int, set[int]] = {}
        variable = min(clique, key=self._position.__getitem__)
        new = set(clique) - {variable}
        while new:
            separator = self._separators[variable] | new
            changed[variable] = separator
            variable = min(separator, key=self._position.__getitem__)
            new = separator - {variable} - self._separators[variable]
        return changed

    def _count(self, variable: int, separator: set[int]) -> int:
        return count_cells(self.sizes[each] for each in (variable, *separator))
