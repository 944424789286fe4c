"""The protocol of games: few false alarms, and a promise that follows from the charges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sundog.auditing.games.game import (
    Game,
    Scores,
    compute_promise_p_value,
    count_all_errors,
    play_game,
    run_game,
)
from sundog.auditing.games.mechanism_games import make_mechanism_games
from sundog.privacy.events import Charge, Gaussian
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import noisy_count

SUM = make_mechanism_games(noise_multiplier=1.0)[0]


def count(present: bool, ledger: Ledger) -> Sequence[float]:
    return [noisy_count(10 + present, epsilon=1.0, ledger=ledger, purpose="test")]


@pytest.mark.parametrize("game", [SUM, Game("a count", count)], ids=["a Gaussian", "a pure mechanism"])
def test_correct_mechanisms_are_seldom_accused(game: Game) -> None:
    """At most 5% of 200 audits, each of 60 runs."""
    p_values = np.array([compute_promise_p_value(play_game(game, runs=60, seed=seed)) for seed in range(200)])
    assert (p_values <= 0.05).mean() <= 0.05
    assert (p_values <= 0.5).any()  # they could have been


def test_many_attacks_that_guess_are_corrected_for() -> None:
    """Twenty attacks on noise: the best of them would often look like one."""
    rng = np.random.default_rng(0)
    charges = (Charge(event=Gaussian(noise_multiplier=100.0), purpose="test"),)
    alarms = 0
    for _ in range(40):
        scores = Scores(rng.normal(size=(50, 20)), rng.normal(size=(50, 20)), charges)
        alarms += compute_promise_p_value(scores) <= 0.05
    assert alarms <= 2


def test_a_game_is_repeatable_and_its_runs_differ() -> None:
    first, again, other = (play_game(SUM, runs=40, seed=seed) for seed in (1, 1, 2))
    assert (first.absent == again.absent).all()
    assert (first.present == again.present).all()
    assert not (first.absent == other.absent).any()
    assert len(np.unique(np.r_[first.absent, first.present])) == 40


def test_what_is_charged_must_not_depend_on_the_record() -> None:
    def play(present: bool, ledger: Ledger) -> Sequence[float]:
        return [noisy_count(10, epsilon=1.0 + present, ledger=ledger, purpose="test")]

    with pytest.raises(RuntimeError, match="depends on the data"):
        run_game(Game("two prices", play), runs=40, seed=0)


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 20"):
        run_game(SUM, runs=10, seed=0)


def test_scores_that_are_not_numbers_are_the_highest() -> None:
    def play(present: bool, ledger: Ledger) -> Sequence[float]:
        return [float("nan") if present else count(present, ledger)[0]]

    def play_count(present: bool, ledger: Ledger) -> Sequence[float]:
        noisy_count(10, epsilon=1.0, ledger=ledger, purpose="test")
        return play(present, Ledger(epsilon=1e9, delta=0.5, noise=ledger.noise))

    assert run_game(Game("not a number", play_count), runs=100, seed=0).alarm


def test_thresholds_are_chosen_on_other_runs_than_errors_are_counted_on() -> None:
    scores = Scores(np.arange(100.0)[:, None], np.arange(100.0)[:, None], ())
    assert {(errors.absent, errors.present) for errors in count_all_errors(scores)} == {(80, 80)}


def test_a_result_says_what_it_shows() -> None:
    good, bad = run_game(SUM, runs=100, seed=0), run_game(Game("known", lambda p, _: [float(p)]), runs=100, seed=0)
    assert "consistent with ε = 4.38" in good.verdict
    assert good.lower_bound <= good.promise
    assert bad.alarm
    assert "broken" in bad.verdict


def test_progress_goes_from_none_to_all() -> None:
    told: list[float] = []
    run_game(SUM, runs=100, seed=0, progress=lambda stage, done: told.append(done))
    assert told == sorted(told)
    assert told[0] == 0
    assert told[-1] == 1
