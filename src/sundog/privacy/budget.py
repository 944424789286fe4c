"""The budget of a fit, and its split between the stages.

Stages that come first (counting records, learning what the schema does not declare) get a fixed ε each. Bins are
refined with Gaussian noise, like what most models measure, and get a fixed part of the ρ (zero-concentrated privacy)
of the rest. The model gets what is left, calibrated against everything before it, so that what composition saves goes
to the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sundog.errors import BudgetError
from sundog.privacy.ledger import Budget

# The range that a certificate can promise: outside it nothing could be measured, or nothing would be protected.
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-4, 1e9
SMALLEST_DELTA = 1e-50
LARGEST_DELTA = 1e-5  # by default; a larger δ causes a warning
LARGEST_MEANINGFUL_DELTA = 0.01  # above it, publishing some of the records as they are would keep the promise
LARGEST_MEANINGFUL_EPSILON = 20.0  # e^20: odds may change half a billionfold; a larger ε causes a warning

REST = "model"


def compute_default_delta(records: int) -> float:
    """Return 1 / (10·n^1.1), at most 1e-5: far below the probability that publishing one random record hits a person.

    >>> compute_default_delta(100), round(compute_default_delta(1_000_000), 10)
    (1e-05, 2.51e-08)
    """
    return min(LARGEST_DELTA, 0.1 / math.pow(max(records, 1), 1.1))


def compute_calibrated_delta(promised: float, records: int) -> float:
    """Return the δ to calibrate to once a noisy count is known: the default δ, at most the promised one.

    >>> compute_calibrated_delta(1e-5, 100), round(compute_calibrated_delta(1e-5, 1_000_000), 10)
    (1e-05, 2.51e-08)
    """
    return min(promised, compute_default_delta(records))


def check_budget(epsilon: float, delta: float) -> Budget:
    """Return the budget; raise BudgetError if no certificate can promise it.

    >>> check_budget(1.0, 1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    >>> check_budget(1e-12, 1e-6)
    Traceback (most recent call last):
    sundog.errors.BudgetError: epsilon must be between 0.0001 and 1e+09, not 1e-12
    """
    budget = Budget(epsilon, delta)
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise BudgetError(f"epsilon must be between {SMALLEST_EPSILON:g} and {LARGEST_EPSILON:g}, not {epsilon:g}")
    if delta <= SMALLEST_DELTA:
        raise BudgetError(f"delta must be above {SMALLEST_DELTA:g}, not {delta:g}")
    if delta > LARGEST_MEANINGFUL_DELTA:
        raise BudgetError(
            f"delta = {delta:g} promises nothing: publishing every record with that probability would keep it; use "
            f"{LARGEST_MEANINGFUL_DELTA:g} or less ({LARGEST_DELTA:g} or less is usual)"
        )
    return budget


@dataclass(frozen=True)
class Split:
    """A budget and the share of ε that each stage gets; the stage named `model` takes what the others leave.

    >>> split = Split(Budget(1.0, 1e-6), {"records": 0.02, "schema": 0.1}, bins=0.05, promised_delta=1e-5)
    >>> split.get_epsilon("schema")
    0.1
    >>> print(split)
    budget: ε = 1, δ = 1e-05 (promised; the noise is for δ = 1e-06, which follows from the noisy number of records)
      records    2%   ε = 0.02
      schema    10%   ε = 0.1
      model     88%   and whatever composition saves; 5% of this, measured by ρ, refines default bins

    Args:
        budget: what the stages share; its δ is the one that noise is calibrated to.
        shares: of ε, by stage.
        bins: the part of the model's share, measured by ρ, that refines default bins: 0 where there are none.
        promised_delta: the δ of the certificate, where it is not that of the budget.
    """

    budget: Budget
    shares: Mapping[str, float]
    bins: float = 0.0
    promised_delta: float | None = None

    @property
    def rest(self) -> float:
        """The ε that is left for the bins and the model."""
        return self.budget.epsilon * (1 - sum(self.shares.values()))

    def get_epsilon(self, stage: str) -> float:
        """Return the ε of a stage, 0 if the split does not name it."""
        return self.budget.epsilon * self.shares.get(stage, 0.0)

    def __str__(self) -> str:
        delta = self.budget.delta
        promised = delta if self.promised_delta is None else self.promised_delta
        lines = [f"budget: ε = {self.budget.epsilon:g}, δ = {promised:.3g}"]
        if promised != delta:
            lines[0] += f" (promised; the noise is for δ = {delta:.3g}, which follows from the noisy number of records)"
        for stage, share in self.shares.items():
            lines.append(f"  {stage:<8} {share:>4.0%}   ε = {self.get_epsilon(stage):.4g}")
        bins = f"; {self.bins:.0%} of this, measured by ρ, refines default bins" if self.bins else ""
        lines.append(f"  {REST:<8} {1 - sum(self.shares.values()):>4.0%}   and whatever composition saves{bins}")
        return "\n".join(lines)
