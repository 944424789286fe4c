"""Paying for what the schema does not declare: `learn: true` columns and `bins: quantiles`.

Each measurement gets an equal part of the stage's ε (and, where keys are discovered, of its δ). What comes out is a
complete schema, which is public from then on.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sundog.data.columns import Column, ContinuousColumn, DatetimeColumn, IntegerColumn, OrderedColumn
from sundog.data.columns.arrow import chunks, missing
from sundog.data.columns.listed import ListedColumn
from sundog.data.columns.numbers import to_float64
from sundog.data.read import Raw
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import noisy_bounds, noisy_quantiles, stable_set

QUANTILE_BINS = 16  # how many bins `bins: quantiles` makes
_EARLIEST, _LATEST = "1900-01-01", "2100-01-01"  # learned dates are looked for between these


def unknown_columns(schema: Schema) -> list[str]:
    """The columns about which something is to be learned."""
    return [name for name, column in schema.columns.items() if not column.complete or _wants_quantiles(column)]


@dataclass(frozen=True)
class Spending:
    """What one measurement of this stage may spend."""

    ledger: Ledger
    epsilon: float
    delta: float
    contribution: int


@dataclass(frozen=True)
class Lesson:
    """What is to be learned about the unknown columns: the values are read and checked, nothing is measured yet."""

    schema: Schema
    values: dict[str, Any]

    @property
    def measurements(self) -> int:
        """How many measurements it takes."""
        columns = [self.schema.columns[name] for name in self.values]
        return sum((not column.complete) + _wants_quantiles(column) for column in columns)

    def learn(self, *, epsilon: float, delta: float, ledger: Ledger) -> Schema:
        """The completed schema, at a cost of (ε, δ) in all."""
        keyed = sum(isinstance(self.schema.columns[name], ListedColumn) for name in self.values)
        share = Spending(ledger, epsilon / max(self.measurements, 1), delta / max(keyed, 1), self.schema.cap)
        return self.schema.with_columns({name: self._learned(name, share) for name in self.values})

    def _learned(self, name: str, share: Spending) -> Column:
        column: Column = self.schema.columns[name]
        values = self.values[name]
        if not column.complete:
            column = _complete(column, values, name, share)
        if isinstance(column, OrderedColumn) and _wants_quantiles(column):
            column = _cut(column, values, name, share)
        return column


def prepare(raw: Raw, schema: Schema) -> Lesson:
    """Reads what is to be learned from; everything that can be wrong with it is said here, before anything is spent."""
    kept = raw.capped(schema.cap) if schema.unit else raw
    names = unknown_columns(schema)
    values = {
        name: _readable(schema.columns[name], kept.columns[name], f"{raw.name}: column {name!r}") for name in names
    }
    return Lesson(schema, values)


def _wants_quantiles(column: Column) -> bool:
    return isinstance(column, OrderedColumn) and column.bins == "quantiles"


def _readable(column: Column, values: Any, place: str) -> Any:
    """How often each value occurs, for categories; days for dates; numbers for the rest."""
    if isinstance(column, ListedColumn):
        return _tally(values)
    if isinstance(column, DatetimeColumn) and not column.complete:
        column = _two_centuries(column)
    if isinstance(column, IntegerColumn | ContinuousColumn) and not column.complete:
        return np.concatenate([np.empty(0), *(_numbers(chunk, place) for chunk in chunks(values))])
    if column.complete:
        codes = column.encode(values, where=place)
        return codes[codes != column.null_code].astype(np.int64)
    raise DataError(f"{place}: a {column.type} column cannot be learned; declare it in the schema")


def _tally(values: Any) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for chunk in chunks(values):
        for pair in chunk.value_counts().to_pylist():
            if pair["values"] is not None and pair["values"] == pair["values"]:
                counts[pair["values"]] += pair["counts"]
    return counts


def _numbers(chunk: Any, place: str) -> Any:
    if pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_decode()
    numbers, bad = to_float64(chunk)
    absent = missing(chunk)
    if (bad & ~absent).any():
        raise DataError(
            f"{place}: {chunk[int((bad & ~absent).argmax())].as_py()!r} is not a number; fix it or declare "
            "the column categorical"
        )
    return numbers[~absent]


def _complete(column: Column, values: Any, name: str, share: Spending) -> Column:
    if isinstance(column, ListedColumn):
        keys = stable_set(
            values,
            epsilon=share.epsilon,
            delta=share.delta,
            ledger=share.ledger,
            purpose=f"values of {name}",
            contribution=share.contribution,
        )
        return column.completed(values=keys)
    if isinstance(column, DatetimeColumn):
        return _learn_dates(column, values, name, share)
    bounds = noisy_bounds(
        values, epsilon=share.epsilon, ledger=share.ledger, purpose=f"range of {name}", contribution=share.contribution
    )
    if bounds is None:
        raise DataError(
            f"column {name!r}: too few records to learn its range with ε = {share.epsilon:.3g}; declare min and max"
        )
    if isinstance(column, IntegerColumn):
        low, high = (int(max(-(2.0**62), min(2.0**62, edge))) for edge in (math.floor(bounds[0]), math.ceil(bounds[1])))
        return column.completed(min=low, max=high)
    return column.completed(min=bounds[0], max=bounds[1])


def _two_centuries(column: DatetimeColumn) -> DatetimeColumn:
    return column.completed(min=_EARLIEST, max=_LATEST, resolution="day", bins=None)


def _learn_dates(column: DatetimeColumn, days: Any, name: str, share: Spending) -> Column:
    """The 0.5% and 99.5% quantiles, by the day."""
    wide = _two_centuries(column)
    ends = noisy_quantiles(
        days,
        [0.005, 0.995],
        size=wide.lattice_size,
        epsilon=share.epsilon,
        ledger=share.ledger,
        purpose=f"range of {name}",
        contribution=share.contribution,
    )
    first, last = (day.date().isoformat() for day in wide.decode(ends).to_pylist())
    return column.completed(min=first, max=last)


def _cut(column: OrderedColumn, values: Any, name: str, share: Spending) -> Column:
    """Bins with about as many records in each, by edges at noisy quantiles."""
    codes = _codes_of(column, values)
    cuts = noisy_quantiles(
        codes,
        [i / QUANTILE_BINS for i in range(1, QUANTILE_BINS)],
        size=column.lattice_size,
        epsilon=share.epsilon,
        ledger=share.ledger,
        purpose=f"quantiles of {name}",
        contribution=share.contribution,
    )
    return column.completed(bins=None, edges=list(dict.fromkeys(column.decode(np.array(cuts)).to_pylist())))


def _codes_of(column: OrderedColumn, values: Any) -> Any:
    """Codes as they were read, or of numbers whose range has only now been learned."""
    return column.encode(values, where="learned").astype(np.int64) if values.dtype == np.float64 else values
