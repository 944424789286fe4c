"""Distances between records of any columns, and nearest neighbours in bounded memory.

The squared distance of two records is a sum over columns. Numbers are scaled to the declared range, and two different
categories are √2 apart. Two sets are as far apart as 1 minus their Jaccard index.

Images and series are compared in two ways. One is by principal components, of series that were smoothed: noise matters
little. The other is the least distance over shifts of an image by up to two pixels, and dynamic time warping of series:
a shift matters little. It costs far more, and is measured only to those with the nearest components: to 256 for few
records, to 64 images or 16 series for many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sundog.auditing.aligned_arrays import ShiftedImages, WarpedSeries, compare_rows
from sundog.auditing.array_components import ArrayComponents
from sundog.data.columns import Form
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.prediction.design_matrix import encode_one_hot

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]

WIDEST = 512  # features of scalar columns; more are projected
_HELD = 2**15  # encoded records at a time
_ROWS, _OTHERS = 1024, 2048  # distances at a time
_ALIGNMENTS = 2**17  # of a search, unless there are many records
_MOST = 256  # alignments of a record, and at a time


class Part(Protocol):
    """One part of the distance: encodes records, and compares them."""

    def encode(self, records: Records) -> Any:
        """Return one row for each record."""

    def compare(self, these: Any, those: Any) -> Singles:
        """Return the squared distances, (these, those)."""


@dataclass(frozen=True)
class RecordDistance:
    """A distance between records, which follows from the schema and from records that the attacker holds.

    Args:
        parts: those that are cheap enough for all pairs.
        aligned: the parts of the other way; empty if there are no images or series.
        count: to how many of the nearest the other way is measured at least.
    """

    parts: Sequence[Part]
    aligned: Sequence[Part] = ()
    count: int = 1

    @classmethod
    def fit(cls, schema: Schema, known: Records) -> RecordDistance:
        """Return the distance; what is compared of images and series is learned from the known records."""
        parts: list[Part] = [_Scalars(schema)] if schema.scalars else []
        aligned, count = list(parts), 1
        for name, column in schema.columns.items():
            if column.form is Form.SET:
                parts.append(_Sets(name))
                aligned.append(parts[-1])
            elif column.shape:
                array = (WarpedSeries if column.form is Form.SERIES else ShiftedImages)(name, known)
                parts.append(_Components(name, known))
                aligned.append(array)
                count = max(count, array.count)
        return cls(parts, aligned, count) if count > 1 else cls(parts)

    def find_nearest(self, records: Records, among: Records) -> Floats:
        """Return the distance of each record to the nearest of the others, in bounded memory."""
        return self._find_nearest(records, among, align=False)[:, 0]

    def find_nearest_both_ways(self, records: Records, among: Records) -> Floats:
        """Return the same in a row for each record, and beside it the other way if there are images or series."""
        return self._find_nearest(records, among, align=bool(self.aligned))

    def _find_nearest(self, records: Records, among: Records, *, align: bool) -> Floats:
        count = min(self._choose_count(len(records)), len(among)) if align else 1
        found = np.empty((len(records), 2 if align else 1))
        for start in range(0, len(records), _HELD):
            held = slice(start, start + _HELD)
            squares, places = self._find_candidates(records.take(held), among, count)
            found[held, 0] = squares.min(axis=1)
            if align:
                found[held, 1] = self._align(records.take(held), among, places).min(axis=1)
        return np.asarray(np.sqrt(np.maximum(found, 0.0)))

    def _choose_count(self, records: int) -> int:
        return max(self.count, min(_MOST, _ALIGNMENTS // max(1, records)))

    def _find_candidates(self, records: Records, among: Records, count: int) -> tuple[Singles, Integers]:
        """Return the least distances of each record, squared, and where they are found; in no order."""
        ours = [part.encode(records) for part in self.parts]
        squares = np.full((len(records), count), np.inf, np.float32)
        places = np.zeros((len(records), count), np.int64)
        for first in range(0, len(among), _OTHERS):
            theirs = [part.encode(among.take(slice(first, first + _OTHERS))) for part in self.parts]
            for start in range(0, len(records), _ROWS):
                rows = slice(start, start + _ROWS)
                found = _compare(self.parts, [each[rows] for each in ours], theirs)
                _keep_least(squares[rows], places[rows], found, first)
        return squares, places

    def _align(self, records: Records, among: Records, places: Integers) -> Singles:
        """Return the distances of the other way, squared, of each record to those at its places."""
        squares, count = np.empty(places.shape, np.float32), places.shape[1]
        step = max(1, _MOST // count)
        for start in range(0, len(records), step):
            few = slice(start, start + step)
            ours = [part.encode(records.take(few)) for part in self.aligned]
            theirs = [part.encode(among.take(places[few].ravel())) for part in self.aligned]
            for row in range(len(places[few])):
                one, others = slice(row, row + 1), slice(row * count, (row + 1) * count)
                found = _compare(self.aligned, [each[one] for each in ours], [each[others] for each in theirs])
                squares[start + row] = found[0]
        return squares


def _compare(parts: Sequence[Part], these: Sequence[Any], those: Sequence[Any]) -> Singles:
    total = parts[0].compare(these[0], those[0])
    for part, this, that in zip(parts[1:], these[1:], those[1:], strict=True):
        total += part.compare(this, that)
    return total


def _keep_least(squares: Singles, places: Integers, found: Singles, first: int) -> None:
    """Replace distances, and the places where they are found, by smaller ones of records from `first` on."""
    better = np.flatnonzero(found.min(axis=1) < squares.max(axis=1))
    count = squares.shape[1]
    numbers = np.broadcast_to(np.arange(first, first + found.shape[1]), found[better].shape)
    both = np.concatenate([squares[better], found[better]], axis=1)
    where = np.concatenate([places[better], numbers], axis=1)
    chosen = np.argpartition(both, count - 1, axis=1)[:, :count]
    squares[better] = np.take_along_axis(both, chosen, axis=1)
    places[better] = np.take_along_axis(where, chosen, axis=1)


class _Scalars:
    """All columns of one value: numbers, and an indicator for each category."""

    def __init__(self, schema: Schema) -> None:
        self.names = list(schema.scalars)
        width = sum(1 + column.nullable if column.is_numeric else column.size for column in schema.scalars.values())
        self.projection = None
        if width > WIDEST:  # keeps distances up to a few per cent (Johnson and Lindenstrauss 1984)
            rng = np.random.default_rng(0)
            self.projection = rng.standard_normal((width, WIDEST), np.float32) / math.sqrt(WIDEST)

    def encode(self, records: Records) -> Singles:
        encoded = encode_one_hot(records, self.names).astype(np.float32)
        return np.ascontiguousarray(encoded.toarray() if self.projection is None else encoded @ self.projection)

    def compare(self, these: Singles, those: Singles) -> Singles:
        return compare_rows(these, those)


class _Components(ArrayComponents):
    """Principal components of images or series."""

    def compare(self, these: Singles, those: Singles) -> Singles:
        return compare_rows(these, those)


class _Sets:
    """One minus the Jaccard index of two sets; two empty sets are equal."""

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, records: Records) -> Any:
        return records.codes[self.name].tocsr().astype(np.float32)

    def compare(self, these: Any, those: Any) -> Singles:
        common = (these @ those.T).toarray()
        ours, theirs = (each.sum(axis=1) for each in (these, those))
        either = ours[:, None] + theirs[None, :]
        either -= common
        common /= np.maximum(either, 1.0, out=either)
        common[np.ix_(ours == 0, theirs == 0)] = 1.0
        return np.asarray((1 - common) ** 2, np.float32)
