"""Shares of Skellam noise: what each client adds, so that enough of it is left whoever drops out or colludes."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sundog.errors import ArgumentError
from sundog.privacy.noise import NoiseSource
from sundog.privacy.skellam import LARGEST_VARIANCE, UNIT, SkellamTable
from sundog.tally.modulus import Vector, encode


@dataclass(frozen=True)
class NoiseShares:
    """The noise of a sum that is opened if at least `threshold` people are in it, of whom `corrupt` may collude.

    Whoever colludes with the server can subtract their own share. At least `threshold` − `corrupt` shares are left, and
    each has that part of the variance sigma². Dividing by the number of people instead would leave too little.

    >>> shares = NoiseShares(sigma=10.0, threshold=180, corrupt=59)
    >>> round(shares.variance, 3), round(shares.compute_deviation(180), 2), round(shares.compute_deviation(300), 2)
    (0.826, 12.2, 15.75)

    Args:
        sigma: the standard deviation of the noise that is charged.
        threshold: the fewest people whose sum is opened.
        corrupt: the most people whose shares are known to the server.
    """

    sigma: float
    threshold: int
    corrupt: int

    def __post_init__(self) -> None:
        if not 0 < self.sigma**2 <= LARGEST_VARIANCE * self.honest:
            raise ArgumentError(
                f"noise of standard deviation {self.sigma:.4g} is more than {self.honest:,} people can share (1,024 "
                "each at most); raise epsilon, lower what a person may add, or sum more people"
            )

    @functools.cached_property
    def units(self) -> int:
        """The variance of a share in units of 2⁻³², rounded up: what clients are told."""
        return math.ceil(Fraction(self.sigma) ** 2 / self.honest * int(1 / UNIT))

    @property
    def honest(self) -> int:
        """The fewest shares that the server does not know."""
        return count_honest(threshold=self.threshold, corrupt=self.corrupt)

    @property
    def variance(self) -> float:
        """The variance of a share."""
        return self.units * UNIT

    @functools.cached_property
    def table(self) -> SkellamTable:
        """The table that every client draws from."""
        return SkellamTable.build(self.units)

    def draw(self, size: int, noise: NoiseSource) -> Vector:
        """Return one client's share in each cell, modulo 2³².

        It is drawn outside `noise.release`: nothing is released before the sum is.
        """
        return np.asarray(encode(noise.skellam(self.table, size)))

    def compute_deviation(self, survivors: int) -> float:
        """Return the standard deviation of the noise in a sum of that many people."""
        return math.sqrt(survivors * self.variance)


def count_honest(*, threshold: int, corrupt: int) -> int:
    """Return how many shares of noise are left; raise ArgumentError if none are.

    >>> count_honest(threshold=180, corrupt=59)
    121
    """
    if not 0 <= corrupt < threshold:
        raise ArgumentError(f"of the {threshold:,} people whose noise must suffice, {corrupt:,} cannot collude")
    return threshold - corrupt
