"""The configuration of a model of marginals."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

from pydantic import Field

from sundog.models.configuration import Configuration

MOST_CELLS = 2**23  # of all buckets of a tree, about
MOST_ORDER = 3  # columns of a marginal
MOST_SUBGROUPS = 4  # of a group


class MarginalsConfiguration(Configuration):
    """A graphical model of noisy marginals of one, two and more columns."""

    name: ClassVar[str] = "marginals"
    options: ClassVar[frozenset[str]] = frozenset({"clusters", "public"})
    counts_records: ClassVar[bool] = False  # the marginals themselves tell

    public: bool = False
    cells: Annotated[int, Field(ge=1000, le=MOST_CELLS)] = Field(
        default=2_000_000,
        description="about how many cells exact inference may take: more allow more pairs, and take longer",
    )
    groups: Annotated[int, Field(ge=2, le=1000)] | None = Field(
        default=None,
        description="about how many groups of values an ordered column has in pairs; by default more, the more records "
        "there are for the budget: 16 for 25,000 at ε = 1",
    )
    order: Annotated[int, Field(ge=2, le=MOST_ORDER)] | None = Field(
        default=None,
        description="most columns of a marginal; by default 3 in tables of up to 5 columns, otherwise 2",
    )

    def choose_order(self, columns: int) -> int:
        """Return the most columns that a marginal may have in a table of so many.

        >>> MarginalsConfiguration().choose_order(5), MarginalsConfiguration().choose_order(6)
        (3, 2)
        """
        few = math.comb(columns, 3) <= math.comb(columns, 2)
        return self.order or (3 if few else 2)
