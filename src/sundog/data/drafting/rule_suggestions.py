"""Rules that all records happen to satisfy, for a draft. They are found in the data, and NOT PRIVATE until reviewed.

Only simple rules are looked for: a column that follows from another one with few values, sums, columns that are missing
together, and `a <= b` between columns with similar ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sundog.data.columns import OrderedColumn
from sundog.data.records import Records
from sundog.data.rules import ColumnSum, FunctionalDependency, NullTogether, Ordering, Rule
from sundog.data.schema import Schema
from sundog.errors import SchemaError

_FEW_VALUES = 100  # of a column that another may follow from
_SUPPORT = 5  # records for each of these values, on average
_FEWEST = 20  # records from which comparisons and sums are believed
_SIMILAR = 0.5  # of the range that two columns cover together, the share that both cover
_MOST_NUMERIC = 40  # columns among which sums are looked for
_GLIMPSE = 64  # records that rule out most sums


def suggest_rules(records: Records) -> Schema:
    """Return the schema of the records with rules that all of them satisfy.

    >>> import numpy as np
    >>> number = {"type": "integer", "min": 0, "max": 99}
    >>> schema = Schema.from_dict({"columns": {"a": number, "b": number, "total": {**number, "max": 198}}})
    >>> a, b = np.random.default_rng(0).integers(0, 100, (2, 50))
    >>> [str(rule) for rule in suggest_rules(Records(schema, {"a": a, "b": b, "total": a + b}, 50)).rules]
    ['total = a + b']
    """
    found = records.schema
    for rule in _list_candidates(records):
        try:
            changed = found.with_rules([*found.rules, rule])
        except SchemaError:
            continue  # it contradicts an earlier one, or derives the same column
        if not _is_in_a_sum(rule, found) and changed.bind_rules().holds(records.codes).all():
            found = changed
    return found


def _is_in_a_sum(rule: Rule, schema: Schema) -> bool:
    """Return whether a comparison is between columns of a sum, from whose signs it follows."""
    sums = [{each.column, *(name for name, _ in each.terms)} for each in schema.rules if isinstance(each, ColumnSum)]
    return isinstance(rule, Ordering) and any({rule.low, rule.high} <= names for names in sums)


def _list_candidates(records: Records) -> Iterator[Rule]:
    yield from _find_dependencies(records)
    yield from _find_sums(records)
    yield from _find_gaps(records)
    yield from _find_orderings(records)


def _find_dependencies(records: Records) -> Iterator[Rule]:
    scalars = {name: column for name, column in records.schema.scalars.items() if 2 <= column.size <= _FEW_VALUES}
    codes = {name: records.codes[name].astype(np.int64) for name in scalars}
    for source, target in permutations(scalars, 2):
        size = scalars[source].size
        if len(records) < _SUPPORT * size:
            continue
        first, place = np.unique(codes[source], return_index=True)
        made = codes[target][place]
        if len(first) == size and len(set(made.tolist())) > 1 and (made[codes[source]] == codes[target]).all():
            given, table = (scalars[name].to_json(each) for name, each in ((source, first), (target, made)))
            yield FunctionalDependency(column=target, source=source, table=tuple(zip(given, table, strict=True)))


def _find_sums(records: Records) -> Iterator[Rule]:
    numeric = {name: column for name, column in _numeric(records).items() if column.sum_unit is not None}
    names = list(numeric)[:_MOST_NUMERIC]
    if len(records) < _FEWEST:
        return
    few = records.take(slice(_GLIMPSE))
    values = {name: _quantities(numeric[name], few.codes[name]) for name in names}
    names = [name for name in names if len(set(values[name].tolist())) > 2]
    for total in names:
        for a, b in combinations([name for name in names if name != total], 2):
            gap = values[total] - values[a] - values[b]
            if np.nanmax(np.abs(gap), initial=0) <= sum(numeric[name].rounding for name in (total, a, b)) * 2:
                yield ColumnSum(column=total, terms=((a, True), (b, True)))


def _find_gaps(records: Records) -> Iterator[Rule]:
    groups: dict[bytes, list[str]] = {}
    for name, column in records.schema.scalars.items():
        missing = records.codes[name] == column.null_code
        if column.nullable and missing.any() and not missing.all():
            groups.setdefault(np.packbits(missing).tobytes(), []).append(name)
    yield from (NullTogether(null_together=tuple(names)) for names in groups.values() if len(names) > 1)


def _find_orderings(records: Records) -> Iterator[Rule]:
    """Find the pairs in order, but for those that follow from two others."""
    numeric, below = _numeric(records), []
    values = {name: _values(column, records.codes[name]) for name, column in numeric.items()}
    for low, high in permutations(numeric, 2):
        known = ~np.isnan(values[low]) & ~np.isnan(values[high])
        if numeric[low].axis != numeric[high].axis or known.sum() < _FEWEST:
            continue
        a, b = values[low][known], values[high][known]
        if (a <= b).all() and (a < b).any() and _overlap(a, b) >= _SIMILAR:
            below.append((low, high))
    for low, high in below:
        if not any((low, middle) in below and (middle, high) in below for middle in numeric):
            yield Ordering(low=low, high=high)


def _overlap(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return how much of the range that two columns cover together is covered by both."""
    together = max(a.max(), b.max()) - min(a.min(), b.min())
    return float((min(a.max(), b.max()) - max(a.min(), b.min())) / together) if together else 0.0


def _numeric(records: Records) -> dict[str, OrderedColumn]:
    return {name: cast(OrderedColumn, column) for name, column in records.schema.scalars.items() if column.is_numeric}


def _values(column: OrderedColumn, codes: Any) -> NDArray[np.float64]:
    """Return the values as floats, NaN for a missing one."""
    null = codes == column.null_code if column.nullable else np.zeros(len(codes), bool)
    return np.where(null, np.nan, column.to_numbers(np.where(null, 0, codes)).astype(np.float64))


def _quantities(column: OrderedColumn, codes: Any) -> NDArray[np.float64]:
    """Return the values in the units in which they are added."""
    return np.asarray(_values(column, codes) / column.ticks)
