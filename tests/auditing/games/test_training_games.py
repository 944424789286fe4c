"""Trainings keep their promise, and each fault in one is found by the same game that a correct one passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.auditing.games.broken_training import (
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

from sundog.auditing.games.game import Game, compute_promise_p_value, play_game
from sundog.auditing.games.training_games import TrainingGame, group_layers, make_training_games
from sundog.training.training_plan import TrainingPlan

LEVEL, SURE = 0.05, 1e-4

WHOLE = TrainingGame(TrainingPlan(sample_rate=1.0, steps=1, noise_multiplier=1.0, expected_batch=2.0))
LAYERS = replace(WHOLE, grouping=group_layers)
ONCE = TrainingGame(
    TrainingPlan(sample_rate=0.5, steps=2, noise_multiplier=0.2, expected_batch=1.0), others=torch.zeros(3, 8)
)
SAMPLED = TrainingGame(TrainingPlan(sample_rate=0.5, steps=4, noise_multiplier=2.0, expected_batch=1.0))
RARE = TrainingGame(
    TrainingPlan(sample_rate=0.1, steps=4, noise_multiplier=0.4, expected_batch=1.0), others=torch.zeros(1, 8)
)

pytestmark = pytest.mark.usefixtures("one_thread")


def play(game: TrainingGame, runs: int) -> float:
    """The p-value of a game."""
    return compute_promise_p_value(play_game(Game("training", game.play), runs=runs, seed=0))


FAULTS = [
    ("two thirds of the noise", WHOLE, {"step": WeakStep}, 900),
    ("sensitivity 0", WHOLE, {"step": SilentStep}, 100),
    ("noise divided by the batch size", WHOLE, {"step": NoiseByBatch}, 400),
    ("raw instead of clipped sum", WHOLE, {"policy": sum_raw_gradients}, 150),
    ("no noise in one layer", LAYERS, {"step": SilentLayer}, 100),
    ("the norm of one layer left out", WHOLE, {"step": ForgottenNorm}, 600),
    ("noise in the forward pass", WHOLE, {"step": ForwardNoise}, 250),
    ("noise reused", SAMPLED, {"step": SameNoise}, 150),
    ("shuffled batches accounted as Poisson", ONCE, {"trainer": ShuffledBatches}, 150),
    ("wrong sample rate", ONCE, {"trainer": TwiceAsOften}, 150),
    ("empty batches resampled", RARE, {"trainer": NoEmptyBatches}, 150),
]


CONTROLS = {
    "whole": (WHOLE, 900),
    "layers": (LAYERS, 100),
    "once": (ONCE, 150),
    "sampled": (SAMPLED, 150),
    "rare": (RARE, 150),
}


@pytest.mark.parametrize(("game", "runs"), CONTROLS.values(), ids=CONTROLS)
def test_the_controls_keep_their_promise(game: TrainingGame, runs: int) -> None:
    assert play(game, runs) > LEVEL


@pytest.mark.parametrize(("game", "fault", "runs"), [each[1:] for each in FAULTS], ids=[each[0] for each in FAULTS])
def test_a_fault_is_caught(game: TrainingGame, fault: dict[str, object], runs: int) -> None:
    assert play(replace(game, **fault), runs) < SURE  # type: ignore[arg-type]


@pytest.mark.parametrize("game", make_training_games(noise_multiplier=1.0), ids=lambda game: game.name)
def test_other_trainings_keep_their_promise_too(game: Game) -> None:
    assert compute_promise_p_value(play_game(game, runs=100, seed=1)) > LEVEL
