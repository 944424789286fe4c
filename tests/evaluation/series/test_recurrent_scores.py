"""Scores by recurrent networks, for processes whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.evaluation.series.days import Floats

from sundog.evaluation.series import recurrent_scores as series_models
from sundog.evaluation.series.recurrent_scores import measure_discriminative_score, measure_predictive_score


def autoregressive(n: int, seed: int, *, memory: float = 0.9, length: int = 12) -> Floats:
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1, (n, length))
    values[:, 0] /= math.sqrt(1 - memory**2)
    for place in range(1, length):
        values[:, place] += memory * values[:, place - 1]
    return values


def test_series_of_the_same_kind_are_not_told_apart() -> None:
    found = measure_discriminative_score(autoregressive(1000, 0), autoregressive(1500, 1), np.random.default_rng(0))
    assert found.low == 0.0
    assert found.value < 0.06


def test_series_with_the_same_values_in_another_order_are_told_apart() -> None:
    real, other = (autoregressive(1000, seed, length=24) for seed in (0, 1))
    found = measure_discriminative_score(
        real, np.random.default_rng(0).permuted(other, axis=1), np.random.default_rng(0)
    )
    assert found.value > 0.45
    assert found.low <= found.value <= found.high <= 0.5


def test_a_forecaster_that_learned_from_the_right_process_is_as_good_as_can_be() -> None:
    """The best forecast of x is 0.5 times the last value, and the mean absolute error that of normal noise: √(2/π)."""
    real = autoregressive(1000, 0, memory=0.5)
    best = math.sqrt(2 / math.pi)
    right, wrong = (
        measure_predictive_score(autoregressive(1500, 1, memory=memory), real, np.random.default_rng(0))
        for memory in (0.5, -0.9)
    )
    assert right.value == pytest.approx(best, rel=0.05)
    assert wrong.low > 1.3 * best


@pytest.mark.usefixtures("quick")
def test_scores_leave_torch_as_it_was_and_repeat() -> None:
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    torch.set_num_threads(2)
    real, synthetic = autoregressive(60, 0), autoregressive(60, 1)
    scores = [
        (
            measure_discriminative_score(real, synthetic, np.random.default_rng(seed)),
            measure_predictive_score(synthetic, real, np.random.default_rng(seed)),
        )
        for seed in (3, 3, 4)
    ]
    assert scores[0] == scores[1]
    assert scores[0] != scores[2]
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)


def test_long_series_are_told_apart_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_models, "STEPS", 30)
    slow, fast = (autoregressive(100, 0, memory=memory, length=400) for memory in (0.95, 0.0))
    assert measure_discriminative_score(slow, fast, np.random.default_rng(0)).value > 0.45
