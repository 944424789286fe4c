"""Categories without an order."""

from __future__ import annotations

from typing import ClassVar, Literal

from sundog.data.columns.forms import Scale
from sundog.data.columns.listed import ListedColumn


class CategoricalColumn(ListedColumn):
    """One of a declared list of values, in no order.

    >>> sex = CategoricalColumn(values=["Female", "Male"])
    >>> sex.encode(["Male", "Female"], where="adult.csv: column 'sex'").tolist()
    [1, 0]
    >>> sex.decode([1, 0]).to_pylist()
    ['Male', 'Female']
    """

    scale: ClassVar[Literal[Scale.NOMINAL]] = Scale.NOMINAL

    type: Literal["categorical"] = "categorical"
