"""What may be shown: charged before it is measured, noisy by as much as was paid for, and close to the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, DataError
from sundog.evaluate.publish import Answers, publish
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 9},
            "sex": {"type": "categorical", "values": ["f", "m"]},
        }
    }
)


def records(count: int, seed: int, share: float = 0.5) -> Records:
    rng = np.random.default_rng(seed)
    codes = {"age": rng.integers(0, 10, count).astype(np.uint8), "sex": (rng.random(count) < share).astype(np.uint8)}
    return Records(SCHEMA, codes, count)


def test_the_ledger_pays_exactly_what_was_asked_for() -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    publish(records(1000, 0), records(1000, 1), None, epsilon=0.5, ledger=ledger)
    assert 0.495 < ledger.spent() <= 0.5
    purposes = {charge.purpose for charge in ledger.charges}
    assert purposes == {"published marginal of age", "published marginal of sex"}


def test_a_ledger_that_cannot_pay_refuses_before_anything_is_measured() -> None:
    ledger = Ledger(epsilon=0.1, delta=1e-6)
    with pytest.raises(BudgetExceededError):
        publish(records(1000, 0), records(1000, 1), None, epsilon=0.5, ledger=ledger)
    assert not ledger.charges


def test_many_records_give_nearly_the_true_figures() -> None:
    real, fake = records(200_000, 0, share=0.5), records(200_000, 1, share=0.7)
    truth = [
        0.5
        * np.abs(np.bincount(real.codes[name], minlength=size) - np.bincount(fake.codes[name], minlength=size)).sum()
        for name, size in (("age", 10), ("sex", 2))
    ]
    tests = Answers({"utility.tstr.forest.accuracy": 0.8125}, 100_000, 1)
    found = publish(real, fake, tests, epsilon=1.0, ledger=Ledger(epsilon=1.0, delta=1e-6))
    distance = found["fidelity.tvd_1way"]
    assert distance.value == pytest.approx(np.mean(truth) / 200_000, abs=2e-3)
    assert distance.low <= np.mean(truth) / 200_000 <= distance.high
    accuracy = found["utility.tstr.forest.accuracy"]
    assert accuracy.value == pytest.approx(0.8125, abs=2e-3)
    assert accuracy.low < 0.8125 < accuracy.high


def test_the_interval_holds_what_the_noise_may_have_done() -> None:
    """At a small ε nineteen of twenty intervals, or more, hold the figure without noise."""
    real, fake = records(500, 0), records(500, 1, share=0.8)
    truth = np.mean(
        [
            0.5 * np.abs(np.bincount(real.codes[n], minlength=k) - np.bincount(fake.codes[n], minlength=k)).sum() / 500
            for n, k in (("age", 10), ("sex", 2))
        ]
    )
    inside = 0
    for seed in range(40):
        ledger = Ledger(epsilon=0.5, delta=1e-6, noise=NoiseSource.seeded(seed))
        found = publish(real, fake, None, epsilon=0.5, ledger=ledger)["fidelity.tvd_1way"]
        inside += found.low <= truth <= found.high
    assert inside >= 36


def test_figures_are_noisy_by_as_much_as_is_paid_for() -> None:
    """The same accuracy a hundred times: its spread is that of the discrete Gaussian that was charged."""
    tests = Answers({"utility.tstr.forest.accuracy": 0.5}, 1000, 1)
    shares, sigma = [], 0.0
    for seed in range(100):
        ledger = Ledger(epsilon=1.0, delta=1e-6, noise=NoiseSource.seeded(seed))
        found = publish(records(100, 0), records(100, 1), tests, epsilon=1.0, ledger=ledger)
        shares.append(found["utility.tstr.forest.accuracy"].value)
        charge = next(charge for charge in ledger.charges if "accuracy" in charge.purpose)
        sigma = float(getattr(charge.event, "sigma"))  # noqa: B009  other events have none
    expected = sigma / 1000 / np.sqrt(2)  # of right / (right + wrong), both noisy, at a half
    assert expected * 0.75 < np.std(shares) < expected * 1.3


def test_there_must_be_something_to_publish(tmp_path: Path) -> None:
    schema = Schema.from_dict({"columns": {"load": {"type": "series", "length": 2, "min": 0, "max": 1}}})
    only = Records(schema, {"load": np.zeros((30, 2), np.uint32)}, 30)
    with pytest.raises(DataError, match="publish"):
        publish(only, only, None, epsilon=1.0, ledger=Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-6))
