"""Bucket trees: an order in which variables are summed out, and the tables that this takes (Dechter 1999).

Eliminating a variable multiplies all factors that mention it into one table, its bucket, whose other variables are its
separator. The separator's first variable in the order is the bucket's parent. Exact inference takes time and memory in
proportion to the cells of all buckets, so that this number decides which marginals a model can have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

Clique = tuple[int, ...]  # variables, in increasing order

_TRIES = 20  # searches for an order that may fail: each takes far longer than a look at the order in use


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


class TreeTooLargeError(Exception):
    """A bucket tree has more cells than it may."""


def eliminate(
    sizes: Sequence[int], cliques: Iterable[Clique], order: Sequence[int] | None = None, *, limit: float = math.inf
) -> BucketTree:
    """Return the bucket tree of an order; without one, of a greedy order: the variable with the smallest bucket next.

    >>> eliminate((2, 3, 4), [(0, 1), (1, 2)], order=(1, 0, 2)).cells
    36

    Args:
        sizes: how many values each variable has.
        cliques: each is to be in one bucket.
        order: all variables.
        limit: of the cells; raise TreeTooLargeError as soon as there are more.
    """
    neighbours = connect(len(sizes), cliques)
    separators: dict[int, tuple[int, ...]] = {}
    cells = 0
    for variable in _search_order(sizes, neighbours) if order is None else order:
        separators[variable] = _sort_axes(sizes, _sum_out(variable, neighbours))
        cells += count_cells(sizes[axis] for axis in (variable, *separators[variable]))
        if cells > limit:
            raise TreeTooLargeError
    return BucketTree(tuple(sizes), tuple(separators), tuple(separators[variable] for variable in range(len(sizes))))


def _search_order(sizes: Sequence[int], neighbours: Sequence[set[int]]) -> Iterator[int]:
    """Yield the variable with the smallest bucket, until none is left; the caller sums out each."""
    logs = [math.log(max(size, 2)) for size in sizes]  # as `count_cells` counts

    def measure(variable: int) -> tuple[float, int]:
        return logs[variable] + math.fsum(logs[other] for other in neighbours[variable]), variable

    left = {variable: measure(variable) for variable in range(len(sizes))}
    while left:
        variable = min(left, key=left.__getitem__)
        del left[variable]
        around = neighbours[variable]
        yield variable
        for other in around:
            left[other] = measure(other)


def _sum_out(variable: int, neighbours: Sequence[set[int]]) -> set[int]:
    """Make all neighbours of a variable neighbours of each other, remove the variable, and return them."""
    around = neighbours[variable]
    for other in around:
        neighbours[other] |= around
        neighbours[other] -= {other, variable}
    return around


def _sort_axes(sizes: Sequence[int], separator: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(separator, key=lambda other: (sizes[other], other)))


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
    clique to the root change. Only if it does not fit there, another order is sought, until too many had no room.

    >>> growing = GrowingTree((10, 10, 10), [(0, 1), (1, 2)], limit=500)
    >>> growing.add((0, 2)), growing.tree.cells
    (False, 210)

    Args:
        sizes: how many values each variable has.
        cliques: to begin with.
        limit: of the cells.
        order: to begin with; a greedy one by default.
    """

    def __init__(
        self, sizes: Sequence[int], cliques: Iterable[Clique], limit: float, order: Sequence[int] | None = None
    ) -> None:
        self.sizes = tuple(sizes)
        self.cliques = list(cliques)
        self.limit = limit
        self._tries = _TRIES
        self._use(eliminate(sizes, self.cliques, order))

    @property
    def tree(self) -> BucketTree:
        """The bucket tree of the cliques, in the order that is in use."""
        separators = (_sort_axes(self.sizes, self._separators[variable]) for variable in range(len(self.sizes)))
        return BucketTree(self.sizes, self.order, tuple(separators))

    def add(self, clique: Clique) -> bool:
        """Add a clique if it fits; return whether it did."""
        changed = self._propagate(clique)
        cells = self._count_changed(changed)
        if cells <= self.limit:
            self._separators.update(changed)
            self.cells = cells
        elif not self._reorder(clique):
            return False
        self.cliques.append(clique)
        return True

    def has_room(self, clique: Clique) -> bool:
        """Return whether a clique fits in the order that is in use; another order may have room where it has none."""
        return self._count_changed(self._propagate(clique)) <= self.limit

    def _reorder(self, clique: Clique) -> bool:
        """Use another order in which a clique fits; return whether one was found."""
        if not self._tries:
            return False
        try:
            self._use(eliminate(self.sizes, [*self.cliques, clique], limit=self.limit))
        except TreeTooLargeError:
            self._tries -= 1
            return False
        return True

    def _count_changed(self, changed: Mapping[int, set[int]]) -> int:
        """Return the cells of the whole tree with some separators changed."""
        return self.cells + sum(self._count(v, new) - self._count(v, self._separators[v]) for v, new in changed.items())

    def _use(self, tree: BucketTree) -> None:
        self.order = tree.order
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
