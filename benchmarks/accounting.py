"""Calibration and accounting beside dp-accounting: results and run times.

python benchmarks/accounting.py [--quick] [--json FILE]
"""

from __future__ import annotations

import functools
from typing import Any

import dp_accounting
from dp_accounting import pld
from report import Row, parse_arguments, publish, time_interleaved

from sundog.privacy import accountant, renyi
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.calibration import find_noise_multiplier, make_training_charges

GRID = [  # sample rate, noise multiplier, steps
    (64 / 60_000, 1.086, 18_750),
    (0.0017, 1.0, 12_000),
    (0.01, 0.8, 2_000),
    (0.1, 4.0, 1_000),
    (1.0, 20.0, 20),
]
TARGETS = [  # sample rate, steps, epsilon
    (64 / 60_000, 18_750, 4.0),
    (0.0017, 12_000, 1.0),
    (0.01, 2_000, 2.0),
    (0.1, 1_000, 10.0),
]
DELTA = 1e-5


def make_peer_event(rate: float, noise: float, steps: int) -> dp_accounting.DpEvent:
    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    return dp_accounting.SelfComposedDpEvent(step, steps)


def compute_peer_epsilon(rate: float, noise: float, steps: int) -> float:
    accountant = pld.PLDAccountant()
    accountant.compose(make_peer_event(rate, noise, steps))
    return float(accountant.get_epsilon(DELTA))


def calibrate_peer(rate: float, steps: int, epsilon: float) -> float:
    return float(
        dp_accounting.calibrate_dp_mechanism(
            pld.PLDAccountant,
            lambda noise: make_peer_event(rate, noise, steps),
            epsilon,
            DELTA,
            dp_accounting.LowerEndpointAndGuess(0.0, 1.0),
            tol=1e-4,
        )
    )


def calibrate_uncached(question: dict[str, Any]) -> float:
    """Return our noise multiplier, computed with empty caches."""
    for cached in (accountant._compose_runs, accountant._compute_single_pld, renyi._compute_divergences):
        cached.cache_clear()
    return find_noise_multiplier(**question)


def main() -> None:
    options = parse_arguments(__doc__ or "")
    rows = []
    for rate, noise, steps in GRID[: 2 if options.quick else None]:
        plan = make_training_charges(noise_multiplier=noise, sample_rate=rate, steps=steps)
        ours, theirs = compute_epsilon(plan, delta=DELTA), compute_peer_epsilon(rate, noise, steps)
        rows.append(Row(f"epsilon q={rate:.2g} s={noise:g} T={steps}", ours, "", "dp-accounting PLD", theirs))
    for rate, steps, epsilon in TARGETS[: 1 if options.quick else None]:
        question: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "sample_rate": rate, "steps": steps}
        contestants = {
            "ours": functools.partial(calibrate_uncached, question),
            "peer": functools.partial(calibrate_peer, rate, steps, epsilon),
        }
        seconds = time_interleaved(contestants, repeats=1 if options.quick else 3)
        found = {name: contestant() for name, contestant in contestants.items()}
        label = f"q={rate:.2g} T={steps} eps={epsilon:g}"
        rows.append(Row(f"calibrate {label}", seconds["ours"], "s", "dp-accounting calibrate", seconds["peer"]))
        rows.append(Row(f"noise {label}", found["ours"], "", "dp-accounting calibrate", found["peer"]))
    publish(rows, options)


if __name__ == "__main__":
    main()
