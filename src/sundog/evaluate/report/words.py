"""What the figures say, in words: where each lies between independent columns and real data, and what that means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sundog.evaluate.measure import Better, Measure, Measures
from sundog.evaluate.section import Section

SAME = "no measurable difference from real data"
BEYOND = "beyond real data"
FLOOR = "no better than independent columns"
BELOW = "worse than independent columns"
DIFFERENT = "differs from real data"
UNKNOWN = "could not be measured"


@dataclass(frozen=True)
class Standing:
    """A measure beside what real data and independent columns give.

    >>> auc = Standing(Measure(0.76, 0.75, 0.77), Measure(0.86, 0.85, 0.87), Measure.exact(0.5), "high")
    >>> auc.share, auc.words
    (0.722..., '72% of the way to real data')
    """

    measure: Measure
    ceiling: Measure | None
    floor: Measure | None
    better: Better

    @property
    def share(self) -> float | None:
        """How far it has come from the floor (0) to the ceiling (1); None where these cannot be told apart."""
        return self.place(self.measure.value)

    def place(self, value: float) -> float | None:
        """Where a value lies between the floor (0) and the ceiling (1)."""
        if self.ceiling is None or self.floor is None or self.ceiling.overlaps(self.floor):
            return None
        reach = self.ceiling.value - self.floor.value
        if not math.isfinite(value) or not math.isfinite(reach) or (reach > 0) != (self.better == "high"):
            return None
        return (value - self.floor.value) / reach

    @property
    def words(self) -> str:
        """The standing in a few words, and whether the interval allows them."""
        if not math.isfinite(self.measure.value):
            return UNKNOWN
        if self.ceiling is not None and self.measure.overlaps(self.ceiling):
            return SAME
        if self.share is None or self.floor is None:
            return DIFFERENT if self.ceiling is not None else ""
        if self.share > 1:
            return BEYOND
        if self.measure.overlaps(self.floor):
            return FLOOR
        return BELOW if self.share < 0 else f"{min(max(self.share, 0.01), 0.99):.0%} of the way to real data"


def standings(sections: Sequence[Section], ceiling: Measures, floor: Measures) -> dict[str, Standing]:
    """The standing of every measure, by its name."""
    return {
        name: Standing(measure, ceiling.get(name), floor.get(name), section.metrics[name].better)
        for section in sections
        for name, measure in section.measures.items()
    }


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
