"""Settings that neural models share, and checks of schemas that none of them can learn."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.models.released import LARGEST_SIZE

LARGEST_RATE = 10  # the largest learning rate
MOST_EPOCHS = 10**6
SMALLEST_BOUND, LARGEST_BOUND = 1e-6, 1e6  # bounds of norms: their squares neither underflow nor overflow in float32

Size = Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
Batch = Annotated[int, Field(gt=0)]
Epochs = Annotated[float, Field(gt=0, le=MOST_EPOCHS)]
Bound = Annotated[float, Field(ge=SMALLEST_BOUND, le=LARGEST_BOUND)]
Clip = Bound | Literal["dpnorm"]  # a fixed norm, or the noisy mode of the norms in each step
Rate = Annotated[float, Field(gt=0, le=LARGEST_RATE)]
ColumnName = Annotated[str, Field(title="the name of a column with one value")]


def refuse_people(model: str, schema: Schema) -> None:
    """Raise SundogError if a person may have several records."""
    if schema.unit is not None and schema.cap > 1:
        raise SundogError(
            f"model {model!r} protects single records, and people have up to {schema.cap} here; set `cap: 1` in the "
            "schema, or use the model gan or independent"
        )


def check_condition(model: str, schema: Schema, condition: str | None) -> None:
    """Raise SundogError unless the condition is a scalar column of the schema, or None."""
    if condition is not None and condition not in schema.scalars:
        raise SundogError(
            f"model {model!r}: setting 'condition' must be the name of a column with one value, not {condition!r}"
        )
