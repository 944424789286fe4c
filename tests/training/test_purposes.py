"""Several trainings of one run: each has draws of its own, and says which it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.training.toy import DELTA, EPSILON, PLAN, collect_tensors, make_toy
from torch import Tensor

from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource

OTHER = replace(PLAN, purpose="other")


def make_seeded_ledger() -> Ledger:
    return Ledger(epsilon=EPSILON, delta=DELTA, noise=NoiseSource.seeded(3))


def test_each_training_of_a_run_has_noise_of_its_own() -> None:
    """Seeded as it may be: the same batches and the same noise twice would be no two measurements."""
    ends = []
    for plan in (PLAN, PLAN, OTHER):
        trained = make_toy(make_seeded_ledger(), plan=plan)
        trained.trainer.run()
        ends.append(collect_tensors(trained))
    assert ends[0] == ends[1]
    assert ends[0] != ends[2]


def test_no_two_draws_of_a_run_are_the_same() -> None:
    ledger = make_seeded_ledger()
    drawn = [
        make_toy(ledger, plan=plan).trainer._derive_noise(name, step).draw_seed()
        for plan in (PLAN, OTHER)
        for name in ("batch", "gradient", "loss")
        for step in range(PLAN.steps)
    ]
    assert len(set(drawn)) == len(drawn) == 2 * 3 * PLAN.steps
    assert (
        make_toy(ledger).trainer._derive_noise("batch", 0).draw_seed() == drawn[0]
    )  # and each is what it was, after an interruption


def test_what_losses_draw_hangs_on_more_than_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which draws an example gets depends on who else is in the batch: nobody may be able to draw them again."""
    monkeypatch.setattr(NoiseSource, "draw_seed", lambda _: 5)
    trained = make_toy(Ledger(epsilon=EPSILON, delta=DELTA))
    loss, drawn = trained.trainer.step.private_loss, []

    def noted(batch: Any) -> Tensor:
        drawn.append(float(torch.rand(())))
        return loss(batch)

    trained.trainer.step.private_loss = noted
    trained.trainer.run()
    assert len(set(drawn)) == len(drawn) >= PLAN.steps


def test_batches_of_two_trainings_are_not_the_same() -> None:
    batches = [
        [make_toy(make_seeded_ledger(), plan=plan).trainer._draw(step).tolist() for step in range(5)]
        for plan in (PLAN, OTHER)
    ]
    assert all(first != second for first, second in zip(*batches, strict=True))


def test_it_says_which_training_of_a_run_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sundog.training.progress_messages._INTERVAL", 0.0)
    said: list[str] = []
    make_toy(make_seeded_ledger(), plan=OTHER, progress=lambda text, _: said.append(text)).trainer.run()
    assert len(said) == PLAN.steps + 1
    assert all(text.startswith("other: step ") for text in said)
    assert said[-1].startswith("other: step 12 of 12, ε ≈ ")
