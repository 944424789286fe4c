"""Games for every mechanism and model: how much of the claim they prove, and how often they accuse a correct one.

python benchmarks/audit_games.py [--quick] [--json FILE] [--only NAME ...] [--epsilon E ...] [--jobs N] [--keep FILE]

"mu": the Gaussian estimate of μ, beside that of the claim, for mechanisms with Gaussian noise. "low" is the lower end
of its 95% interval. "epsilon": the lower bound at δ = 1e-5 that the whole curve proves, beside the claim. "one
threshold": the one that Clopper and Pearson's bounds prove at one threshold, from the same runs. "alarms": the share of
audits of correct mechanisms that end with an alarm, beside the level. "simulated": means over games whose scores are
drawn from the two normal distributions of the claim, so that nothing is lost by the attack.

The runs are cut into pieces, which `--jobs` processes take in turn. Each piece has a seed of its own, so that figures
do not depend on the number of processes. `--keep` is a file with the figures of finished games: a run that was
interrupted goes on from there.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import Figures, Kept, Row, parse_arguments, publish

from sundog.auditing.games.game import Game, GameResult, Scores, compute_promise_p_value, judge_scores, play_game
from sundog.auditing.games.mechanism_games import make_mechanism_games
from sundog.auditing.games.model_games import list_model_games, make_model_game
from sundog.auditing.games.publication_game import make_publication_game
from sundog.auditing.games.training_games import make_training_games
from sundog.auditing.tradeoff_curve import compute_gaussian_mu
from sundog.privacy.events import Charge, Gaussian

DELTA = 1e-5
PURE = {"noisy_count", "exponential_mechanism", "noisy_max", "noisy_quantiles", "noisy_extent", "stable_set"}
BOTH = {"gaussian_sum", "DP-SGD step", "independent", "marginals"}  # that are also played at ε = 1
RUNS = {4.0: 1000, 1.0: 5000}
PIECE = 100  # runs
AUDITS, FEW = 200, 60  # correct audits, which have the seeds from 1 to 200, and the runs of each
TOGETHER = 4  # audits in a piece
LEVEL = 0.05
SIMULATED, GAMES = ((4.0, 1000), (4.0, 5000), (1.0, 5000)), 20  # ε and runs; games of each

Submit = Callable[..., Future[Any]]


@dataclass(frozen=True)
class Contest:
    """A game at one ε."""

    name: str
    epsilon: float

    def __str__(self) -> str:
        return f"{self.name} e={self.epsilon:g}"


@functools.cache
def make_games(epsilon: float) -> dict[str, Game]:
    """Return all games at this ε, except that pure mechanisms have ε = 1."""
    sigma = 1 / compute_gaussian_mu(epsilon=epsilon, delta=DELTA)
    games = make_mechanism_games(noise_multiplier=sigma) + make_training_games(noise_multiplier=sigma)
    games += [make_publication_game(scale=2 * sigma)]
    games += [make_model_game(name, epsilon=epsilon) for name in list_model_games()]
    return {game.name: game for game in games}


def list_contests(options: argparse.Namespace) -> list[Contest]:
    """Return the games that were asked for: all at ε = 4, and some at ε = 1."""
    return [
        Contest(name, epsilon)
        for epsilon in options.epsilon
        for name in make_games(epsilon)
        if (epsilon == max(RUNS) or name in BOTH) and (not options.only or name in options.only)
    ]


# --- in a process of its own ---------------------------------------------------------------------------------------


def play(contest: Contest, runs: int, seed: int) -> tuple[Scores, float]:
    """Return the scores of a piece of a game, and its CPU seconds."""
    started = time.process_time()
    scores = play_game(make_games(contest.epsilon)[contest.name], runs=runs, seed=seed)
    return scores, time.process_time() - started


def audit(contest: Contest, runs: int, seeds: range) -> list[float]:
    """Return the p-values of audits."""
    game = make_games(contest.epsilon)[contest.name]
    return [compute_promise_p_value(play_game(game, runs=runs, seed=seed)) for seed in seeds]


def simulate(epsilon: float, runs: int, seed: int) -> Figures:
    """Return what simulated scores of a Gaussian mechanism show."""
    mu, half = compute_gaussian_mu(epsilon=epsilon, delta=DELTA), runs // 2
    rng = np.random.default_rng(seed)
    absent, present = rng.standard_normal((half, 1)), mu + rng.standard_normal((half, 1))
    charge = Charge(event=Gaussian(noise_multiplier=1 / mu), count=1, purpose="simulated")
    result = judge_scores("simulated", Scores(absent, present, (charge,)), delta=DELTA)
    return {
        "promise": result.promise,
        "epsilon": result.lower_bound,
        "one threshold": result.threshold_bound,
        "promised mu": result.promised_mu,
        "mu": result.mu.value,
        "mu, low": result.mu.low,
    }


# --- here ----------------------------------------------------------------------------------------------------------


def measure_tightness(contest: Contest, submit: Submit, *, quick: bool) -> Figures:
    """Play a game in pieces, and return what all of them show together."""
    runs = 40 if quick else RUNS[contest.epsilon]
    each = min(runs, PIECE)
    seeds = range(AUDITS + 1, AUDITS + 1 + runs // each)
    pieces = [done.result() for done in [submit(play, contest, each, seed) for seed in seeds]]
    found, seconds = [scores for scores, _ in pieces], sum(taken for _, taken in pieces)
    if len({scores.charges for scores in found}) > 1:
        raise RuntimeError(f"{contest}: charges differ between runs")
    joined = Scores(
        np.concatenate([scores.absent for scores in found]),
        np.concatenate([scores.present for scores in found]),
        found[0].charges,
    )
    result: GameResult = submit(judge_scores, contest.name, joined, delta=DELTA).result()
    shares = " ".join(f"{mu / result.promised_mu:.3f}" for mu in (result.mu.value, result.mu.low, result.mu.high))
    print(
        f"{contest}, {runs} runs, {1000 * seconds / runs:.1f} ms each: {result.verdict}; mu / claim {shares}",
        flush=True,
    )
    return {
        "promise": result.promise,
        "epsilon": result.lower_bound,
        "one threshold": result.threshold_bound,
        "promised mu": result.promised_mu,
        "mu": result.mu.value,
        "mu, low": result.mu.low,
        "p-value": result.p_value,
    }


def count_alarms(contest: Contest, submit: Submit, *, quick: bool) -> Figures:
    """Audit a correct mechanism many times, and return the share of alarms."""
    audits = 2 if quick else AUDITS
    pieces = [range(first, min(first + TOGETHER, audits + 1)) for first in range(1, audits + 1, TOGETHER)]
    done = [submit(audit, contest, FEW, seeds) for seeds in pieces]
    p_values = np.concatenate([each.result() for each in done])
    alarms = int((p_values <= LEVEL).sum())
    print(f"{contest}: {alarms} of {audits} audits of {FEW} runs end with an alarm", flush=True)
    return {"alarms": alarms / audits}


def make_rows(contest: Contest, kind: str, figures: Figures) -> list[Row]:
    """Return the rows of a game."""
    if kind == "alarms":
        return [Row(f"alarms {contest}", figures["alarms"], "", "level", LEVEL)]
    rows = [Row(f"{name} {contest}", figures[name], "", "the claim", figures["promise"]) for name in EPSILONS]
    if contest.name not in PURE:
        rows += [Row(f"{name} {contest}", figures[name], "", "the claim", figures["promised mu"]) for name in MUS]
    return rows


def measure_simulated(submit: Submit, *, quick: bool) -> list[Row]:
    """Return the rows of simulated games, means over several."""
    rows = []
    for epsilon, runs in SIMULATED[:1] if quick else SIMULATED:
        done = [submit(simulate, epsilon, runs, seed) for seed in range(1 if quick else GAMES)]
        found = [each.result() for each in done]
        means = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
        rows += make_rows(Contest(f"simulated, {runs} runs,", epsilon), "tightness", means)
    return rows


EPSILONS, MUS = ("epsilon", "one threshold"), ("mu", "mu, low")
KINDS: dict[str, Callable[..., Figures]] = {"tightness": measure_tightness, "alarms": count_alarms}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--only", nargs="+", help="names of games; all by default")
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(RUNS), choices=list(RUNS), help="4, 1 or both")
    parser.add_argument("--no-alarms", action="store_true", help="leave out the audits of correct mechanisms")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--keep", type=Path, help="read figures from this file, and add to it")


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    kept = Kept(options.keep)
    work = [
        (contest, kind)
        for contest in list_contests(options)
        for kind in KINDS
        if kind == "tightness" or (contest.epsilon == max(RUNS) and not options.no_alarms)
    ]
    with (
        ProcessPoolExecutor(
            options.jobs, multiprocessing.get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
        ) as processes,
        ThreadPoolExecutor(options.jobs) as threads,  # each waits for the pieces of one game
    ):

        def measure(each: tuple[Contest, str]) -> list[Row]:
            contest, kind = each
            label = f"{kind} {contest}" + (", quick" if options.quick else "")
            figures = kept.get(label, lambda: KINDS[kind](contest, processes.submit, quick=options.quick))
            return make_rows(contest, kind, figures)

        rows = [] if options.only else measure_simulated(processes.submit, quick=options.quick)
        rows += [row for found in threads.map(measure, work) for row in found]
    publish(rows, options)


if __name__ == "__main__":
    main()
