"""Games for every mechanism and model: how much of the claim they prove, and how often they accuse a correct one.

python benchmarks/audit_games.py [--quick] [--json FILE] [--only NAME ...] [--epsilon E ...]

"mu": the Gaussian estimate of μ, beside that of the claim, for mechanisms with Gaussian noise. "low" is the lower end
of its 95% interval. "epsilon": the lower bound at δ = 1e-5 that the whole curve proves, beside the claim. "one
threshold": the one that Clopper and Pearson's bounds prove at one threshold, from the same runs. "alarms": the share of
audits of correct mechanisms that end with an alarm, beside the level.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch
from report import Row, parse_arguments, publish

from sundog.auditing.games.game import Game, GameResult, compute_promise_p_value, play_game, run_game
from sundog.auditing.games.mechanism_games import make_mechanism_games
from sundog.auditing.games.model_games import list_model_games, make_model_game
from sundog.auditing.games.publication_game import make_publication_game
from sundog.auditing.games.training_games import make_training_games
from sundog.auditing.tradeoff_curve import compute_gaussian_mu

DELTA = 1e-5
SLOW = {"marginals", "rbm", "vae", "gan"}  # tens of milliseconds a fit
PURE = {"noisy_count", "exponential_mechanism", "noisy_max", "noisy_quantiles", "noisy_extent", "stable_set"}
BOTH = {"gaussian_sum", "DP-SGD step", "independent", "marginals"}  # that are also played at ε = 1
RUNS = {4.0: 1000, 1.0: 5000}
AUDITS, FEW, FEWEST = 200, 60, 20  # correct audits, and the runs of each: of slow fits as few as a game can have
LEVEL = 0.05


@dataclass(frozen=True)
class Contest:
    """A game at one ε."""

    game: Game
    epsilon: float


def list_contests() -> list[Contest]:
    """Return all games at ε = 4, and some at ε = 1; the pure mechanisms have ε = 1 in both."""
    contests = []
    for epsilon in RUNS:
        sigma = 1 / compute_gaussian_mu(epsilon=epsilon, delta=DELTA)
        games = make_mechanism_games(noise_multiplier=sigma) + make_training_games(noise_multiplier=sigma)
        games += [make_publication_game(scale=2 * sigma)]
        games += [make_model_game(name, epsilon=epsilon) for name in list_model_games()]
        contests += [Contest(game, epsilon) for game in games if epsilon == max(RUNS) or game.name in BOTH]
    return contests


def measure_tightness(contest: Contest, *, quick: bool) -> list[Row]:
    runs = 40 if quick else RUNS[contest.epsilon]
    started = time.process_time()
    result = run_game(contest.game, runs=runs, seed=0, delta=DELTA)
    each = (time.process_time() - started) / runs
    shares = " ".join(f"{mu / result.promised_mu:.3f}" for mu in (result.mu.value, result.mu.low, result.mu.high))
    print(f"{result.name}, {runs} runs, {1000 * each:.1f} ms each: {result.verdict}; mu / claim {shares}", flush=True)
    return make_rows(result, f"{result.name} e={contest.epsilon:g}")


def make_rows(result: GameResult, label: str) -> list[Row]:
    rows = [
        Row(f"epsilon {label}", result.lower_bound, "", "the claim", result.promise),
        Row(f"one threshold {label}", result.threshold_bound, "", "the claim", result.promise),
    ]
    if result.name not in PURE:
        rows.append(Row(f"mu {label}", result.mu.value, "", "the claim", result.promised_mu))
        rows.append(Row(f"mu, low {label}", result.mu.low, "", "the claim", result.promised_mu))
    return rows


def count_alarms(contest: Contest, *, quick: bool) -> Row:
    runs = FEWEST if contest.game.name in SLOW else FEW
    audits = 2 if quick else AUDITS
    p_values = [compute_promise_p_value(play_game(contest.game, runs=runs, seed=1 + seed)) for seed in range(audits)]
    return Row(
        f"alarms {contest.game.name}, {audits} x {runs}",
        float(np.mean(np.array(p_values) <= LEVEL)),
        "",
        "level",
        LEVEL,
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", help="names of games; all by default")
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(RUNS), help="4, 1 or both")
    parser.add_argument("--no-alarms", action="store_true", help="leave out the audits of correct mechanisms")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    torch.set_num_threads(1)
    contests = [
        each
        for each in list_contests()
        if each.epsilon in options.epsilon and (not options.only or each.game.name in options.only)
    ]
    rows = []
    for contest in contests:
        rows += measure_tightness(contest, quick=options.quick)
        if contest.epsilon == max(RUNS) and not options.no_alarms:
            rows.append(count_alarms(contest, quick=options.quick))
    publish(rows, options)


if __name__ == "__main__":
    main()
