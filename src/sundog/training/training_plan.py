"""The plan of a training, fixed before any data is touched: steps, sampling rate, noise.

It must not depend on the exact number of private records: that number is declared, or measured with budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sundog.privacy.calibration import find_noise_multiplier
from sundog.privacy.events import Charge, SampledGaussian
from sundog.privacy.ledger import Budget


@dataclass(frozen=True)
class TrainingPlan:
    """The public numbers of one training.

    Args:
        sample_rate: the probability that a record is in a step.
        steps: the number of steps.
        noise_multiplier: of everything that a step measures, together.
        expected_batch: `sample_rate` × the public number of records; sums are divided by it.
        purpose: of the charges, and the name of the checkpoint; two trainings of one run need two purposes.
    """

    sample_rate: float
    steps: int
    noise_multiplier: float
    expected_batch: float
    purpose: str = "training"

    def __post_init__(self) -> None:
        if not self.purpose.replace(" ", "").replace("-", "").isalnum():
            raise ValueError(f"a purpose must consist of letters, digits, spaces and dashes, not {self.purpose!r}")
        if not 0 < self.sample_rate <= 1:
            raise ValueError(f"sample_rate must be above 0 and at most 1, not {self.sample_rate}")
        if self.steps < 1:
            raise ValueError(f"a training needs at least one step, not {self.steps}")
        if not 0 < self.noise_multiplier < math.inf:
            raise ValueError(f"noise_multiplier must be a positive number, not {self.noise_multiplier}")
        if not 0 < self.expected_batch < math.inf:
            raise ValueError(f"expected_batch must be a positive number, not {self.expected_batch}")

    def make_charge(self, steps: int) -> Charge:
        """Return the charge for a number of steps.

        >>> plan = TrainingPlan(sample_rate=0.01, steps=300, noise_multiplier=1.1, expected_batch=50.0)
        >>> plan.make_charge(plan.steps).count
        300
        """
        event = SampledGaussian(noise_multiplier=self.noise_multiplier, sample_rate=self.sample_rate)
        return Charge(event=event, count=steps, purpose=self.purpose)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return asdict(self)


def plan_training(
    budget: Budget,
    *,
    already: Sequence[Charge] = (),
    records: int,
    batch: int,
    epochs: float,
    purpose: str = "training",
) -> TrainingPlan:
    """Plan a training with the smallest noise that fits into the budget.

    >>> plan = plan_training(Budget(1.0, 1e-5), records=10_000, batch=500, epochs=5)
    >>> plan.steps, plan.sample_rate, plan.expected_batch, round(plan.noise_multiplier, 2)
    (100, 0.05, 500.0, 2.14)

    Args:
        budget: for the training and `already` together.
        already: the charges before it.
        records: the number of records, declared or noisy; never the exact private count.
        batch: the expected batch size; all records, if there are fewer.
        epochs: the expected number of times that each record is used.
        purpose: of the charges.
    """
    records = max(1, records)  # a noisy count may be below 1
    batch = max(1, min(batch, records))
    rate = batch / records
    steps = max(1, math.ceil(epochs * records / batch))
    noise = find_noise_multiplier(
        epsilon=budget.epsilon, delta=budget.delta, sample_rate=rate, steps=steps, already=already
    )
    return TrainingPlan(rate, steps, noise, expected_batch=float(batch), purpose=purpose)
