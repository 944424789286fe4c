"""The parts of a release's schema that were learned from private data, and the charge that paid for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from sundog.data.bins import QUANTILE_BINS
from sundog.data.columns import AnyColumn, Scale, Unknown
from sundog.data.schema import Schema
from sundog.privacy.events import Charge, DiscreteLaplace, normalize_purpose
from sundog.privacy.mechanisms import count_tree_levels
from sundog.privacy.record_count import COUNT
from sundog.release.printable_text import Text

Price = tuple[str, int, int]  # the kind of event, its count, and its sensitivity

_BINS: dict[Any, str] = {"quantiles": "quantiles of", "refined": "bins of"}


class LearnedPart(BaseModel):
    """A part of the schema that was measured, and the purpose of the charge that paid for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    part: Text
    charge: Text

    def __str__(self) -> str:
        return f"{self.part}  (paid for by '{self.charge}')"


def list_learned_parts(schema: Schema, *, counted: bool) -> list[LearnedPart]:
    """Return the parts that were learned, by the marks that learning leaves in a schema.

    >>> columns = {"age": {"type": "integer", "min": 17, "max": 90, "learn": True}}
    >>> print(*list_learned_parts(Schema.from_dict({"columns": columns}), counted=True), sep="; ")
    number of records  (paid for by 'number of records'); min and max of age  (paid for by 'range of age')

    Args:
        schema: as it is in the release, complete.
        counted: whether the number of records was measured.
    """
    return [part for part, _ in _list_priced_parts(schema, counted=counted)]


def find_unpaid_parts(schema: Schema, charges: Sequence[Charge], *, counted: bool) -> list[str]:
    """Return the parts that no charge of the right mechanism paid for; each charge pays for one part."""
    paid = Counter((charge.purpose, _get_price(charge)) for charge in charges)
    missing = []
    for part, prices in _list_priced_parts(schema, counted=counted):
        for price in prices:
            paid[part.charge, price] -= 1
        if any(paid[part.charge, price] < 0 for price in prices):
            missing.append(part.part)
    return missing


def _get_price(charge: Charge) -> Price:
    event = charge.event
    return event.kind, charge.count, event.sensitivity if isinstance(event, DiscreteLaplace) else 1


def _list_priced_parts(schema: Schema, *, counted: bool) -> Iterator[tuple[LearnedPart, list[Price]]]:
    """Yield each learned part, and the events that measure it."""
    if counted:
        yield LearnedPart(part=COUNT, charge=COUNT), [("discrete_laplace", 1, schema.cap)]
    for name, column in schema.columns.items():
        for what, purpose, prices in _list_column_parts(column, schema.cap):
            yield (
                LearnedPart(part=normalize_purpose(f"{what} {name}"), charge=normalize_purpose(f"{purpose} {name}")),
                prices,
            )


def _list_column_parts(column: AnyColumn, cap: int) -> Iterator[tuple[str, str, list[Price]]]:
    geometric: Price = ("discrete_laplace" if cap == 1 else "pure", 1, 1)
    if column.learn and column.unknown is Unknown.VALUES:  # undeclared values are found with a risk of δ
        yield "values of", "values of", [geometric, ("failure", 1, 1)]
    elif column.learn:
        yield "min and max of", "range of", [geometric]
    if column.scale is Scale.INTERVAL and column.has_measured_edges:
        quantiles: Price = ("pure", QUANTILE_BINS - 1, 1)
        levels: Price = ("discrete_gaussian", count_tree_levels(column.lattice_size) * cap, 1)
        yield "edges of", _BINS[column.bins], [quantiles if column.bins == "quantiles" else levels]
