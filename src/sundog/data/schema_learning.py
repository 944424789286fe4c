"""Paying for what the schema does not declare: `learn: true` columns and `bins: quantiles`.

Each measurement gets an equal part of the stage's ε (and, where keys are discovered, of its δ). What comes out is a
complete schema, which is public from then on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sundog.data.bins import QUANTILE_BINS
from sundog.data.columns import Column, ContinuousColumn, DatetimeColumn, IntegerColumn, OrderedColumn
from sundog.data.columns.arrow import missing, shown
from sundog.data.columns.listed import ListedColumn
from sundog.data.columns.numbers import to_float64
from sundog.data.columns.values import alone, chunks, kinds, spellings, value_of
from sundog.data.reading.read import Raw
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import noisy_bounds, noisy_extent, noisy_quantiles, stable_set

_EARLIEST, _LATEST, _YEARS = "1900-01-01", "2100-01-01", 200  # learned dates are looked for between these
_FAR = 2**61  # learned integers lie between this and its negative


def nothing_learned(schema: Schema) -> list[str]:
    """The columns whose values were learned, and none was found: all records are in the catch-all category."""
    learned = {name: c for name, c in schema.columns.items() if isinstance(c, ListedColumn) and c.learn}
    return [name for name, column in learned.items() if column.values == (column.other,)]


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
class SchemaLearning:
    """What is to be learned about the unknown columns: the values are read and checked, nothing is measured yet."""

    schema: Schema
    raw: Raw
    values: dict[str, Any]  # of each unknown column, in a form to learn from

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
            column = _cut(column, _present(column, self.raw.columns[name], _place(self.raw, name)), name, share)
        return column


def prepare(raw: Raw, schema: Schema) -> SchemaLearning:
    """Reads what is to be learned from; everything that can be wrong with it is said here, before anything is spent."""
    kept = raw.capped(schema.cap) if schema.unit else raw
    names = unknown_columns(schema)
    values = {name: _readable(schema.columns[name], kept.columns[name], _place(raw, name)) for name in names}
    return SchemaLearning(schema, kept, values)


def _place(raw: Raw, name: str) -> str:
    return f"{raw.name}: column {name!r}"


def _wants_quantiles(column: Column) -> bool:
    return isinstance(column, OrderedColumn) and column.bins == "quantiles" and column.edges is None


def _readable(column: Column, values: Any, place: str) -> Any:
    """How often each value occurs, for categories; years for dates; numbers for the rest, gaps left out."""
    if isinstance(column, ListedColumn):
        return _tally(column, values, place)
    if isinstance(column, ContinuousColumn) and not column.complete:
        return _numbers(column, values, place)
    if column.complete:
        return _present(column, values, place)
    if isinstance(column, DatetimeColumn):
        days = _present(_two_centuries(column), values, place)
        return np.asarray(days * _YEARS // _two_centuries(column).lattice_size)
    if isinstance(column, IntegerColumn):
        wide = column.completed(min=-_FAR, max=_FAR, step=1, bins=None)
        return (_present(wide, values, place) - _FAR).astype(np.float64)
    raise DataError(f"{place}: a {column.type} column cannot be learned; declare it in the schema")


def _present(column: Column, values: Any, place: str) -> Any:
    codes = column.encode(values, where=place)
    return (codes[codes != column.null_code] if column.nullable else codes).astype(np.int64)


def _tally(column: Column, values: Any, place: str) -> Counter[str]:
    """How often each spelling occurs; every value has but one, whatever the others are, so these may be published."""
    counts: Counter[str] = Counter()
    for chunk in _chunks_without_gaps(column, values, place):
        for pair in spellings(chunk, where=place).drop_null().value_counts().to_pylist():
            counts[pair["values"]] += pair["counts"]
    return counts


def _numbers(column: ContinuousColumn, values: Any, place: str) -> Any:
    parts = [np.empty(0)]
    for chunk in _chunks_without_gaps(column, values, place):
        for _, part in kinds(chunk):
            numbers, bad = to_float64(column.plain(part))
            absent = missing(part)
            if (bad & ~absent).any():
                value = shown(value_of(alone(part, int((bad & ~absent).argmax()))))
                raise DataError(f"{place}: {value} is not a number; fix it or declare the column categorical")
            parts.append(numbers[~absent])
    return np.concatenate(parts)


def _chunks_without_gaps(column: Column, values: Any, place: str) -> Iterator[Any]:
    row = 0
    for part in chunks(values, where=place):
        chunk = part.dictionary_decode() if pa.types.is_dictionary(part.type) else part
        absent = missing(chunk)
        if absent.any() and not column.nullable:
            number = row + int(absent.argmax()) + 1
            raise DataError(
                f"{place}: row {number} is empty but the column is not nullable; declare `nullable: true` or fill it"
            )
        row += len(chunk)
        yield chunk


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
        raise _too_few(name, share)
    if isinstance(column, IntegerColumn):
        low, high = (int(max(-_FAR, min(_FAR, edge))) for edge in (math.floor(bounds[0]), math.ceil(bounds[1])))
        return _bounded(column, low, high)
    return _bounded(column, *bounds)


def _two_centuries(column: DatetimeColumn) -> DatetimeColumn:
    return column.completed(min=_EARLIEST, max=_LATEST, resolution="day", bins=None)


def _learn_dates(column: DatetimeColumn, years: Any, name: str, share: Spending) -> Column:
    """The first and the last year that enough records fall into."""
    found = noisy_extent(
        years,
        size=_YEARS,
        epsilon=share.epsilon,
        ledger=share.ledger,
        purpose=f"range of {name}",
        contribution=share.contribution,
    )
    if found is None:
        raise _too_few(name, share)
    wide = _two_centuries(column)
    ends = [
        found[0] * wide.lattice_size // _YEARS,
        min((found[1] + 1) * wide.lattice_size // _YEARS, wide.lattice_size - 1),
    ]
    first, last = (day.date().isoformat() for day in wide.decode(ends).to_pylist())
    return _bounded(column, first, last)


def _bounded(column: Any, low: Any, high: Any) -> Column:
    """The column with bounds, declared ones first; what was declared for a wider range is cut to fit."""
    low = low if column.min is None else column.min
    high = max(low, high) if column.max is None else column.max
    low = min(low, high)
    if column.special is not None:  # which are declared, so the range may hold them whatever was measured
        low, high = min(low, *column.special), max(high, *column.special)
    found: dict[str, Any] = {"min": low, "max": high}
    if column.edges is not None:
        found["edges"] = [edge for edge in column.edges if low <= edge <= high] or None
    if isinstance(column, ContinuousColumn) and column.resolution and (high - low) / column.resolution > 2**49:
        found["resolution"] = None  # too fine for so wide a range: the default is a millionth of it
    completed: Column = column.completed(**found)
    return completed


def _too_few(name: str, share: Spending) -> DataError:
    return DataError(
        f"column {name!r}: too few records to learn its range with ε = {share.epsilon:.3g}; declare min and max"
    )


def _cut(column: OrderedColumn, codes: Any, name: str, share: Spending) -> Column:
    """Bins with about as many records in each, by edges at noisy quantiles; what is several of them has its own."""
    cuts = noisy_quantiles(
        codes,
        [i / QUANTILE_BINS for i in range(1, QUANTILE_BINS)],
        size=column.lattice_size,
        epsilon=share.epsilon,
        ledger=share.ledger,
        purpose=f"quantiles of {name}",
        contribution=share.contribution,
    )
    after = {cut + 1 for cut, times in Counter(cuts).items() if times > 1}
    starts = sorted({*cuts, *after} - {0, column.lattice_size})
    return column.completed(edges=column.edges_at(starts) or [column.min])
