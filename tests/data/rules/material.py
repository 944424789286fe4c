"""Small schemas with rules, every record that they can have, and records that satisfy rules by construction."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.code_set import CodeSet
from sundog.data.rules import BoundRule, RuleSet
from sundog.data.schema import Schema


def schema_of(columns: dict[str, Any], *rules: Any, **rest: Any) -> Schema:
    return Schema.from_dict({**rest, "columns": columns, "rules": list(rules)})


def whole(low: int = 0, high: int = 9, **rest: Any) -> dict[str, Any]:
    return {"type": "integer", "min": low, "max": high, **rest}


def listed(*values: Any, **rest: Any) -> dict[str, Any]:
    return {"type": "categorical", "values": list(values), **rest}


def day(low: str = "2020-01-01", high: str = "2020-01-10", **rest: Any) -> dict[str, Any]:
    return {"type": "datetime", "min": low, "max": high, "resolution": "day", **rest}


def rules_of(columns: dict[str, Any], *rules: Any, **rest: Any) -> RuleSet:
    return schema_of(columns, *rules, **rest).bind_rules()


def only(rules: RuleSet) -> BoundRule:
    ((_, bound),) = rules.rules
    return bound


def every_record(schema: Schema) -> dict[str, NDArray[np.int64]]:
    """The codes of each combination of values."""
    rows = np.array(list(itertools.product(*(range(column.size) for column in schema.columns.values()))))
    return dict(zip(schema.columns, rows.T, strict=True))


def values_of(schema: Schema, codes: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The records as Python values."""
    return list(zip(*(column.decode(codes[name]).to_pylist() for name, column in schema.scalars.items()), strict=True))


def possible_by_counting(schema: Schema, bound: BoundRule, cells: dict[str, list[CodeSet]]) -> NDArray[np.bool_]:
    """For each combination of cells, whether one of its records satisfies the rule."""
    shape = [len(cells[name]) for name in bound.names]
    found = np.zeros(shape, bool)
    codes = every_record(schema)
    held = bound.holds(codes)
    for place in itertools.product(*map(range, shape)):
        inside = np.logical_and.reduce(
            [cells[name][at].includes(codes[name]) for name, at in zip(bound.names, place, strict=True)]
        )
        found[place] = (held & inside).any()
    return found


def cut(size: int, rng: np.random.Generator) -> list[CodeSet]:
    """Divide all codes into a few intervals, or into sets with gaps; some code may be in none."""
    starts = sorted({0, *rng.integers(0, size, 3).tolist()})
    intervals = [CodeSet.between(a, b - 1) for a, b in itertools.pairwise([*starts, size])]
    owner = rng.integers(0, 4, size)
    sets = [CodeSet.of(np.flatnonzero(owner == place).tolist()) for place in range(3)]
    return [each for each in sets if each] if rng.random() < 0.5 else intervals
