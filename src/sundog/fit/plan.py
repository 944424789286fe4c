"""Plans before any data is touched: the noise and the steps of a training, or the charges of a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sundog.errors import ArgumentError, SundogError
from sundog.privacy.accountant import METHODS, Method, compute_epsilon
from sundog.privacy.calibration import find_most_steps
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget
from sundog.training.training_plan import TrainingPlan, plan_training

if TYPE_CHECKING:
    from sundog.data.schema import Schema

_LEAST_NOISE, _MOST_NOISE = 1e-9, 1e15  # as multipliers


@dataclass(frozen=True)
class PlannedTraining:
    """A plan of DP-SGD within a budget.

    Args:
        budget: what it may spend.
        records: about how many there are.
        training: its steps, sampling and noise.
        spent: the ε that it spends, by each accounting method.
    """

    budget: Budget
    records: int
    training: TrainingPlan
    spent: Mapping[Method, float]

    @property
    def epochs(self) -> float:
        """The average number of times that each record is used."""
        return self.training.steps * self.training.sample_rate

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "records": self.records,
            "sample_rate": self.training.sample_rate,
            "expected_batch": int(self.training.expected_batch),
            "steps": self.training.steps,
            "epochs": self.epochs,
            "noise_multiplier": self.training.noise_multiplier,
            "spent": dict(self.spent),
        }

    def __str__(self) -> str:
        budget, training, spent = self.budget, self.training, self.spent
        batch, rate, noise = int(training.expected_batch), training.sample_rate, training.noise_multiplier
        return (
            f"budget            ε = {budget.epsilon:g}, δ = {budget.delta:.3g}, {self.records:,} records\n"
            f"sample rate       {rate:.4g}  (each record in each step independently; {batch} expected)\n"
            f"steps             {training.steps:,}  ({self.epochs:.4g} epochs)\n"
            f"noise multiplier  {noise:.4f}  (standard deviation of the noise on the sum ÷ clipping norm)\n"
            f"ε spent           {spent['pld']:.4f} by pld (the claim), {spent['rdp']:.4f} by rdp, "
            f"{spent['moments']:.4f} by the papers' moments\n"
            f"per record        noise of {noise / batch:.4g} × the clipping norm on the average gradient"
        )


@dataclass(frozen=True)
class PlannedModel:
    """The charges of a fit of a model, with a complete schema.

    Args:
        budget: what it may spend.
        model: its name.
        charges: of refining bins and of the model.
    """

    budget: Budget
    model: str
    charges: tuple[Charge, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "model": self.model,
            "charges": [charge.model_dump() for charge in self.charges],
        }

    def __str__(self) -> str:
        from sundog.release.charge_costs import describe_charge

        first = f"budget: ε = {self.budget.epsilon:g}, δ = {self.budget.delta:.3g}; model {self.model}"
        return "\n".join([first, *(f"  {charge.purpose:<40.40} {describe_charge(charge)}" for charge in self.charges)])


def plan_steps(
    budget: Budget, *, records: int, batch: int = 256, epochs: float = 20, noise_multiplier: float | None = None
) -> PlannedTraining:
    """Plan a training: the least noise for the epochs or, with a noise multiplier, the most steps.

    >>> planned = plan_steps(Budget(1.0, 1e-5), records=10_000, batch=500, epochs=5)
    >>> planned.training.steps, round(planned.training.noise_multiplier, 2)
    (100, 2.14)

    Args:
        budget: what the training may spend.
        records: about how many there are.
        batch: the expected size of a batch.
        epochs: how many times each record is used on average, if the noise is to be found.
        noise_multiplier: of each step, if the number of steps is to be found.
    """
    if noise_multiplier is not None and not _LEAST_NOISE <= noise_multiplier <= _MOST_NOISE:
        raise ArgumentError(f"--noise must be between {_LEAST_NOISE:g} and {_MOST_NOISE:g}, not {noise_multiplier:g}")
    if batch > records:
        raise ArgumentError(f"--batch {batch} is larger than --records {records}; lower it")
    if noise_multiplier is None:
        training = plan_training(budget, records=records, batch=batch, epochs=epochs)
    else:
        training = _plan_most_steps(budget, batch / records, batch, noise_multiplier)
    charges = [training.make_charge(training.steps)]
    spent = {method: compute_epsilon(charges, delta=budget.delta, method=method) for method in METHODS}
    return PlannedTraining(budget, records, training, spent)


def _plan_most_steps(budget: Budget, rate: float, batch: int, noise_multiplier: float) -> TrainingPlan:
    steps = find_most_steps(
        noise_multiplier=noise_multiplier, sample_rate=rate, epsilon=budget.epsilon, delta=budget.delta
    )
    if steps == 0:
        raise SundogError(
            f"--noise {noise_multiplier:g} does not allow a single step at ε = {budget.epsilon:g}; raise it"
        )
    return TrainingPlan(rate, steps, noise_multiplier, expected_batch=float(batch))


def plan_charges(
    schema: Schema | str | os.PathLike[str] | Mapping[str, Any],
    budget: Budget,
    *,
    model: str,
    records: int | None = None,
) -> PlannedModel:
    """Plan a fit of a model with a complete schema.

    Args:
        schema: a `Schema`, the path of a schema file, or a dict.
        budget: what the fit may spend.
        model: `auto` or the name of a model.
        records: about how many there are, if the model depends on it.
    """
    from sundog.data.bin_refinement import Refinement  # not above: a training is planned without all this
    from sundog.data.schema import Schema
    from sundog.fit.request import choose_configuration
    from sundog.models.registry import get_model

    where = schema if isinstance(schema, str | os.PathLike) else "schema"
    schema = Schema.of(schema)
    if not schema.complete:
        raise SundogError(f"{where}: columns that are still to be learned cannot be planned; declare them")
    schema = schema.modelled
    configuration = choose_configuration(model, schema, epsilon=budget.epsilon, records=records)
    refinement = Refinement.plan(schema, epsilon=budget.epsilon, delta=budget.delta).charges
    plan = get_model(configuration.name).plan(schema, budget, configuration, already=refinement, records=records)
    return PlannedModel(budget, configuration.name, (*refinement, *plan.charges))
