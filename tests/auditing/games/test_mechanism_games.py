"""Mechanisms keep their promise, and the same games find what is broken in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from tests.auditing.games.broken_noise import charge_less, paid_once, weaken

from sundog.auditing.games.game import Game, compute_promise_p_value, play_game, run_game
from sundog.auditing.games.mechanism_games import make_mechanism_games
from sundog.auditing.games.publication_game import make_publication_game
from sundog.auditing.tradeoff_curve import scale_charges
from sundog.evaluation import publication
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import Histogram, gaussian_sum, sums
from sundog.privacy.mechanisms.counts import compute_histogram_charge

LEVEL, SURE = 0.05, 1e-6
RUNS = 1500
GAMES = {game.name: game for game in make_mechanism_games(noise_multiplier=1.0)}
SUM = GAMES["gaussian_sum"]
LOOSE = {"exponential_mechanism", "noisy_quantiles"}  # whose worst pairs lose less than is charged

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def play(game: Game, runs: int = RUNS) -> float:
    return compute_promise_p_value(play_game(game, runs=runs, seed=1))


@pytest.mark.parametrize("name", GAMES)
def test_a_mechanism_keeps_its_promise_and_not_a_smaller_one(name: str) -> None:
    """Noise at two thirds is a promise that is too small; it is the same runs that are judged."""
    scores = play_game(GAMES[name], runs=RUNS, seed=1)
    assert compute_promise_p_value(scores) > LEVEL
    less = tuple(scale_charges(scores.charges, 1 / 8 if name in LOOSE else 2 / 3))
    assert compute_promise_p_value(replace(scores, charges=less)) < 1e-2


def test_the_promise_is_what_the_ledger_was_charged() -> None:
    assert run_game(SUM, runs=100, seed=1).promise == pytest.approx(4.377, abs=0.01)
    assert run_game(charge_less(SUM), runs=100, seed=1).promise == pytest.approx(2.75, abs=0.01)


@pytest.mark.parametrize(("factor", "runs"), [(2 / 3, 2500), (0.0, 100)], ids=["two thirds", "sensitivity 0"])
def test_noise_that_is_too_small_is_caught(factor: float, runs: int) -> None:
    assert play(weaken(SUM, 1.0), runs) > LEVEL
    assert play(weaken(SUM, factor), runs) < SURE


def test_a_raw_sum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def round_only(rows: Floats, *, clip_norm: float, step: float, slack: float) -> Floats:
        return np.asarray(np.rint(rows / step))

    assert play(SUM, 100) > LEVEL
    monkeypatch.setattr(sums, "round_to_lattice", round_only)
    assert play(SUM, 100) < SURE


def test_a_nan_that_escapes_clipping_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def play_nan(present: bool, ledger: Ledger) -> Sequence[float]:
        rows = np.array([[0.1, 0.2], [np.nan, 1.0]][: 1 + present])
        total = gaussian_sum(rows, clip_norm=1.0, noise_multiplier=1.0, ledger=ledger, purpose="test")
        return [float(np.abs(total).max())]

    def clip_numbers_only(rows: Floats, *, clip_norm: float, step: float, slack: float) -> Floats:
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        whole: Floats = np.rint(rows * np.minimum(1.0, clip_norm / norms) / step)
        return np.nan_to_num(whole, nan=2.0**40)

    game = Game("a record that is not a number", play_nan)
    assert play(game, 100) > LEVEL
    monkeypatch.setattr(sums, "round_to_lattice", clip_numbers_only)
    assert play(game, 100) < SURE


def test_a_budget_that_is_spent_twice_is_caught() -> None:
    """One charge pays for two measurements; two charges pay for them."""

    def measure(present: bool, ledger: Ledger) -> float:
        return SUM.play(present, ledger)[0]

    def play_once(present: bool, ledger: Ledger) -> Sequence[float]:
        return [sum(paid_once(lambda paying: measure(present, paying))(ledger))]

    def play_twice(present: bool, ledger: Ledger) -> Sequence[float]:
        return [measure(present, ledger) + measure(present, ledger)]

    assert play(Game("charged twice", play_twice), 3000) > LEVEL
    assert play(Game("charged once", play_once), 3000) < SURE


def test_noise_that_is_reused_is_caught() -> None:
    """The difference of two histograms with the same noise has none."""

    def make_game(*, is_reused: bool) -> Game:
        def play_pair(present: bool, ledger: Ledger) -> Sequence[float]:
            counts = np.zeros((2, 3), np.int64)
            counts[0, 0] = present
            ledger.spend(*(Histogram(each, 2.0, "test").charge for each in counts))
            noise = [ledger.noise.discrete_gaussian(sigma=2.0, size=3) for _ in counts]
            first, second = counts + np.array([noise[0], noise[0 if is_reused else 1]])
            return [float((first - second)[0])]

        return Game("two histograms", play_pair)

    assert play(make_game(is_reused=False), 100) > LEVEL
    assert play(make_game(is_reused=True), 100) < SURE


def test_published_figures_without_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure_exactly(histograms: Sequence[Histogram], *, ledger: Ledger) -> list[Integers]:
        for each in histograms:
            ledger.spend(
                compute_histogram_charge(
                    sigma=each.sigma, purpose=each.purpose, touched=each.touched, contribution=each.contribution
                )
            )
        return [each.counts for each in histograms]

    game = make_publication_game(scale=2.0)
    assert play(game, 200) > LEVEL
    monkeypatch.setattr(publication, "noisy_histograms", measure_exactly)
    assert play(game, 100) < SURE
