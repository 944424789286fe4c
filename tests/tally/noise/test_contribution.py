"""What a person may add: checked by clients, and charged."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests.privacy.test_skellam import compute_vector_delta

from sundog.errors import ArgumentError
from sundog.privacy.accountant import compute_delta, compute_epsilon
from sundog.privacy.events import Charge, Skellam
from sundog.tally.modulus import encode
from sundog.tally.noise import Contribution


@pytest.mark.parametrize(
    ("contribution", "event", "count"),
    [
        (Contribution(l1=1), Skellam(sigma=6.0), 1),
        (Contribution(l1=18), Skellam(sigma=6.0), 18),
        (Contribution(l1=18, largest=4), Skellam(sigma=3.0), 18),
        (Contribution(l1=18, largest=4, l2_squared=30), Skellam(sigma=6.0, l1=18, l2_squared=30), 1),
    ],
    ids=str,
)
def test_the_charge(contribution: Contribution, event: Skellam, count: int) -> None:
    assert contribution.make_charge(sigma=6.0, purpose="p") == Charge(event=event, count=count, purpose="p")


@pytest.mark.parametrize(
    "contribution",
    [Contribution(l1=2), Contribution(l1=3, largest=2), Contribution(l1=3, largest=3), Contribution(3, 2, 5)],
    ids=str,
)
def test_no_vector_that_passes_costs_more_than_is_charged(contribution: Contribution) -> None:
    """All vectors of two cells, by brute force over both directions and all outcomes."""
    sigma = 2.0
    charges = [contribution.make_charge(sigma=sigma, purpose="p")]
    passed = [changes for changes in itertools.product(range(5), repeat=2) if admits(contribution, changes)]
    assert len(passed) >= 4
    for delta in (1e-2, 1e-4):
        epsilon = compute_epsilon(charges, delta=delta)
        assert max(compute_vector_delta(sigma, changes, epsilon) for changes in passed) <= delta * (1 + 1e-9)
    if contribution.largest == 1:  # and a vector that uses all of it costs as much
        assert compute_vector_delta(sigma, (1, 1), 0.8) == pytest.approx(compute_delta(charges, epsilon=0.8), rel=1e-3)


def admits(contribution: Contribution, changes: tuple[int, ...]) -> bool:
    try:
        contribution.check(encode(list(changes)))
    except ArgumentError:
        return False
    return True


def test_all_bounds_are_checked_with_signs() -> None:
    contribution = Contribution(l1=6, largest=3, l2_squared=14)
    for values in ([3, -2, 1], [1] * 6, [0], [], [2, 2, 2], [-3, 1, 1, 1]):
        contribution.check(encode(values))
    for values, said in (
        ([3, -2, 1, 1], "has 7 in all and 3 in one cell; a person may add 6 and 3"),
        ([0, -4], "has 4 in all and 4 in one cell"),
        ([3, -3], "squares of this vector add up to 18, not 14 or less"),
        ([-(2**31)] * 5, "a person may add"),
    ):
        with pytest.raises(ArgumentError, match=said):
            contribution.check(encode(values))


def test_the_length_is_that_of_the_bounds() -> None:
    assert Contribution(l1=18, largest=4).l2 == math.sqrt(72)
    assert Contribution(l1=18, largest=4, l2_squared=25).l2 == 5
    with pytest.raises(ArgumentError):
        Contribution(l1=5).check(np.array([1, 2**32 - 2], np.uint32))


@pytest.mark.parametrize("bounds", [(0,), (5, 0), (5, 6), (5, 2, 4), (5, 2, 11), (-1, -1)])
def test_bounds_that_no_vector_has_are_refused(bounds: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match=r"^the (largest change|squares)"):
        Contribution(*bounds)
