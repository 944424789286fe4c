"""Vectors modulo 2³²: what clients send, and how a total is read as numbers with signs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.errors import ArgumentError

Vector = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int64]

MODULUS = 2**32
WORD_BYTES = 4
_DEVIATIONS = 12  # of the noise that a total must have room for


def encode(values: Any) -> Vector:
    """Return whole numbers modulo 2³².

    >>> encode([1, -1])
    array([         1, 4294967295], dtype=uint32)
    """
    return (np.asarray(values, np.int64) % MODULUS).astype(np.uint32)


def decode(total: Vector) -> Integers:
    """Return the numbers from −2³¹ to 2³¹ − 1 that a total stands for.

    >>> decode(encode([5, -7])).tolist()
    [5, -7]
    """
    return np.asarray(total, np.uint32).view(np.int32).astype(np.int64)


def check_room(*, users: int, largest: int, deviation: float) -> None:
    """Raise ArgumentError unless the total of all users and 12 standard deviations of noise are below 2³¹.

    >>> check_room(users=10**6, largest=2_200, deviation=10.0)
    Traceback (most recent call last):
    ...
    sundog.errors.ArgumentError: 1,000,000 users who change a cell by up to 2,200 each, and noise of ...
    """
    if users * largest + _DEVIATIONS * deviation >= MODULUS // 2:
        raise ArgumentError(
            f"{users:,} users who change a cell by up to {largest:,} each, and noise of standard deviation "
            f"{deviation:,.0f}, do not fit into 32 bits; lower the largest change of a cell, or sum fewer users"
        )
