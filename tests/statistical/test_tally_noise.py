"""The noise that is left in a sum has the scale that is charged, and two thirds and three halves of it are noticed.

The noise is real. Each p-value is held against an ALARM that correct noise exceeds but once in 10⁹ runs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from tests.privacy.reference import compute_skellam_pmf
from tests.statistical.test_noise_scale import ALARM, Pmf, check, p_value

from sundog.privacy.noise import NoiseSource
from sundog.privacy.skellam import UNIT, SkellamTable
from sundog.tally.modulus import decode
from sundog.tally.noise import NoiseShares

SOURCE = NoiseSource()
CELLS = 20_000


def skellam(sigma: float) -> Pmf:
    masses = compute_skellam_pmf(sigma)
    return dict(enumerate(masses.tolist(), start=-(len(masses) // 2)))


@pytest.mark.parametrize("sigma", [0.4, 1.0, 4.0, 30.0])
def test_a_table_draws_the_skellam_distribution(sigma: float) -> None:
    sample = SOURCE.skellam(SkellamTable.build(round(sigma**2 / UNIT)), 100_000)
    check(lambda scale: p_value(sample, skellam(scale * sigma)))


def add_noise(shares: NoiseShares, *, survivors: int, known: int) -> npt.NDArray[np.int64]:
    """The noise of a sum that the server sees, less the shares that it knows."""
    drawn = [shares.draw(CELLS, SOURCE) for _ in range(survivors)]
    total = np.asarray(np.sum(drawn, axis=0, dtype=np.uint32))
    for share in drawn[:known]:
        total -= share
    return decode(total)


@pytest.mark.parametrize("sigma", [0.8, 12.0])
@pytest.mark.parametrize(("threshold", "corrupt"), [(6, 0), (6, 1), (18, 5)])
def test_what_is_left_of_the_fewest_survivors_has_the_scale_that_is_charged(
    sigma: float, threshold: int, corrupt: int
) -> None:
    sample = add_noise(NoiseShares(sigma, threshold, corrupt), survivors=threshold, known=corrupt)
    check(lambda scale: p_value(sample, skellam(scale * sigma)))


def test_noise_shared_among_all_who_began_is_too_little() -> None:
    """Ten begin, of whom six must survive and one colludes: a tenth of the variance each is half of what is charged."""
    wrong = NoiseShares(5.0, threshold=10, corrupt=0)
    assert p_value(add_noise(wrong, survivors=6, known=1), skellam(5.0)) < ALARM


def test_the_noise_of_all_survivors_is_as_large_as_announced() -> None:
    shares = NoiseShares(5.0, threshold=6, corrupt=1)
    sample = add_noise(shares, survivors=10, known=0)
    check(lambda scale: p_value(sample, skellam(scale * shares.compute_deviation(10))))
