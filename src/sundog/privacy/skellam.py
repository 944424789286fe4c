"""The Skellam distribution: the difference of two independent Poisson variates of equal mean.

Sums of independent Skellam variates are Skellam, and their variances add up: noise that many people draw in shares is
the noise that one would draw. The probabilities are P(k) = exp(−v) I_k(v) for variance v, with the modified Bessel
function I.

`SkellamTable` samples it from whole numbers alone, so that Python and a browser draw from the same bytes.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from sundog.errors import ArgumentError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

UNIT = 2**-32  # of the variance of a table: variances are whole multiples of it
LARGEST_VARIANCE = 2**20  # of a table, which then has about 13,500 thresholds
TABLE_DISTANCE = 2.0**-112  # the total variation distance of a draw from the Skellam distribution, at most

_LOG_TAIL = -75.0  # of the probability beyond the masses that are computed
_GUARD = 2**192  # the smallest weight of a table: divisions that round down are this exact


def compute_masses(variance: float) -> Floats:
    """Return P(0), P(1), … up to a value beyond which, on both sides, the probability is below exp(−75).

    >>> masses = compute_masses(4.0)
    >>> round(float(masses[0]), 4), round(float(masses[0] + 2 * masses[1:].sum()), 12)
    (0.207, 1.0)
    """
    reach = 1
    while _bound_log_tail(reach, variance) > _LOG_TAIL:
        reach *= 2
    low = reach // 2
    while reach - low > 1:
        middle = (low + reach) // 2
        low, reach = (middle, reach) if _bound_log_tail(middle, variance) > _LOG_TAIL else (low, middle)
    return np.asarray(special.ive(np.arange(reach + 1.0), variance))


def _bound_log_tail(k: int, variance: float) -> float:
    """Return Chernoff's bound on log P(X ≥ k): the smallest of v(cosh t − 1) − tk, at sinh t = k/v."""
    return math.hypot(k, variance) - variance - k * math.asinh(k / variance)


@dataclass(frozen=True, eq=False)
class SkellamTable:
    """Skellam noise by inversion: random bits are compared with thresholds.

    A word of 64 bits has the sign in its lowest bit. The other 63 are the first bits of a number u of 127, whose last
    64 are drawn only if the first do not decide. The magnitude is how many thresholds are at most u; threshold k is
    2¹²⁷·P(|X| ≤ k), rounded.

    >>> table = SkellamTable.build(2**33)  # a variance of 2
    >>> words = np.array([0, 1, 2**63, 2**63 + 1, 2**64 - 2**9], np.uint64)
    >>> table.draw(lambda size: words[:size], 5).tolist()
    [0, 0, 1, -1, 18]

    Args:
        units: the variance, in units of 2⁻³².
        thresholds: ascending, below 2¹²⁷.
    """

    units: int
    thresholds: tuple[int, ...]

    @classmethod
    def build(cls, units: int) -> SkellamTable:
        """Compute the table of a variance, from whole numbers alone."""
        if not 1 <= units <= LARGEST_VARIANCE / UNIT:
            raise ArgumentError(f"a table of noise has a variance from 2⁻³² to 2²⁰, not {units * UNIT:g}")
        weights = _compute_weights(units)
        total = sum(weights)
        below = itertools.accumulate(weights)
        rounded = ((each * 2**128 + total) // (2 * total) for each in below)  # to the nearest
        return cls(units, tuple(threshold for threshold in rounded if threshold < 2**127))

    @functools.cached_property
    def first_bits(self) -> Words:
        """The first 63 of the 127 bits of each threshold."""
        return np.array([threshold >> 64 for threshold in self.thresholds], np.uint64)

    def draw(self, draw_words: Callable[[int], Words], size: int) -> Integers:
        """Return noise from a function that draws random words of 64 bits."""
        words = draw_words(size)
        first = words >> np.uint64(1)
        magnitude = np.searchsorted(self.first_bits, first, side="right").astype(np.int64)
        for place in np.flatnonzero(self.first_bits[magnitude - 1] == first):
            whole = (int(first[place]) << 64) + int(draw_words(1)[0])
            magnitude[place] = bisect.bisect_right(self.thresholds, whole)
        return np.where(words & np.uint64(1), -magnitude, magnitude)

    def to_bytes(self) -> bytes:
        """Return the thresholds as little-endian numbers of 16 bytes: what every client must have."""
        return b"".join(threshold.to_bytes(16, "little") for threshold in self.thresholds)


def _compute_weights(units: int) -> list[int]:
    """Return whole numbers in proportion to P(|X| = 0), P(|X| = 1), …, for a variance v of `units` · 2⁻³².

    I_(k−1) = I_(k+1) + (2k/v)·I_k, from the far tail down: Miller's algorithm, in which all terms are positive. The
    values beyond the last weight have a probability below exp(−90).
    """
    last = math.isqrt(196 * units >> 32) + 64
    bessel = [0, _GUARD]
    for k in range(last, 0, -1):
        bessel.append(bessel[-2] + ((2 * k * bessel[-1]) << 32) // units)
    return [bessel[-1], *(2 * each for each in bessel[-2:0:-1])]
