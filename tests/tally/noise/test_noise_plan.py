"""The noise of a round: enough of it is left, it spends what it may, and a ledger takes the charges."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundog.data.schema import Schema
from sundog.errors import ArgumentError, BudgetError, BudgetExceededError
from sundog.privacy.events import Failure
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource
from sundog.privacy.skellam import TABLE_DISTANCE
from sundog.release.certificate import Certificate, certify
from sundog.tally.modulus import decode
from sundog.tally.noise import Contribution, NoiseShares, plan_noise


@settings(max_examples=200, deadline=None, database=None)
@given(st.floats(1e-3, 1e4), st.integers(1, 10**7), st.data())
def test_honest_shares_have_the_whole_variance(sigma: float, threshold: int, data: st.DataObject) -> None:
    corrupt = data.draw(st.integers(0, threshold - 1))
    if sigma**2 > 2**20 * (threshold - corrupt):
        return
    shares = NoiseShares(sigma, threshold, corrupt)
    honest = Fraction(shares.units, 2**32) * (threshold - corrupt)
    assert Fraction(sigma) ** 2 <= honest < Fraction(sigma) ** 2 + Fraction(threshold - corrupt, 2**32)
    assert shares.compute_deviation(threshold) == pytest.approx(math.sqrt(float(honest) * threshold / shares.honest))


def test_a_share_is_a_vector_with_signs() -> None:
    share = NoiseShares(40.0, 10, 3).draw(1000, NoiseSource.seeded(1))
    assert share.dtype == np.uint32
    assert decode(share).min() < 0 < decode(share).max()


@pytest.mark.parametrize(
    ("sigma", "threshold", "corrupt", "said"),
    [
        (1.0, 5, 5, "of the 5 people whose noise must suffice, 5 cannot collude"),
        (1.0, 5, -1, "cannot collude"),
        (1.0, 0, 0, "cannot collude"),
        (0.0, 5, 1, "noise of standard deviation 0"),
        (1e9, 5, 1, "is more than 4 people can share"),
        (math.nan, 5, 1, "noise of standard deviation nan"),
        (math.inf, 5, 1, "noise of standard deviation inf"),
    ],
)
def test_noise_that_nobody_can_share_is_refused(sigma: float, threshold: int, corrupt: int, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        NoiseShares(sigma, threshold, corrupt)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize(
    "contribution", [Contribution(1), Contribution(18), Contribution(60, 3), Contribution(60, 5, 90)], ids=str
)
def test_a_plan_spends_what_it_may_and_a_ledger_takes_it(contribution: Contribution, epsilon: float) -> None:
    plan = plan_noise(contribution, budget=Budget(epsilon, 1e-6), threshold=180, corrupt=59)
    assert 0.99 * epsilon < plan.spent <= epsilon
    ledger = Ledger(epsilon=epsilon, delta=1e-6)
    ledger.spend(*plan.charges)
    assert ledger.compute_spent() == pytest.approx(plan.spent)
    with pytest.raises(BudgetExceededError):
        ledger.spend(*plan.charges)
    if epsilon <= 1:  # beyond, a little Skellam noise is worth more than as much Gaussian noise
        assert abs(plan.excess) < 0.2
    if contribution.l2_squared is not None:
        assert plan.excess > 0.01  # by Rényi divergences


def test_the_rounding_of_the_table_is_charged() -> None:
    """(1 + e^ε)τ for 18 cells of 121 shares; nobody sees it in ε, even with ten million people."""
    plan = plan_noise(Contribution(18), budget=Budget(2.0, 1e-6), threshold=180, corrupt=59)
    failure = plan.charges[1].event
    assert isinstance(failure, Failure)
    assert failure.delta == pytest.approx((1 + math.exp(2)) * 18 * 121 * TABLE_DISTANCE, rel=1e-5)
    many = plan_noise(Contribution(22_950), budget=Budget(20.0, 1e-9), threshold=6_000_000, corrupt=1_999_999)
    assert isinstance(many.charges[1].event, Failure)
    assert many.charges[1].event.delta < 1e-12


def test_a_certificate_of_a_round_is_rechecked() -> None:
    """Read again from its text, and refused once its noise is called larger than it was."""
    plan = plan_noise(Contribution(60, 5, 90), budget=Budget(1.0, 1e-6), threshold=180, corrupt=59)
    schema = Schema.from_dict({"columns": {"cell": {"type": "integer", "min": 0, "max": 9}}})
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    ledger.spend(*plan.charges)
    written = certify(ledger, schema).to_dict()
    assert Certificate.from_dict(written).recheck(schema) == []
    assert "Skellam, σ/Δ" in str(Certificate.from_dict(written))
    written["charges"][0]["event"]["sigma"] *= 1.5
    assert Certificate.from_dict(written).recheck(schema) != []


@pytest.mark.parametrize("epsilon", [30.1, 1e9])
def test_an_epsilon_that_protects_nothing_is_refused(epsilon: float) -> None:
    with pytest.raises(BudgetError, match="epsilon of a sum must be at most 30"):
        plan_noise(Contribution(1), budget=Budget(epsilon, 1e-6), threshold=5, corrupt=1)
