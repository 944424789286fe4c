"""Distances between records of any columns, and nearest neighbours in bounded memory.

The squared distance of two records is a sum over columns. Numbers are scaled to the declared range, and two different
categories are √2 apart. Two sets are as far apart as 1 minus their Jaccard index. Of images and series, principal
components are compared, scaled to a total variance of 1; series are smoothed first, so that small shifts in time
matter little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sundog.auditing.array_components import ArrayComponents
from sundog.data.columns import Form
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.prediction.design_matrix import encode_one_hot

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

WIDEST = 512  # features of scalar columns; more are projected
_CELLS = 2**23  # distances at a time
_ROWS = 1024


class Part(Protocol):
    """One part of the distance: encodes records, and compares them."""

    def encode(self, records: Records) -> Any:
        """Return one row for each record."""

    def compare(self, these: Any, those: Any) -> Singles:
        """Return the squared distances, (these, those)."""


@dataclass(frozen=True)
class RecordDistance:
    """A distance between records, which follows from the schema and from records that the attacker holds."""

    parts: Sequence[Part]

    @classmethod
    def fit(cls, schema: Schema, known: Records) -> RecordDistance:
        """Return the distance; the components of images and series are learned from the known records."""
        parts: list[Part] = [_Scalars(schema)] if schema.scalars else []
        for name, column in schema.columns.items():
            if column.form is Form.SET:
                parts.append(_Sets(name))
            elif column.shape:
                parts.append(_Arrays(name, known))
        return cls(parts)

    def find_nearest(self, records: Records, among: Records) -> Floats:
        """Return the distance of each record to the nearest of the others, in bounded memory."""
        ours = [part.encode(records) for part in self.parts]
        theirs = [part.encode(among) for part in self.parts]
        found = np.full(len(records), np.inf)
        width = max(1, _CELLS // _ROWS)
        for start in range(0, len(records), _ROWS):
            rows = slice(start, start + _ROWS)
            for first in range(0, len(among), width):
                others = slice(first, first + width)
                squares = self._compare([each[rows] for each in ours], [each[others] for each in theirs])
                found[rows] = np.minimum(found[rows], squares.min(axis=1))
        return np.asarray(np.sqrt(np.maximum(found, 0.0)))

    def _compare(self, these: Sequence[Any], those: Sequence[Any]) -> Singles:
        total = self.parts[0].compare(these[0], those[0])
        for part, this, that in zip(self.parts[1:], these[1:], those[1:], strict=True):
            total += part.compare(this, that)
        return total


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
        return _compare_rows(these, those)


class _Arrays:
    """Principal components of images or series."""

    def __init__(self, name: str, known: Records) -> None:
        self.components = ArrayComponents(name, known)

    def encode(self, records: Records) -> Singles:
        return self.components.encode(records)

    def compare(self, these: Singles, those: Singles) -> Singles:
        return _compare_rows(these, those)


class _Sets:
    """One minus the Jaccard index of two sets; two empty sets are equal."""

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, records: Records) -> Any:
        return records.codes[self.name].tocsr().astype(np.float32)

    def compare(self, these: Any, those: Any) -> Singles:
        common = (these @ those.T).toarray()
        sizes = these.sum(axis=1)[:, None] + those.sum(axis=1)[None, :]
        either = np.maximum(sizes - common, 1.0)
        return np.asarray(np.where(sizes > 0, 1 - common / either, 0.0) ** 2, np.float32)


def _compare_rows(these: Singles, those: Singles) -> Singles:
    """Return the squared Euclidean distances."""
    squares = np.einsum("ij,ij->i", these, these)[:, None] + np.einsum("ij,ij->i", those, those)[None, :]
    squares -= 2 * (these @ those.T)
    return np.asarray(squares, np.float32)
