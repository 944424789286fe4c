"""The configuration of a model of marginals."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from sundog.models.configuration import Configuration

MOST_CELLS = 2**26  # of all buckets of a tree


class MarginalsConfiguration(Configuration):
    """A graphical model of noisy marginals of one, two and more columns."""

    name: ClassVar[str] = "marginals"
    options: ClassVar[frozenset[str]] = frozenset({"clusters"})
    counts_records: ClassVar[bool] = False  # the marginals themselves tell

    cells: Annotated[int, Field(ge=1000, le=MOST_CELLS)] = Field(
        default=1_000_000, description="cells that exact inference may take: more allow more pairs, and take longer"
    )
    groups: Annotated[int, Field(ge=2, le=1000)] = Field(
        default=16, description="about how many groups of values an ordered column has in pairs"
    )
