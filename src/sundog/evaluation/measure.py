"""Measures: a value with its interval, under a stable dotted name.

Every figure computed from samples has a 95% interval, from `low` to `high`: by the bootstrap
(`sundog.evaluation.bootstrap`) or, for proportions, by Wilson's formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

Z = 1.959963984540054  # the normal quantile of a 95% interval
_FAR = 1e6  # the largest share searched for

Better = Literal["low", "high"]


@dataclass(frozen=True)
class Measure:
    """A value with its 95% interval; an exact value has an interval of one point.

    >>> Measure.around(0.02, error=0.05, lowest=0.0)
    Measure(value=0.02, low=0.0, high=0.1179...)
    >>> Measure(0.5, 0.4, 0.6).overlaps(Measure(0.7, 0.65, 0.75))
    False

    Args:
        value: the measured value.
        low: the lower end of the interval.
        high: the upper end.
        resampled: the values of the resamples, where kept: measures over the same resamples can then be combined
            resample by resample.
    """

    value: float
    low: float
    high: float
    resampled: tuple[float, ...] = field(default=(), repr=False, compare=False, kw_only=True)

    @classmethod
    def exact(cls, value: float) -> Measure:
        """Return a value without sampling error."""
        return cls(float(value), float(value), float(value))

    @classmethod
    def around(cls, value: float, *, error: float, lowest: float = -math.inf, highest: float = math.inf) -> Measure:
        """Return a value with a normal interval of this standard error, clipped to the possible range."""
        value = float(value)
        return cls(value, min(value, max(lowest, value - Z * error)), max(value, min(highest, value + Z * error)))

    def overlaps(self, other: Measure) -> bool:
        """Return whether two intervals overlap, which shows neither a difference nor equality."""
        return self.low <= other.high and other.low <= self.high

    def to_dict(self) -> dict[str, float | None]:
        """Return a JSON-compatible dictionary; NaN and infinity become null."""
        ends = {"value": self.value, "low": self.low, "high": self.high}
        return {key: value if math.isfinite(value) else None for key, value in ends.items()}


Measures = dict[str, Measure]
"""Measures by their dotted names, such as `fidelity.tvd_1way`."""


@dataclass(frozen=True)
class Metric:
    """The description of a measure for a reader.

    Args:
        label: a few words, for a table.
        better: whether low or high values are better.
        meaning: one sentence for a reader who does not know the measure.
        ideal: the best possible value; a distance between samples exceeds its ideal 0 by what sampling adds. None where
            only other real data shows what is attainable.
    """

    label: str
    better: Better
    meaning: str
    ideal: float | None = None


def measure_share(successes: float, trials: float, *, z: float = Z) -> Measure:
    """Return a proportion with Wilson's interval, of 95% unless another normal quantile is given.

    >>> share = measure_share(9, 10)
    >>> round(share.value, 2), round(share.low, 2), round(share.high, 2)
    (0.9, 0.6, 0.98)
    """
    if trials <= 0:
        return Measure(math.nan, 0.0, 1.0)
    share = successes / trials
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return Measure(share, min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half)))


# --- combinations of measures ---------------------------------------------------------------------------------------


def combine(*terms: tuple[float, Measure], z: float = Z) -> Measure:
    """Return a weighted sum of measures with its interval: `combine((1, a), (-1, b))` is a difference.

    Measures over the same resamples have dependent errors and are summed resample by resample. Otherwise errors are
    taken as independent, and the distances to the ends of the intervals add up as squares (Zou and Donner 2008).

    >>> combine((1, Measure(0.75, 0.71, 0.79)), (-1, Measure(0.5, 0.47, 0.53)))
    Measure(value=0.25, low=0.19999..., high=0.30000...)

    Args:
        terms: weights and measures.
        z: the normal quantile of the interval; 95% by default.
    """
    value = sum(weight * measure.value for weight, measure in terms)
    uncertain = [(weight, measure) for weight, measure in terms if measure.low < measure.high]
    if uncertain and all(measure.resampled for _, measure in uncertain):
        sums = sum(weight * np.array(measure.resampled) for weight, measure in uncertain)
        down = up = z * float(np.std(sums, ddof=1))
    else:
        arms = [(weight, m.value - m.low, m.high - m.value) for weight, m in uncertain]
        down = z / Z * math.hypot(*(weight * (below if weight > 0 else above) for weight, below, above in arms))
        up = z / Z * math.hypot(*(weight * (above if weight > 0 else below) for weight, below, above in arms))
    return Measure(value, value - down, value + up)


def average_measures(measures: Sequence[Measure]) -> Measure:
    """Return the mean of measures with independent errors: distances to the ends add up as squares.

    >>> average_measures([Measure(0.5, 0.2, 0.9), Measure(1.0, 0.6, 1.0)])
    Measure(value=0.75, low=0.5, high=0.95)
    """
    value = float(np.mean([each.value for each in measures]))
    down = math.hypot(*(each.value - each.low for each in measures)) / len(measures)
    up = math.hypot(*(each.high - each.value for each in measures)) / len(measures)
    return Measure(value, value - down, value + up)


def measure_ratio(part: Measure, whole: Measure, base: Measure | None = None, *, z: float = Z) -> Measure | None:
    """Return the position of `part` between `base` (0, also the default base) and `whole` (1), with its interval.

    The interval holds every share that the data does not contradict (Fieller 1954): those for which part − base − share
    · (whole − base) may be zero. Returns None where whole and base are not significantly different, since then every
    share is possible.

    >>> measure_ratio(Measure(0.75, 0.7, 0.8), Measure.exact(1.0), Measure.exact(0.5))
    Measure(value=0.5, low=0.4, high=0.6)
    >>> measure_ratio(Measure.exact(0.7), Measure(0.9, 0.4, 1.4), Measure.exact(0.5)) is None
    True
    """
    base = Measure.exact(0.0) if base is None else base
    reach = combine((1, whole), (-1, base), z=z)
    if not math.isfinite(part.value + reach.value) or reach.low <= 0 <= reach.high:
        return None

    def is_possible(share: float) -> bool:
        rest = combine((1, part), (share - 1, base), (-share, whole), z=z)
        return rest.low <= 0 <= rest.high

    value = (part.value - base.value) / reach.value
    return Measure(value, _find_last_possible(is_possible, value, -1.0), _find_last_possible(is_possible, value, 1.0))


def _find_last_possible(is_possible: Callable[[float], bool], share: float, step: float) -> float:
    """Return the furthest possible share in the direction of the step."""
    near, far = share, share + step
    while is_possible(far) and abs(far) < _FAR:
        near, far = far, share + 2 * (far - share)
    for _ in range(50):
        middle = (near + far) / 2
        near, far = (middle, far) if is_possible(middle) else (near, middle)
    return round(near, 9)


def compute_bonferroni_quantile(count: int) -> float:
    """Return the normal quantile of intervals that hold simultaneously in 95% of cases (Bonferroni).

    >>> round(compute_bonferroni_quantile(1), 2), round(compute_bonferroni_quantile(20), 2)
    (1.96, 3.02)
    """
    return NormalDist().inv_cdf(1 - 0.025 / max(1, count))


def nest_names(measures: Mapping[str, Measure]) -> dict[str, Any]:
    """Return measures with dotted names as nested dictionaries.

    >>> nest_names({"fidelity.tvd_1way": Measure.exact(0.5)})
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
