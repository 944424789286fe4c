"""The measured marginals on a certificate: their columns, and the noise in each of their cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby, zip_longest
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from sundog.models.released import MeasuredMarginal
from sundog.privacy.events import LONGEST_PURPOSE, normalize_purpose
from sundog.release.printable_text import Text

MOST_LISTED = 20_000  # on a certificate
_MOST_SHOWN = 60  # in its text
_MOST_CLUSTERS = 12  # in its text
_FINE = ", fine"
_NAMES, _GAP = 38, 4  # the width of the names of a marginal's columns, and of the space between marginals


class ListedMarginal(BaseModel):
    """A measured marginal as a certificate lists it: see `sundog.models.released.MeasuredMarginal`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    columns: Annotated[list[Annotated[Text, Field(max_length=LONGEST_PURPOSE)]], Field(min_length=1)]
    deviation: Annotated[float, Field(gt=0, le=1e30, allow_inf_nan=False)]
    cluster: Annotated[int, Field(ge=0, le=10**6)] | None = None
    fine: bool = False

    def __str__(self) -> str:
        return f"{self.name_columns(_NAMES)} ± {_format_deviation(self.deviation)}"

    def name_columns(self, width: int) -> str:
        """Return the columns, in not more than so many characters."""
        return _join_names(self.columns, width - len(_FINE)) + _FINE if self.fine else _join_names(self.columns, width)


def list_marginals(measured: Sequence[MeasuredMarginal]) -> list[ListedMarginal]:
    """Return measured marginals as a certificate lists them; of very many, the first.

    >>> print(*list_marginals([MeasuredMarginal(("age", "income"), 21.37)]))
    age × income ± 21.4
    """
    return [
        ListedMarginal(
            columns=list(map(normalize_purpose, each.columns)),
            deviation=each.deviation,
            cluster=each.cluster,
            fine=each.is_fine,
        )
        for each in measured[:MOST_LISTED]
    ]


def compare_marginals(listed: Sequence[ListedMarginal], measured: Sequence[MeasuredMarginal]) -> list[str]:
    """Return a problem if a certificate lists other marginals, or other noise, than were measured."""
    for said, known in zip_longest(listed, list_marginals(measured)):
        if said is None or known is None or not _is_same_marginal(said, known):
            what = ("nothing" if each is None else f"'{each}'" for each in (said, known))
            return ["the certificate lists {} as measured where the model has {}".format(*what)]
    return []


def _is_same_marginal(one: ListedMarginal, other: ListedMarginal) -> bool:
    is_same_noise = math.isclose(one.deviation, other.deviation, rel_tol=1e-6)
    return is_same_noise and (one.columns, one.cluster, one.fine) == (other.columns, other.cluster, other.fine)


# --- text ---


def format_marginals(listed: Sequence[ListedMarginal]) -> list[str]:
    """Return the lines of a certificate about its measured marginals: two in a line, and not more than some of many."""
    if not listed:
        return []
    lines = ["", "Measured in the rounds (± is the standard deviation of the noise in each cell, in records):"]
    groups = [(cluster, list(own)) for cluster, own in groupby(listed, key=lambda each: each.cluster)]
    room = max(_MOST_SHOWN // len(groups), _MOST_SHOWN // _MOST_CLUSTERS)
    shown = 0
    for cluster, own in groups[:_MOST_CLUSTERS]:
        joint = [each for each in own if len(each.columns) > 1]
        lines += [] if cluster is None else [f"  cluster {cluster}:"]
        lines += _format_table(joint[:room]) or ["  no pair of columns"]
        lines += _format_range([each for each in own if len(each.columns) == 1])
        shown += len(own) - len(joint[room:])
    if shown < len(listed):
        lines.append(f"  … and {len(listed) - shown:,} more (--json lists them)")
    return lines


def _format_table(shown: Sequence[ListedMarginal]) -> list[str]:
    """Return the marginals in two columns, to be read downwards."""
    cells = [f"{m.name_columns(_NAMES):<{_NAMES}} ± {_format_deviation(m.deviation):>5}" for m in shown]
    half = -(-len(cells) // 2)
    pairs = zip_longest(cells[:half], cells[half:], fillvalue="")
    return [f"  {left}{' ' * _GAP}{right}".rstrip() for left, right in pairs]


def _format_range(single: Sequence[ListedMarginal]) -> list[str]:
    """Return a line about columns that were measured by themselves: those with the least and the most noise."""
    if not single:
        return []
    least, most = (find(single, key=lambda each: each.deviation) for find in (min, max))
    if len(single) == 1:
        return [f"  1 column by itself: {least}"]
    return [f"  {len(single):,} columns by themselves, again: from {least} to {most}"]


def _join_names(names: Sequence[str], width: int) -> str:
    """Return the names of columns, each cut short where they would not fit otherwise."""
    shown = list(names[:3])
    most = (width - 3 * (len(shown) - 1)) // len(shown)
    joined = " × ".join(shown)
    if len(joined) > width:
        joined = " × ".join(_shorten(name, most) for name in shown)
    return joined if len(shown) == len(names) else f"{joined[: width - 2]} …"


def _shorten(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _format_deviation(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e9 else f"{value:.3g}"
