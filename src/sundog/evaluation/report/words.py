"""What the figures say, in words: where each lies between independent columns and real data, and what that means.

Intervals that overlap show nothing. A figure is called as good as real data only where its interval rules out that more
than a tenth of the way from independent columns is missing; no better than independent columns, only where it rules out
more than a tenth; and where the interval allows both, the words say so, and what is still possible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sundog.evaluation.measure import Better, Measure, Measures, combine, ratio
from sundog.evaluation.section import Section

MARGIN = 0.1  # of the way from independent columns to real data
NARROW = 0.3  # an interval of shares that says something, though it is not clear of the margins

GUESSES = {"auc": 0.5, "r2": 0.0}  # scores of a model that is shown nothing

SAME = "as good as real data"
BEYOND = "beyond real data"
FLOOR = "no better than independent columns"
BELOW = "worse than independent columns"
DIFFERENT = "differs from real data"
NO_DIFFERENCE = "no difference from real data is shown"
UNCLEAR = "cannot be told at this size"
UNKNOWN = "could not be measured"

Answer = Literal["yes", "partly", "no", "mixed", "unknown"]


def judge(share: Measure) -> Answer:
    """Whether all of something is there (1) or nothing (0), as far as the interval allows to say.

    >>> judge(Measure(0.97, 0.94, 1.0)), judge(Measure(0.5, 0.4, 0.6)), judge(Measure(0.02, -0.04, 0.08))
    ('yes', 'partly', 'no')
    >>> judge(Measure(0.97, 0.6, 1.3)), judge(Measure(0.5, 0.05, 0.95)), judge(Measure(0.91, 0.89, 0.93))
    ('unknown', 'unknown', 'partly')
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
    """A measure beside what real data and independent columns give.

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
        """How far it has come from the floor (0) to the ceiling (1); None where these cannot be told apart.

        Sampling adds to distances, and to the ceiling's as much as the real records are fewer: a distance below the
        ceiling is not beyond real data, and how much of one is sampling cannot be told. So of a distance the interval
        begins where all of it would be a difference.
        """
        if self._reach is None:
            return None
        floor, ceiling = self._reach
        share = ratio(self.measure, ceiling, floor)
        whole = share if self.ideal is None else ratio(self.measure, Measure.exact(self.ideal), floor)
        if share is None or whole is None or self.ideal is None:
            return share
        return Measure(*(min(end, 1.0) for end in (share.value, min(whole.low, share.low), share.high)))

    def place(self, value: float) -> float | None:
        """Where a value lies between the floor (0) and the ceiling (1)."""
        if self._reach is None or not math.isfinite(value):
            return None
        floor, ceiling = (end.value for end in self._reach)
        return (value - floor) / (ceiling - floor)

    @cached_property
    def short(self) -> Measure | None:
        """By how much it falls short of the ceiling, whichever way is better."""
        if self.ceiling is None or not math.isfinite(self.measure.value + self.ceiling.value):
            return None
        return combine((self._sign, self.ceiling), (-self._sign, self.measure))

    @property
    def verdict(self) -> Answer:
        """Whether it is as good as real data."""
        if self.share is not None:
            return judge(self.share)
        return "no" if self.short is not None and self.short.low > 0 else "unknown"

    @property
    def words(self) -> str:
        """The standing in a few words, and no more than the interval allows."""
        if not math.isfinite(self.measure.value):
            return UNKNOWN
        if self.share is None:
            apart = self.short is not None and not self.short.low <= 0 <= self.short.high
            return (DIFFERENT if apart else NO_DIFFERENCE) if self.short is not None else ""
        if self.verdict == "yes":
            return BEYOND if self.share.low > 1 else SAME
        if self.verdict == "no":
            return BELOW if self._better_than(self.floor).high < 0 else FLOOR
        if self.verdict == "partly":
            return f"{percent(self.share.value)} ({span(self.share)}) of the way to real data"
        possible = still_possible(self.share)
        return f"{UNCLEAR}: {possible} of the way to real data" if possible else UNCLEAR

    @cached_property
    def _reach(self) -> tuple[Measure, Measure] | None:
        """The floor and the ceiling, where real data is measurably better.

        Where a model that learned from independent columns does worse than a guess, the guess is the floor.
        """
        if self.ceiling is None or self.floor is None:
            return None
        raised = self.guess is not None and self.floor.value < self.guess
        floor = Measure.exact(self.guess) if raised and self.guess is not None else self.floor
        return (floor, self.ceiling) if combine((self._sign, self.ceiling), (-self._sign, floor)).low > 0 else None

    @property
    def _sign(self) -> float:
        return 1.0 if self.better == "high" else -1.0

    def _better_than(self, other: Measure | None) -> Measure:
        return combine((self._sign, self.measure), (-self._sign, other or self.measure))


def standings(sections: Sequence[Section], ceiling: Measures, floor: Measures) -> dict[str, Standing]:
    """The standing of every measure, by its name."""
    found = {}
    for section in sections:
        for name, measure in section.measures.items():
            metric, guess = section.metrics[name], GUESSES.get(name.rpartition(".")[2])
            found[name] = Standing(measure, ceiling.get(name), floor.get(name), metric.better, metric.ideal, guess)
    return found


# --- numbers -------------------------------------------------------------------------------------------------------


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def places(*values: float) -> int:
    """How many decimals to show for the sake of the first of them that is not zero: three or so that tell.

    >>> places(0.7621), places(0.0, 0.0213), places(1.0), places(34.21), places(1234.5), places(0.00345)
    (3, 4, 3, 1, 0, 4)
    """
    for value in values:
        if math.isfinite(value) and value != 0:
            size = math.floor(math.log10(abs(value))) or -1  # 1.000 as 0.999
            return min(max(2 - size, 0), max(1 - size, 4), 8)
    return 3


def number(value: float, decimals: int) -> str:
    """A number for a reader.

    >>> number(-1234.5, 1), number(float("nan"), 3)
    ('−1,234.5', '–')
    >>> number(0.0, 3), number(-0.0001, 3)
    ('0', '0.000')
    """
    if not math.isfinite(value):
        return "–"
    return "0" if value == 0 else f"{value:z,.{decimals}f}".replace("-", "−")


def percent(share: float) -> str:
    """A share for a reader: two digits that tell, and none that do not.

    >>> percent(0.237), percent(0.0364), percent(0.0004), percent(-0.04)
    ('24%', '3.6%', '0.0%', '−4.0%')
    """
    return f"{share:z.{0 if abs(share) >= 0.0995 else 1}%}".replace("-", "−")


def span(measure: Measure) -> str:
    """The ends of an interval of shares.

    >>> span(Measure(0.5, 0.45, 0.55))
    '45% to 55%'
    """
    return f"{percent(measure.low)} to {percent(measure.high)}"


def still_possible(share: Measure) -> str:
    """What an interval of a share leaves open; nothing where it leaves open everything.

    >>> still_possible(Measure(0.9, 0.6, 1.4)), still_possible(Measure(0.1, -2.0, 0.4))
    ('at least 60%', 'at most 40%')
    >>> still_possible(Measure(0.5, 0.05, 0.95)), still_possible(Measure(0.5, -1.0, 2.0))
    ('5.0% to 95%', '')
    """
    if share.low <= 0 or share.high >= 1:
        if share.low > 0:
            return f"at least {percent(share.low)}"
        return f"at most {percent(share.high)}" if share.high < 1 else ""
    return span(share)


def capital(words: str) -> str:
    """The same with a large first letter."""
    return words[:1].upper() + words[1:]


def power(value: float) -> str:
    """A small number as people write it.

    >>> power(1e-6), power(2.5e-7), power(0.05)
    ('10⁻⁶', '2.5 × 10⁻⁷', '0.05')
    """
    digits, _, exponent = f"{value:.3g}".partition("e")
    if not exponent:
        return digits
    raised = f"10{str(int(exponent)).translate(_RAISED)}"
    return raised if digits == "1" else f"{digits} × {raised}"


def interval(measure: Measure, decimals: int) -> str:
    """The ends of the interval; nothing where they read the same, or the figure is not known.

    >>> interval(Measure(0.76, 0.755, 0.769), 3)
    '0.755 to 0.769'
    """
    low, high = number(measure.low, decimals), number(measure.high, decimals)
    return "" if low == high or not math.isfinite(measure.value) else f"{low} to {high}"
