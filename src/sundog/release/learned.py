"""What a release learned from private data about its own schema, and which charge paid for each part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from sundog.data.columns import Column, OrderedColumn
from sundog.data.columns.listed import ListedColumn
from sundog.data.schema import Schema
from sundog.privacy.counted import COUNT
from sundog.privacy.events import Charge, one_line
from sundog.release.text import Text

_VALUES, _RANGE = "values of", "range of"
_BINS: dict[Any, str] = {"quantiles": "quantiles of", "refined": "bins of"}
_NOISE = frozenset({"discrete_laplace", "pure", "discrete_gaussian", "gaussian"})
_KEYS = "failure"  # values that nobody declared are found at the risk of δ


class Learned(BaseModel):
    """A part of the schema that was measured, and the purpose of the charge that paid for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    part: Text
    charge: Text

    def __str__(self) -> str:
        return f"{self.part}  (paid for by '{self.charge}')"


def learned_parts(schema: Schema, *, counted: bool) -> list[Learned]:
    """What was learned, by the marks that learning leaves in a schema.

    >>> columns = {"age": {"type": "integer", "min": 17, "max": 90, "learn": True}}
    >>> print(*learned_parts(Schema.from_dict({"columns": columns}), counted=True), sep="; ")
    number of records  (paid for by 'number of records'); min and max of age  (paid for by 'range of age')

    Args:
        schema: as it is in the release, complete.
        counted: whether the number of records was measured.
    """
    parts = [Learned(part=COUNT, charge=COUNT)] if counted else []
    for name, column in schema.columns.items():
        parts += [
            Learned(part=one_line(f"{what} {name}"), charge=one_line(f"{purpose} {name}"))
            for what, purpose in _of_column(column)
        ]
    return parts


def unpaid_parts(parts: Iterable[Learned], charges: Sequence[Charge]) -> list[str]:
    """The parts that no charge paid for; each charge pays for one."""
    paid = Counter(charge.purpose for charge in charges if charge.event.kind in _NOISE)
    keys = Counter(charge.purpose for charge in charges if charge.event.kind == _KEYS)
    missing = []
    for part in parts:
        paid[part.charge] -= 1
        keys[part.charge] -= part.charge.startswith(_VALUES)
        if paid[part.charge] < 0 or keys[part.charge] < 0:
            missing.append(part.part)
    return missing


def _of_column(column: Column) -> list[tuple[str, str]]:
    found = []
    if column.learn:
        found.append(("values of", _VALUES) if isinstance(column, ListedColumn) else ("min and max of", _RANGE))
    if isinstance(column, OrderedColumn) and column.edges is not None and column.bins in _BINS:
        found.append(("edges of", _BINS[column.bins]))
    return found
