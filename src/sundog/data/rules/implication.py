"""Where some conditions hold, others do: `when: age < 18`, `then: married = no`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, StrictStr

from sundog.data.code_set import CodeSet
from sundog.data.columns.arrow import Mask
from sundog.data.conditions import encode_conditions
from sundog.data.rules.rule import BoundRule, Cells, Codes, Domain, Rule
from sundog.errors import DataError

MOST_CONDITIONS = 16
LONGEST_CONDITION = 2000  # characters


def _to_list(given: Any) -> Any:
    return (given,) if isinstance(given, str) else given


Conditions = Annotated[
    tuple[Annotated[StrictStr, Field(max_length=LONGEST_CONDITION)], ...],
    Field(min_length=1, max_length=MOST_CONDITIONS),
    BeforeValidator(_to_list),
]


class Implication(Rule):
    """Records that satisfy all of the conditions `when` satisfy all of `then`.

    Conditions are those of `sundog sample --where`.

    >>> str(Implication(when=("age < 18",), then=("married = no",)))
    'when age < 18 then married = no'
    """

    when: Conditions
    then: Conditions

    @property
    def size(self) -> int:
        """The values that its conditions list, each as much as many of a table: they are read one by one."""
        return 32 * sum(1 + text.count(",") for text in (*self.when, *self.then))

    def to_dict(self) -> dict[str, Any]:
        """Return the conditions as they were written; a list only where there are several."""
        return {"when": _to_plain(self.when), "then": _to_plain(self.then)}

    def __str__(self) -> str:
        return f"when {' and '.join(self.when)} then {' and '.join(self.then)}"

    def bind(self, domain: Domain) -> BoundImplication:
        """Return the conditions as sets of codes."""
        try:
            when, then = (encode_conditions(texts, domain, {}) for texts in (self.when, self.then))
        except DataError as error:
            raise ValueError(str(error).removeprefix("where: ")) from None
        names = tuple(dict.fromkeys([*when, *then]))
        for name in names:
            domain.scalar(name)
        return BoundImplication(names, when, then)


def _to_plain(texts: Sequence[str]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else list(texts)


@dataclass(frozen=True)
class BoundImplication(BoundRule):
    """The codes that each column has where the conditions hold."""

    names: tuple[str, ...]
    when: Mapping[str, CodeSet]
    then: Mapping[str, CodeSet]

    def holds(self, codes: Codes) -> Mask:
        """Return where `when` does not hold, or `then` does."""
        return np.asarray(~_satisfied(self.when, codes) | _satisfied(self.then, codes))

    def possible(self, cells: Cells) -> Mask:
        """Exclude cells in which `when` holds everywhere and `then` nowhere."""
        sides = []
        for name in self.names:
            when, then = self.when.get(name), self.then.get(name)
            certain = np.array([when is None or not (cell - when) for cell in cells[name]])
            sides.append((certain, np.array([then is not None and not cell & then for cell in cells[name]])))
        everywhere = reduce(np.logical_and.outer, [certain for certain, _ in sides])
        nowhere = reduce(np.logical_or.outer, [excluded for _, excluded in sides])
        return np.asarray(~(everywhere & nowhere))


def _satisfied(conditions: Mapping[str, CodeSet], codes: Codes) -> Mask:
    return np.asarray(np.logical_and.reduce([allowed.includes(codes[name]) for name, allowed in conditions.items()]))
