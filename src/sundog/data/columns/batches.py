"""Values that are read a batch at a time, so that a large file never lies in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Batches:
    """One value a record, in batches that are read again each time they are iterated over.

    >>> batches = Batches(3, lambda: iter([pa.chunked_array([[1, 2]]), pa.chunked_array([[3]])]))
    >>> len(batches), batches.take([2, 0]).collect().to_pylist()
    (3, [3, 1])

    Args:
        count: how many values there are.
        read: yields the batches as chunked Arrow arrays, in order.
    """

    count: int
    read: Callable[[], Iterator[pa.ChunkedArray]]

    def __len__(self) -> int:
        return self.count

    def iterchunks(self) -> Iterator[Any]:
        """Yield the values as Arrow arrays; named as in `pa.ChunkedArray`."""
        for batch in self.read():
            yield from batch.chunks

    def collect(self) -> pa.ChunkedArray:
        """Return all values together."""
        chunks = list(self.iterchunks())
        return pa.chunked_array(chunks, None if chunks else pa.string())

    def convert(self, function: Callable[[pa.ChunkedArray], pa.ChunkedArray]) -> Batches:
        """Return batches that are converted as they are read; the function must convert each value alone."""
        return Batches(self.count, lambda: map(function, self.read()))

    def take(self, index: Any) -> Batches:
        """Return the values at these positions, in this order, as one batch."""
        return Batches(len(index), lambda: iter([self.collect().take(pa.array(index))]))
