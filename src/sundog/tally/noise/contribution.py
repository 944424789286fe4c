"""How much one person may change a total, which clients check, and what Skellam noise on the total then costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sundog.errors import ArgumentError
from sundog.privacy.events import Charge, Skellam
from sundog.tally.modulus import Vector, decode


@dataclass(frozen=True)
class Contribution:
    """The bounds of one person's vector.

    >>> Contribution(l1=18).make_charge(sigma=20.0, purpose="a sketch").count
    18

    Args:
        l1: the absolute values of all cells together: 1 for one cell of a histogram, the rows of a sketch for each key.
        largest: the absolute value of a cell.
        l2_squared: the squares of all cells together; None if it is only known that they are at most largest × l1.
    """

    l1: int
    largest: int = 1
    l2_squared: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.largest <= self.l1:
            raise ArgumentError(
                f"the largest change of a cell is between 1 and all changes together ({self.l1:,}), "
                f"not {self.largest:,}"
            )
        if self.l2_squared is not None and not self.l1 <= self.l2_squared <= self.most_squares:
            raise ArgumentError(
                f"the squares of changes that add up to {self.l1:,} and are at most {self.largest:,} each add up to "
                f"between {self.l1:,} and {self.most_squares:,}, not {self.l2_squared:,}"
            )

    @property
    def most_squares(self) -> int:
        """What the squares add up to at most, by the other two bounds."""
        return self.largest * self.l1

    @property
    def l2(self) -> float:
        """The Euclidean length of the vector, at most."""
        return math.sqrt(self.most_squares if self.l2_squared is None else self.l2_squared)

    def check(self, vector: Vector) -> None:
        """Raise ArgumentError if a client's vector, before noise, exceeds the bounds.

        >>> Contribution(l1=2).check(np.array([1, 0, 2], np.uint32))
        Traceback (most recent call last):
        ...
        sundog.errors.ArgumentError: this vector has 3 in all and 2 in one cell; a person may add 2 and 1
        """
        sizes = np.abs(decode(vector))
        total, largest = int(sizes.sum()), int(sizes.max(initial=0))
        if total > self.l1 or largest > self.largest:
            raise ArgumentError(
                f"this vector has {total:,} in all and {largest:,} in one cell; "
                f"a person may add {self.l1:,} and {self.largest:,}"
            )
        if self.l2_squared is None:
            return
        squares = sum(size * size for size in sizes.tolist())  # in whole numbers of any size
        if squares > self.l2_squared:
            raise ArgumentError(f"the squares of this vector add up to {squares:,}, not {self.l2_squared:,} or less")

    def make_charge(self, *, sigma: float, purpose: str) -> Charge:
        """Return the charge for a total with Skellam noise of standard deviation `sigma` in each cell.

        Without a bound on the squares, the vector is `largest` vectors of zeros and ones, each with its part of the
        noise: `l1` cells in all that change by one (docs/tally_noise.md).
        """
        if self.l2_squared is None:
            return Charge(event=Skellam(sigma=sigma / math.sqrt(self.largest)), count=self.l1, purpose=purpose)
        event = Skellam(sigma=sigma, l1=self.l1, l2_squared=self.l2_squared)
        return Charge(event=event, purpose=purpose)
