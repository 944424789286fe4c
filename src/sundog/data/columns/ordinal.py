"""Categories in an order that means something."""

from __future__ import annotations

from typing import Literal

from sundog.data.columns.listed import ListedColumn


class OrdinalColumn(ListedColumn):
    """One of a declared list of values, from the lowest to the highest.

    >>> pain = OrdinalColumn(values=["none", "some", "much"])
    >>> pain.encode(["much", "none"], where="survey.csv: column 'pain'").tolist()
    [2, 0]
    """

    type: Literal["ordinal"] = "ordinal"
