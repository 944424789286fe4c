"""Evenly spaced numbers between two bounds: the codes of integers, measurements and times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.columns.arrow import Mask

FINEST = 2**50  # steps between 0 and the largest value; with more, neighbouring points are the same float64


def choose_resolution(low: float, high: float) -> float:
    """Return a millionth of the range, as a power of ten.

    >>> choose_resolution(0, 500), choose_resolution(3, 3)
    (0.0001, 1.0)
    """
    if high <= low or math.isinf(high - low):
        return 1.0
    return float(f"1e{math.floor(math.log10(high - low)) - 6}") or math.ulp(0.0)


def to_fraction(value: float) -> Fraction:
    """Return the decimal number that a float is printed as: 0.1 is one tenth."""
    return Fraction(repr(value))


@dataclass(frozen=True)
class Lattice:
    """The numbers `low`, `low + step`, …, and `high`, which is always the last; the last step may be shorter.

    >>> lattice = Lattice(0.0, 0.25, 0.1)
    >>> lattice.decode(np.arange(lattice.size)).tolist()
    [0.0, 0.1, 0.2, 0.25]
    >>> lattice.encode(np.array([0.06, 0.24])).tolist()
    [1, 3]
    """

    low: float
    high: float
    step: float

    def find_problem(self) -> str | None:
        """Return why this lattice is impossible; None if it is possible."""
        if not math.isfinite(self.high - self.low):
            return f"the range from {self.low} to {self.high} is too wide for float64; narrow min and max"
        widest = max(
            abs(to_fraction(self.low)), abs(to_fraction(self.high)), to_fraction(self.high) - to_fraction(self.low)
        )
        if widest / to_fraction(self.step) > FINEST:
            return f"resolution ({self.step}) is too fine for values this large; declare a coarser `resolution`"
        return None

    @cached_property
    def size(self) -> int:
        """The number of points; a point below `high` by no more than a rounding error is `high` itself.

        >>> Lattice(0.0, 1e6, 1 / 3).size
        3000001
        """
        size = math.ceil((to_fraction(self.high) - to_fraction(self.low)) / to_fraction(self.step)) + 1
        before = to_fraction(self.low) + (size - 2) * to_fraction(self.step)
        return size - (size > 1 and max(float(before), self.low + (size - 2) * self.step) >= self.high)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the index of the nearest point of each value; values outside the bounds are clamped."""
        inside = np.clip(values, self.low, self.high)
        # The last step may be shorter than the others: choose the nearer of its two ends.
        codes = np.rint((inside - self.low) / self.step).clip(0, self.size - 1).astype(np.int64)
        if self.size > 1:
            middle = (self._decode_one(self.size - 2) + self.high) / 2
            near_end = inside > self._decode_one(self.size - 2)
            codes = np.where(near_end, self.size - 2 + (inside >= middle), codes)
        return codes

    def decode(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the value of each point, rounded to its decimals: 0.07, not 0.07000000000000001."""
        scaled = self._scaled
        if scaled is None:
            values = self.low + codes * self.step
        else:
            low, step, scale = scaled
            values = (low + codes.astype(np.int64) * step) / scale
        return np.where(codes == self.size - 1, self.high, values)

    def find_at_or_above(self, value: float) -> int:
        """Return the first point that is not below a value; `size` if all are below."""
        if value > self.high:
            return self.size
        return max(0, math.ceil((to_fraction(value) - to_fraction(self.low)) / to_fraction(self.step)))

    def holds(self, value: float) -> bool:
        """Return whether a value is one of the points.

        >>> Lattice(-1.0, 0.25, 0.1).holds(-0.3), Lattice(-1.0, 0.25, 0.1).holds(0.25), Lattice(0, 1, 0.1).holds(0.15)
        (True, True, False)
        """
        steps = (to_fraction(value) - to_fraction(self.low)) / to_fraction(self.step)
        return value == self.high or (steps.denominator == 1 and 0 <= steps < self.size)

    def is_outside(self, values: NDArray[np.float64]) -> Mask:
        """Return a mask of the values outside the bounds."""
        return (values < self.low) | (values > self.high)

    def _decode_one(self, code: int) -> float:
        return float(self.decode(np.array([code]))[0])

    @cached_property
    def _scaled(self) -> tuple[int, int, float] | None:
        """Low and step in units of 10**-digits, and 10**digits; None if float64 cannot divide them exactly."""
        digits = max(0, *(-_find_exponent(number) for number in (self.low, self.step)))
        low, step = to_fraction(self.low) * 10**digits, to_fraction(self.step) * 10**digits
        if digits > 22 or max(abs(low), abs(low + self.size * step)) >= 2**53:
            return None
        return int(low), int(step), float(10**digits)


def _find_exponent(number: float) -> int:
    return int(Decimal(repr(number)).as_tuple().exponent)
