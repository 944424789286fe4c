"""The standing of a measure between independent columns and real data, and its description in words.

Overlapping intervals show nothing. A figure is called as good as real data only where its interval rules out that more
than a tenth of the way from independent columns is missing, and no better than independent columns only where it rules
out more than a tenth. Where the interval allows both, the words say so, and what is still possible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sundog.evaluation.measure import Better, Measure, Measures, combine, measure_ratio
from sundog.evaluation.report.number_text import describe_possible, format_percent, format_range
from sundog.evaluation.section import Section

MARGIN = 0.1  # of the way from independent columns to real data
NARROW = 0.3  # the widest interval of shares called partly, where it is not clear of the margins

GUESSES = {"auc": 0.5, "r2": 0.0}  # scores of guessing

SAME = "as good as real data"
BEYOND = "beyond real data"
FLOOR = "no better than independent columns"
BELOW = "worse than independent columns"
DIFFERENT = "differs from real data"
NO_DIFFERENCE = "no difference from real data is shown"
UNCLEAR = "cannot be determined at this sample size"
UNKNOWN = "could not be measured"

Answer = Literal["yes", "partly", "no", "mixed", "unknown"]


def judge_share(share: Measure) -> Answer:
    """Return whether everything (1) or nothing (0) is kept, as far as the interval allows.

    >>> [judge_share(Measure(*ends)) for ends in ((0.97, 0.94, 1.0), (0.5, 0.4, 0.6), (0.02, -0.04, 0.08))]
    ['yes', 'partly', 'no']
    >>> [judge_share(Measure(*ends)) for ends in ((0.97, 0.6, 1.3), (0.5, 0.05, 0.95), (0.91, 0.89, 0.93))]
    ['unknown', 'unknown', 'partly']
    """
    if share.low >= 1 - MARGIN:
        return "yes"
    if share.high <= MARGIN:
        return "no"
    if share.low > MARGIN and share.high < 1 - MARGIN:
        return "partly"
    return "partly" if share.low > 0 and share.high < 1 and share.high - share.low <= NARROW else "unknown"


@dataclass(frozen=True)
class Standing:
    """A measure beside those of real data (ceiling) and independent columns (floor).

    >>> auc = Standing(Measure(0.76, 0.75, 0.77), Measure(0.86, 0.85, 0.87), Measure.exact(0.5), "high")
    >>> auc.words
    '72% (69% to 76%) of the way to real data'
    """

    measure: Measure
    ceiling: Measure | None
    floor: Measure | None
    better: Better
    ideal: float | None = None
    guess: float | None = None

    @cached_property
    def share(self) -> Measure | None:
        """The position between floor (0) and ceiling (1); None where these do not differ significantly.

        Sampling adds to distances, and more to the ceiling's, which has fewer records: a distance below the ceiling is
        not better than real data, and how much of it is sampling is unknown. So the lower end of the interval of a
        distance counts all of it as a difference.
        """
        if self._reach is None:
            return None
        floor, ceiling = self._reach
        share = measure_ratio(self.measure, ceiling, floor)
        whole = share if self.ideal is None else measure_ratio(self.measure, Measure.exact(self.ideal), floor)
        if share is None or whole is None or self.ideal is None:
            return share
        return Measure(*(min(end, 1.0) for end in (share.value, min(whole.low, share.low), share.high)))

    def locate(self, value: float) -> float | None:
        """Return the position of a value between floor (0) and ceiling (1)."""
        if self._reach is None or not math.isfinite(value):
            return None
        floor, ceiling = (end.value for end in self._reach)
        return (value - floor) / (ceiling - floor)

    @cached_property
    def short(self) -> Measure | None:
        """The shortfall from the ceiling, oriented by which direction is better."""
        if self.ceiling is None or not math.isfinite(self.measure.value + self.ceiling.value):
            return None
        return combine((self._sign, self.ceiling), (-self._sign, self.measure))

    @property
    def verdict(self) -> Answer:
        """Whether it is as good as real data."""
        if self.share is not None:
            return judge_share(self.share)
        return "no" if self.short is not None and self.short.low > 0 else "unknown"

    @property
    def words(self) -> str:
        """The standing in a few words that the interval supports."""
        if not math.isfinite(self.measure.value):
            return UNKNOWN
        if self.share is None:
            apart = self.short is not None and not self.short.low <= 0 <= self.short.high
            return (DIFFERENT if apart else NO_DIFFERENCE) if self.short is not None else ""
        if self.verdict == "yes":
            return BEYOND if self.share.low > 1 else SAME
        if self.verdict == "no":
            return BELOW if self._measure_advantage(self.floor).high < 0 else FLOOR
        if self.verdict == "partly":
            return f"{format_percent(self.share.value)} ({format_range(self.share)}) of the way to real data"
        possible = describe_possible(self.share)
        return f"{UNCLEAR}: {possible} of the way to real data" if possible else UNCLEAR

    @cached_property
    def _reach(self) -> tuple[Measure, Measure] | None:
        """The floor and the ceiling, where real data is significantly better.

        The score of guessing is the floor where a model trained on independent columns does worse than that.
        """
        if self.ceiling is None or self.floor is None:
            return None
        raised = self.guess is not None and self.floor.value < self.guess
        floor = Measure.exact(self.guess) if raised and self.guess is not None else self.floor
        return (floor, self.ceiling) if combine((self._sign, self.ceiling), (-self._sign, floor)).low > 0 else None

    @property
    def _sign(self) -> float:
        return 1.0 if self.better == "high" else -1.0

    def _measure_advantage(self, other: Measure | None) -> Measure:
        return combine((self._sign, self.measure), (-self._sign, other or self.measure))


def compute_standings(sections: Sequence[Section], ceiling: Measures, floor: Measures) -> dict[str, Standing]:
    """Return the standing of every measure, by name."""
    found = {}
    for section in sections:
        for name, measure in section.measures.items():
            metric, guess = section.metrics[name], GUESSES.get(name.rpartition(".")[2])
            found[name] = Standing(measure, ceiling.get(name), floor.get(name), metric.better, metric.ideal, guess)
    return found
