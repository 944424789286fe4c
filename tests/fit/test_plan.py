"""Plans before any data: the noise, the steps and the charges are those that a fit then has."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sundog.data.schema import Schema
from sundog.errors import ArgumentError, SundogError
from sundog.fit.plan import plan_charges, plan_steps
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.ledger import Budget
from sundog.training.training_plan import plan_training

BUDGET = Budget(1.0, 1e-5)
SCHEMA = Schema.from_dict({"columns": {"n": {"type": "integer", "min": 0, "max": 9}, "b": {"type": "boolean"}}})


def test_the_noise_for_some_epochs_is_that_of_a_training() -> None:
    planned = plan_steps(BUDGET, records=10_000, batch=500, epochs=5)
    assert planned.training == plan_training(BUDGET, records=10_000, batch=500, epochs=5)
    assert planned.epochs == pytest.approx(5)
    assert 0.99 < planned.spent["pld"] <= 1.0 <= planned.spent["moments"]


def test_the_steps_for_some_noise_are_the_most() -> None:
    training = plan_steps(BUDGET, records=1000, batch=1000, noise_multiplier=20.0).training
    assert training.steps == 28
    assert (
        compute_epsilon([training.make_charge(28)], delta=1e-5)
        <= 1.0
        < compute_epsilon([training.make_charge(29)], delta=1e-5)
    )


@pytest.mark.parametrize("noise", [0.0, -1.0, 1e20])
def test_an_impossible_noise_is_refused(noise: float) -> None:
    with pytest.raises(ArgumentError, match="--noise must be between"):
        plan_steps(BUDGET, records=1000, batch=10, noise_multiplier=noise)


def test_what_allows_no_step_and_a_batch_of_more_than_all_are_refused() -> None:
    with pytest.raises(SundogError, match="does not allow a single step"):
        plan_steps(Budget(0.01, 1e-5), records=100, batch=10, noise_multiplier=0.1)
    with pytest.raises(ArgumentError, match="--batch 1000 is larger than --records 100"):
        plan_steps(BUDGET, records=100, batch=1000)


def test_the_planned_charges_are_those_of_a_fit(tmp_path: Path) -> None:
    SCHEMA.save(tmp_path / "s.yaml")
    planned = plan_charges(tmp_path / "s.yaml", BUDGET, model="independent")
    data = {"n": np.arange(300) % 10, "b": np.arange(300) % 2 == 0}
    release = Synthesizer("independent", epsilon=1.0, delta=1e-5).fit(data, SCHEMA).release_
    assert list(planned.charges) == list(release.certificate.charges)
    assert planned == plan_charges(SCHEMA, BUDGET, model="independent")
    assert "marginal of n" in str(planned)
    assert json.loads(json.dumps(planned.to_dict()))["model"] == "independent"


def test_columns_to_be_learned_cannot_be_planned() -> None:
    schema = Schema.from_dict({"columns": {"n": {"type": "integer", "learn": True}}})
    with pytest.raises(SundogError, match="schema: cannot plan columns with `learn: true`"):
        plan_charges(schema, BUDGET, model="independent")
