"""Learn, within the budget, what the schema does not declare: `learn: true` columns and `bins: quantiles`.

Each measurement gets an equal part of the stage's ε (and, where values are discovered, of its δ). The result is a
complete schema, which is public from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from sundog.data.bins import QUANTILE_BINS
from sundog.data.columns import AnyColumn, Column, OrderedColumn, Scale, Unknown
from sundog.data.reading.read import Raw
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import noisy_bounds, noisy_extent, noisy_quantiles, stable_set


def list_nothing_learned(schema: Schema) -> list[str]:
    """Return the columns whose values were learned but none was found: all records are in the catch-all category."""
    return [name for name, column in schema.columns.items() if column.has_nothing_learned]


def list_unknown_columns(schema: Schema) -> list[str]:
    """Return the columns that are still to be learned, in part or in whole."""
    return [name for name, column in schema.columns.items() if not column.complete or column.awaits_quantiles]


class _Arguments(TypedDict):
    epsilon: float
    ledger: Ledger
    purpose: str
    contribution: int


@dataclass(frozen=True)
class MeasurementBudget:
    """The budget of one measurement."""

    ledger: Ledger
    epsilon: float
    delta: float
    contribution: int

    def to_arguments(self, purpose: str) -> _Arguments:
        """Return the arguments that all mechanisms take: who pays how much, and for what."""
        return {"epsilon": self.epsilon, "ledger": self.ledger, "purpose": purpose, "contribution": self.contribution}


@dataclass(frozen=True)
class SchemaLearning:
    """The values of the unknown columns, read and checked; nothing is measured before `learn`."""

    schema: Schema
    raw: Raw
    values: dict[str, Any]  # learning inputs by column

    @property
    def measurements(self) -> int:
        """The number of measurements."""
        columns = [self.schema.columns[name] for name in self.values]
        return sum((not column.complete) + column.awaits_quantiles for column in columns)

    def learn(self, *, epsilon: float, delta: float, ledger: Ledger) -> Schema:
        """Return the completed schema, for a total of (ε, δ)."""
        keyed = sum(self.schema.columns[name].unknown is Unknown.VALUES for name in self.values)
        share = MeasurementBudget(ledger, epsilon / max(self.measurements, 1), delta / max(keyed, 1), self.schema.cap)
        return self.schema.with_columns({name: self._learn_column(name, share) for name in self.values})

    def _learn_column(self, name: str, share: MeasurementBudget) -> Column:
        column: AnyColumn = self.schema.columns[name]
        if not column.complete:
            assert column.unknown is not None  # noqa: S101  `prepare` refuses such columns
            answer = _MEASURE[column.unknown](self.values[name], column, name, share)
            if answer is None:
                raise DataError(
                    f"column {name!r}: too few records to learn its range with ε = {share.epsilon:.3g}; "
                    "declare min and max"
                )
            column = column.complete_with(answer)
        if column.scale is Scale.INTERVAL and column.awaits_quantiles:
            codes = column.encode_present(self.raw.columns[name], where=_locate(self.raw, name))
            return _cut(column, codes, name, share)
        return column


def prepare(raw: Raw, schema: Schema) -> SchemaLearning:
    """Read the values to learn from; all errors in them are raised here, before any budget is spent."""
    kept = raw.bound_contributions(schema.cap) if schema.unit else raw
    values = {}
    for name in list_unknown_columns(schema):
        column, where = schema.columns[name], _locate(raw, name)
        read = column.encode if column.complete else column.to_learning_input
        values[name] = read(kept.columns[name], where=where)
    return SchemaLearning(schema, kept, values)


def _locate(raw: Raw, name: str) -> str:
    return f"{raw.name}: column {name!r}"


# --- the measurements, by what is unknown about a column ---


def _find_values(counts: Any, _: Column, name: str, share: MeasurementBudget) -> Any:
    """Return the values that enough records hold, except with probability δ."""
    return stable_set(counts, delta=share.delta, **share.to_arguments(f"values of {name}"))


def _find_range(numbers: Any, _: Column, name: str, share: MeasurementBudget) -> Any:
    """Return bounds that contain about all numbers; None if there are too few."""
    return noisy_bounds(numbers, **share.to_arguments(f"range of {name}"))


def _find_extent(numbers: Any, column: Column, name: str, share: MeasurementBudget) -> Any:
    """Return the first and the last interval with enough records; None if there is none."""
    return noisy_extent(numbers, size=column.extent_intervals, **share.to_arguments(f"range of {name}"))


_MEASURE: Mapping[Unknown, Callable[[Any, Column, str, MeasurementBudget], Any]] = {
    Unknown.VALUES: _find_values,
    Unknown.RANGE: _find_range,
    Unknown.EXTENT: _find_extent,
}


def _cut(column: OrderedColumn, codes: Any, name: str, share: MeasurementBudget) -> Column:
    """Return the column with edges at noisy quantiles; a value at several quantiles has a bin of its own."""
    cuts = noisy_quantiles(
        codes,
        [i / QUANTILE_BINS for i in range(1, QUANTILE_BINS)],
        size=column.lattice_size,
        **share.to_arguments(f"quantiles of {name}"),
    )
    after = {cut + 1 for cut, times in Counter(cuts).items() if times > 1}
    starts = sorted({*cuts, *after} - {0, column.lattice_size})
    return column.replace(edges=column.find_edges(starts) or [column.min])
