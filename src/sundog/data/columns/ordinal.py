"""Categories in a meaningful order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from sundog.data.columns.forms import Scale
from sundog.data.columns.listed import ListedColumn


class OrdinalColumn(ListedColumn):
    """One of a declared list of values, from the lowest to the highest.

    >>> pain = OrdinalColumn(values=["none", "some", "much"])
    >>> pain.encode(["much", "none"], where="survey.csv: column 'pain'").tolist()
    [2, 0]
    """

    scale: ClassVar[Literal[Scale.ORDINAL]] = Scale.ORDINAL

    type: Literal["ordinal"] = "ordinal"

    def find_first_code_above(self, spellings: Sequence[Any], *, or_equal: bool) -> int:
        """Return the code of a declared value, or the one after it."""
        return self.find_code(*spellings) + int(not or_equal)
