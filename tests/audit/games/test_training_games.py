"""Trainings keep their promise, and each fault in one is found by the same game that a correct one passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.audit.games.broken_training import (
    ForwardNoise,
    NoEmptyBatches,
    NoiseByBatch,
    SameNoise,
    ShuffledBatches,
    SilentStep,
    TwiceAsOften,
    WeakStep,
    sum_raw_gradients,
)
from tests.training.broken import ForgottenNorm, SilentLayer

from sundog.audit.games.game import Game, GameResult, run_game
from sundog.audit.games.training_games import TrainingGame, group_layers
from sundog.training.training_plan import TrainingPlan

SURE = 1e-6

WHOLE = TrainingGame(TrainingPlan(sample_rate=1.0, steps=1, noise_multiplier=1.0, expected_batch=2.0))
LAYERS = replace(WHOLE, grouping=group_layers)
ONCE = TrainingGame(
    TrainingPlan(sample_rate=0.5, steps=2, noise_multiplier=0.3, expected_batch=1.0), others=torch.zeros(3, 8)
)
SAMPLED = TrainingGame(TrainingPlan(sample_rate=0.5, steps=4, noise_multiplier=2.0, expected_batch=1.0))
RARE = TrainingGame(
    TrainingPlan(sample_rate=0.1, steps=4, noise_multiplier=0.4, expected_batch=1.0), others=torch.zeros(1, 8)
)

pytestmark = pytest.mark.usefixtures("one_thread")


def play(game: TrainingGame, runs: int) -> GameResult:
    return run_game(Game("training", game.play), runs=runs, seed=0)


FAULTS = [
    ("two thirds of the noise", WHOLE, {"step": WeakStep}, 1500),
    ("sensitivity 0", WHOLE, {"step": SilentStep}, 100),
    ("noise divided by the batch size", WHOLE, {"step": NoiseByBatch}, 400),
    ("raw instead of clipped sum", WHOLE, {"policy": sum_raw_gradients}, 150),
    ("no noise in one layer", LAYERS, {"step": SilentLayer}, 100),
    ("the norm of one layer left out", WHOLE, {"step": ForgottenNorm}, 1000),
    ("noise in the forward pass", WHOLE, {"step": ForwardNoise}, 300),
    ("noise reused", SAMPLED, {"step": SameNoise}, 200),
    ("shuffled batches accounted as Poisson", ONCE, {"trainer": ShuffledBatches}, 200),
    ("wrong sample rate", ONCE, {"trainer": TwiceAsOften}, 200),
    ("empty batches resampled", RARE, {"trainer": NoEmptyBatches}, 200),
]


@pytest.mark.parametrize(("game", "fault", "runs"), [each[1:] for each in FAULTS], ids=[each[0] for each in FAULTS])
def test_a_fault_is_caught_and_its_control_is_not(game: TrainingGame, fault: dict[str, object], runs: int) -> None:
    assert not play(game, runs).alarm
    broken = play(replace(game, **fault), runs)  # type: ignore[arg-type]
    assert broken.alarm
    assert broken.p_value < SURE
