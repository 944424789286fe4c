"""The configuration of a model of marginals."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from sundog.data.schema import Schema
from sundog.data.validation_errors import suggest
from sundog.errors import SchemaError
from sundog.models.configuration import Configuration

MOST_CELLS = 2**26  # of all buckets of a tree


class MarginalsConfiguration(Configuration):
    """A graphical model of noisy marginals of one, two and more columns."""

    name: ClassVar[str] = "marginals"
    options: ClassVar[frozenset[str]] = frozenset({"clusters"})
    counts_records: ClassVar[bool] = False  # the marginals themselves tell

    target: str | None = Field(default=None, description="a column whose pairs with others count twice")
    cells: Annotated[int, Field(ge=1000, le=MOST_CELLS)] = Field(
        default=1_000_000, description="cells that exact inference may take: more allow more pairs, and take longer"
    )
    groups: Annotated[int, Field(ge=2, le=1000)] = Field(
        default=20, description="about how many groups of values an ordered column has in pairs"
    )

    def check(self, schema: Schema) -> None:
        """Raise SchemaError if there is no target column of that name."""
        if self.target is not None and self.target not in schema.columns:
            raise SchemaError(
                f"there is no column {self.target!r} to be the target; {suggest(self.target, [*schema.columns])}"
            )
