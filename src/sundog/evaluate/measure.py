"""A number and its interval, under a stable dotted name.

Every figure of a report that was computed from samples says how far it may be off: `low` and `high` are the ends of a
95% interval, by the bootstrap or, for shares of counted things, by Wilson's formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054  # the normal quantile of a 95% interval
ROUNDS = 100

Better = Literal["low", "high"]


@dataclass(frozen=True)
class Measure:
    """A value with its 95% interval; an exact one has an interval of one point.

    >>> Measure.around(0.02, error=0.05, lowest=0.0)
    Measure(value=0.02, low=0.0, high=0.1179...)
    >>> Measure(0.5, 0.4, 0.6).overlaps(Measure(0.7, 0.65, 0.75))
    False
    """

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Measure:
        """A value that no sampling has touched."""
        return cls(float(value), float(value), float(value))

    @classmethod
    def around(cls, value: float, *, error: float, lowest: float = -math.inf, highest: float = math.inf) -> Measure:
        """A value with a normal interval of this standard error, inside what is possible."""
        value = float(value)
        return cls(value, min(value, max(lowest, value - Z * error)), max(value, min(highest, value + Z * error)))

    def overlaps(self, other: Measure) -> bool:
        """Whether the intervals have a point in common: then no difference is shown."""
        return self.low <= other.high and other.low <= self.high

    def to_dict(self) -> dict[str, float | None]:
        """As JSON keeps it; what is not a number becomes null."""
        return {key: value if math.isfinite(value) else None for key, value in vars(self).items()}


Measures = dict[str, Measure]
"""Measures by their dotted names, such as `fidelity.tvd_1way`."""


@dataclass(frozen=True)
class Metric:
    """What a person is told about a measure.

    Args:
        label: a few words, for a table.
        better: whether low or high values are good.
        meaning: one sentence for somebody who never met it.
    """

    label: str
    better: Better
    meaning: str


def binomial(successes: float, trials: float) -> Measure:
    """A share of counted things, by Wilson's formula.

    >>> share = binomial(9, 10)
    >>> round(share.value, 2), round(share.low, 2), round(share.high, 2)
    (0.9, 0.6, 0.98)
    """
    if trials <= 0:
        return Measure(math.nan, 0.0, 1.0)
    share = successes / trials
    middle = (share + Z**2 / (2 * trials)) / (1 + Z**2 / trials)
    half = Z / (1 + Z**2 / trials) * math.sqrt(share * (1 - share) / trials + Z**2 / (4 * trials**2))
    return Measure(share, min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half)))


def bootstrap(
    statistic: Callable[[NDArray[np.int64]], float],
    count: int,
    rng: np.random.Generator,
    *,
    groups: NDArray[Any] | None = None,
    rounds: int = ROUNDS,
    lowest: float = -math.inf,
    highest: float = math.inf,
) -> Measure:
    """A statistic of rows, with a normal interval whose error is that over resampled rows.

    >>> values = np.arange(100.0)
    >>> mean = bootstrap(lambda rows: values[rows].mean(), 100, np.random.default_rng(0))
    >>> mean.value, 43 < mean.low < 45, 54 < mean.high < 56
    (49.5, True, True)

    Args:
        statistic: from the places of rows to a number.
        count: how many rows there are.
        rng: where the resampling comes from.
        groups: of each row; rows are then drawn from each group by itself, so that rare ones stay as they are.
        rounds: how often rows are resampled.
        lowest: the least value that is possible.
        highest: the greatest.
    """
    value = statistic(np.arange(count))
    parts = [np.arange(count)] if groups is None else [np.flatnonzero(groups == each) for each in np.unique(groups)]

    def drawn() -> NDArray[np.int64]:
        return np.concatenate([part[rng.integers(0, len(part), len(part))] for part in parts])

    found = [statistic(drawn()) for _ in range(rounds)]
    usable = [each for each in found if math.isfinite(each)]
    error = float(np.std(usable, ddof=1)) if len(usable) > 1 else 0.0
    return Measure.around(value, error=error, lowest=lowest, highest=highest)


def nested(measures: Mapping[str, Measure]) -> dict[str, Any]:
    """Dotted names as nested dicts.

    >>> nested({"fidelity.tvd_1way": Measure.exact(0.5)})
    {'fidelity': {'tvd_1way': {'value': 0.5, 'low': 0.5, 'high': 0.5}}}
    """
    tree: dict[str, Any] = {}
    for name, measure in measures.items():
        *path, leaf = name.split(".")
        branch = tree
        for step in path:
            branch = branch.setdefault(step, {})
        branch[leaf] = measure.to_dict()
    return tree
