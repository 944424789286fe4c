"""Bins: the lattice of a column cut into the few intervals that count-based models count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.code_set import CodeSet
from sundog.data.columns import Column, ImageColumn, OrderedColumn, SeriesColumn
from sundog.data.columns.arrow import smallest_dtype
from sundog.errors import SchemaError

SMALL = 128  # a lattice this small keeps a bin a code
DEFAULT, IMAGE, SERIES = 64, 16, 32
QUANTILE_BINS = 16  # how many bins `bins: quantiles` makes
TABLE = 2**20


@dataclass(frozen=True, eq=False)
class Bins:
    """Consecutive intervals of codes: bin i holds the codes starts[i] … starts[i + 1] - 1; null has a bin, the last.

    >>> bins = Bins(np.array([0, 10, 20]), size=100, nullable=True)
    >>> bins.count, bins.to_bins(np.array([0, 9, 10, 99, 100])).tolist()
    (4, [0, 0, 1, 2, 3])
    >>> int(bins.to_codes(np.array([3]), np.random.default_rng(0))[0])
    100
    """

    starts: NDArray[np.int64]
    size: int
    nullable: bool

    def __post_init__(self) -> None:
        starts = np.asarray(self.starts, np.int64)
        if not len(starts) or starts[0] != 0 or (np.diff(starts) <= 0).any() or starts[-1] >= self.size:
            raise ValueError(f"bins must start at 0 and ascend below {self.size}")
        object.__setattr__(self, "starts", starts)

    @classmethod
    def from_quantiles(cls, column: Column, values: Iterable[Any]) -> Bins:
        """Bins that begin at the given values (in the column's own units, in any order, repeats forgiven)."""
        if not isinstance(column, OrderedColumn):
            raise SchemaError(f"a {column.type} column has no quantiles; remove `bins: quantiles`")
        inner = {code for code in column.first_codes(tuple(values)) if 0 < code < column.lattice_size}
        return cls(np.array(sorted({0} | inner), np.int64), column.lattice_size, column.nullable)

    @classmethod
    def equal_width(cls, column: Column, count: int) -> Bins:
        """So many bins of as equal a width as the lattice allows; one a code where it is smaller than that."""
        size = column.lattice_size
        count = min(count, size)
        starts = [bin_ * size // count for bin_ in range(count)]
        return cls(np.array(starts, np.int64), size, column.nullable)

    def with_own(self, codes: Iterable[int]) -> Bins:
        """The same bins, but for each of these codes in one of its own.

        >>> Bins(np.array([0, 10]), size=100, nullable=False).with_own([0, 5]).starts.tolist()
        [0, 1, 5, 6, 10]
        """
        own = {start for code in codes for start in (code, code + 1) if start < self.size}
        if not own:
            return self
        starts = {*self.starts.tolist(), *own}
        return Bins(np.array(sorted(starts), np.int64), self.size, self.nullable)

    @property
    def count(self) -> int:
        """The number of bins, that of null included."""
        return len(self.starts) + int(self.nullable)

    def to_bins(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The bin of each code."""
        if self._is_identity:
            return codes
        if self._table is not None:
            found: NDArray[Any] = self._table.take(codes)
            return found
        bins = np.searchsorted(self._first, codes.astype(np.int64), side="right") - 1
        return bins.astype(smallest_dtype(self.count))

    def to_codes(self, bins: NDArray[Any], rng: np.random.Generator, within: CodeSet | None = None) -> NDArray[Any]:
        """A code drawn uniformly inside each bin, or from those of its codes that are in a set."""
        if self._is_identity:
            return np.asarray(bins, smallest_dtype(self.size + int(self.nullable)))
        first, last = self._first[bins], self._last[bins]
        codes = rng.integers(first, last, endpoint=True) if within is None else within.draw(first, last, rng)
        return np.asarray(codes.astype(smallest_dtype(self.size + int(self.nullable))))

    def shares(self, allowed: CodeSet) -> NDArray[np.float64]:
        """Which part of the codes of each bin is in the set.

        >>> Bins(np.array([0, 10, 20]), size=100, nullable=True).shares(CodeSet.between(5, 19)).tolist()
        [0.5, 1.0, 0.0, 0.0]
        """
        return allowed.count(self._first, self._last) / (self._last - self._first + 1.0)

    @property
    def _is_identity(self) -> bool:
        return len(self.starts) == self.size

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """The first code of each bin, that of null included."""
        return np.array([*self.starts.tolist(), *[self.size] * int(self.nullable)], np.int64)

    @cached_property
    def _last(self) -> NDArray[np.int64]:
        """The last code of each bin; ends would not fit where a lattice fills all of int64."""
        return np.append(self._first[1:] - 1, self.size - 1 + int(self.nullable))

    @cached_property
    def _table(self) -> NDArray[Any] | None:
        if self.size > TABLE:
            return None
        return np.repeat(np.arange(self.count, dtype=smallest_dtype(self.count)), self._last - self._first + 1)


def bin_count(column: Column) -> int:
    """How many bins `bins_for` makes, that of null included, without making them.

    >>> from sundog.data.columns import IntegerColumn
    >>> bin_count(IntegerColumn(min=0, max=10**12, bins=2**20))
    1048576
    """
    if isinstance(column, OrderedColumn) and (column.edges is not None or column.special):  # as many as a file can list
        return bins_for(column).count
    return min(_asked(column), column.lattice_size) + int(column.nullable)


def _asked(column: Column) -> int:
    """How many bins a column without edges is cut into, if its lattice is fine enough."""
    if isinstance(column, OrderedColumn):
        if column.bins == "quantiles":
            raise SchemaError("`bins: quantiles` must be measured with budget first; fit does so, or declare `edges`")
        default = column.lattice_size if column.lattice_size <= SMALL else DEFAULT
        return column.bins if isinstance(column.bins, int) else default
    if isinstance(column, ImageColumn | SeriesColumn):
        return column.bins or (IMAGE if isinstance(column, ImageColumn) else SERIES)
    return column.lattice_size


def bins_for(column: Column) -> Bins:
    """The bins that a column declares, or else sensible ones; never a look at the data.

    Special values have bins of their own. Default bins are of equal width here; `fit` refines them within the budget.

    >>> from sundog.data.columns import IntegerColumn
    >>> bins_for(IntegerColumn(min=0, max=99, edges=[18, 65])).starts.tolist()
    [0, 18, 65]
    >>> bins_for(IntegerColumn(min=0, max=9999)).count
    64
    >>> bins_for(IntegerColumn(min=-1, max=99, edges=[18, 65], special=[-1, 0])).starts.tolist()
    [0, 1, 2, 19, 66]
    """
    if isinstance(column, OrderedColumn):
        edges = column.edges
        plain = Bins.equal_width(column, _asked(column)) if edges is None else Bins.from_quantiles(column, edges)
        return plain.with_own(column.special_codes)
    return Bins.equal_width(column, _asked(column))
