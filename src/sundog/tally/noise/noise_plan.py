"""The noise of a round: as little as its budget allows, with the charges for the ledger.

Whoever opens a sum charges `NoisePlan.charges` to a ledger first: `ledger.spend(*plan.charges)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sundog.errors import BudgetError
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.analytic_gaussian import compute_gaussian_epsilon
from sundog.privacy.calibration import find_smallest_noise
from sundog.privacy.events import Charge, Failure
from sundog.privacy.ledger import Budget
from sundog.privacy.skellam import TABLE_DISTANCE
from sundog.tally.noise.contribution import Contribution
from sundog.tally.noise.shares import NoiseShares, count_honest

_LARGEST_EPSILON = 30.0  # e³⁰ = 10¹³: nothing is protected, and the tables would not be exact enough for more


@dataclass(frozen=True)
class NoisePlan:
    """The shares of a round, what it charges, and what that comes to.

    Args:
        shares: what clients draw.
        charges: for a ledger, before the sum is opened.
        spent: ε of the charges, at the δ of the budget.
        gaussian: ε of Gaussian noise of the same standard deviation, for comparison.
    """

    shares: NoiseShares
    charges: tuple[Charge, ...]
    spent: float
    gaussian: float

    @property
    def excess(self) -> float:
        """How much more ε Skellam noise costs than Gaussian noise; it is negative where it costs less."""
        return self.spent / self.gaussian - 1


def plan_noise(
    contribution: Contribution, *, budget: Budget, threshold: int, corrupt: int, purpose: str = "a sum of the tally"
) -> NoisePlan:
    """Return the smallest noise for which a sum keeps to the budget.

    >>> plan = plan_noise(Contribution(l1=18), budget=Budget(1.0, 1e-6), threshold=180, corrupt=59)
    >>> round(plan.shares.sigma, 2), round(plan.spent, 3)
    (17.92, 1.0)

    Args:
        contribution: the bounds that clients keep to.
        budget: what the round may spend.
        threshold: the fewest people whose sum is opened.
        corrupt: the most people whose shares are known to the server.
        purpose: of the charge.
    """
    table = _make_table_charge(contribution, budget, honest=count_honest(threshold=threshold, corrupt=corrupt))

    def charge(sigma: float) -> tuple[Charge, ...]:
        return contribution.make_charge(sigma=sigma, purpose=purpose), table

    sigma = find_smallest_noise(charge, epsilon=budget.epsilon, delta=budget.delta)
    charges = charge(sigma)
    return NoisePlan(
        shares=NoiseShares(sigma, threshold, corrupt),
        charges=charges,
        spent=compute_epsilon(charges, delta=budget.delta),
        gaussian=compute_gaussian_epsilon(noise_multiplier=sigma / contribution.l2, delta=budget.delta),
    )


def _make_table_charge(contribution: Contribution, budget: Budget, *, honest: int) -> Charge:
    """Return the charge for what the table rounds.

    Only cells that a person changes tell anything. In those, the noise of `honest` people is within τ of Skellam noise
    in total variation, which adds (1 + e^ε)τ to δ; the accountant multiplies 1 − δ of other failures into it.
    """
    if budget.epsilon > _LARGEST_EPSILON:
        raise BudgetError(f"epsilon of a sum must be at most {_LARGEST_EPSILON:g}, not {budget.epsilon:g}")
    distance = contribution.l1 * honest * TABLE_DISTANCE
    delta = (1 + math.exp(budget.epsilon)) * distance / (1 - budget.delta)
    return Charge(event=Failure(delta=delta), purpose="rounding in the table of noise")
