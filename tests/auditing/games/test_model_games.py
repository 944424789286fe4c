"""Fits of all models keep their promise, and the games find what is broken in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.auditing.games.broken_noise import weaken

from sundog.auditing.games.game import Game, compute_promise_p_value, play_game
from sundog.auditing.games.memory_checkpoint import MemoryCheckpoint
from sundog.auditing.games.model_games import list_model_games, make_model_game, play_model
from sundog.errors import ArgumentError
from sundog.models.independent import independent
from sundog.models.registry import MODELS
from sundog.privacy import mechanisms
from sundog.privacy.ledger import Ledger

LEVEL = 0.05
# The fewest runs with which a fit without noise cannot be mistaken for a correct one, and as many as there is time for.
RUNS = {"independent": 500, "marginals": 50, "rbm": 50, "vae": 30, "gan": 30, "mixture": 50}
FEW = 40

pytestmark = pytest.mark.usefixtures("one_thread")


def play(game: Game, runs: int, seed: int = 0) -> float:
    return compute_promise_p_value(play_game(game, runs=runs, seed=seed))


def test_every_model_has_a_game() -> None:
    assert set(list_model_games()) == set(MODELS) == set(RUNS)
    with pytest.raises(ArgumentError, match="no game for model 'mlp'; choose one of independent, "):
        make_model_game("mlp", epsilon=1.0)


@pytest.mark.parametrize("name", RUNS)
def test_a_correct_fit_keeps_its_promise(name: str) -> None:
    assert play(make_model_game(name, epsilon=4.0), RUNS[name]) > LEVEL


@pytest.mark.parametrize("name", RUNS)
def test_a_fit_without_noise_is_caught(name: str) -> None:
    """Or almost without: that of a sum is a lattice of 10⁻⁶ of it, and a model may not expect none at all."""
    assert play(weaken(make_model_game(name, epsilon=4.0), 1e-3), FEW) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_two_thirds_of_the_noise_are_caught(name: str) -> None:
    game = make_model_game(name, epsilon=4.0)
    runs = 2500 if name == "gan" else 1500  # a part of the direction of its gradient is not known
    assert play(game, runs) > LEVEL
    assert play(weaken(game, 2 / 3), runs) < LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("name", ["independent", "mixture"])
def test_correct_fits_are_seldom_accused(name: str) -> None:
    """At most 5% of 200 audits; `benchmarks/audit_games.py` has all models."""
    game = make_model_game(name, epsilon=4.0)
    assert np.mean([play(game, 40, seed) <= LEVEL for seed in range(200)]) <= 0.05


def test_the_attack_on_columns_gets_nearly_all_there_is() -> None:
    result = play_model("independent", epsilon=4.0, runs=1000)
    assert result.promise == pytest.approx(4.0, abs=0.01)
    assert 0.8 <= result.mu.low / result.promised_mu <= result.tightness <= 1.15
    assert not result.alarm
    assert result.threshold_bound < result.lower_bound <= result.promise


def test_the_exact_number_of_records_in_a_release_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attack does not see it, because all measurements are as noisy as they should be."""
    game = make_model_game("independent", epsilon=1.0)
    assert play(game, 200) > LEVEL
    count = independent.Independent.fit.__func__  # type: ignore[attr-defined]

    def fit(kind: Any, records: Any, *rest: Any) -> Any:
        model = count(kind, records, *rest)
        model.records = len(records)
        return model

    monkeypatch.setattr(independent.Independent, "fit", classmethod(fit))
    assert play(game, 200) < 1e-6
    measurements = replace(game, play=lambda present, ledger: game.play(present, ledger)[:1])
    assert play(measurements, 200) > LEVEL


def test_what_is_measured_twice_for_one_charge_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each marginal is measured twice, and the transcript has the mean."""
    measure = mechanisms.noisy_histograms

    def measure_twice(histograms: Sequence[Any], *, ledger: Ledger) -> list[Any]:
        first = measure(histograms, ledger=ledger)
        second = measure(histograms, ledger=Ledger(epsilon=1e9, delta=0.5, noise=ledger.noise))
        return [(one + other) / 2 for one, other in zip(first, second, strict=True)]

    game = make_model_game("independent", epsilon=4.0)
    monkeypatch.setattr(independent, "noisy_histograms", measure_twice)
    assert play(game, 1200) < 1e-4


def test_a_transcript_keeps_what_a_checkpoint_keeps() -> None:
    transcript = MemoryCheckpoint()
    assert [transcript.load_tensors("a"), transcript.load_bytes("a"), transcript.load_json("a")] == [None] * 3
    transcript.save_tensors("a", {"x": np.ones(2)})
    transcript.save_bytes("a", b"bytes")
    transcript.save_json("a", {"x": 1})
    found = transcript.load_tensors("a")
    assert found is not None
    assert found["x"].tolist() == [1, 1]
    assert transcript.load_bytes("a") == b"bytes"
    assert transcript.load_json("a", "x") == {"x": 1}
