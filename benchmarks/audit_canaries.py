"""Lower bounds on ε from one fit with canaries: by f-DP, beside those of Steinke, Nasr and Jagielski (2023).

Both bounds come from the same guesses, at ε = 4 and δ = 10⁻⁵ with 95% confidence; the mean over a few fits is shown, as
a share of ε. Fits are on the sample of Adult that is part of sundog. The noise is that of every fit, so figures differ
a little between runs.

python benchmarks/audit_canaries.py [--quick] [--json FILE]
"""

from __future__ import annotations

import statistics
from importlib import resources
from typing import Any

import numpy as np
from report import Row, parse_arguments, publish

from sundog.auditing.canaries.canary_audit import audit_with_canaries
from sundog.auditing.canaries.canary_guesses import CanaryGuesses
from sundog.auditing.canaries.one_run_bounds import choose_guesses
from sundog.auditing.tradeoff_curve import compute_gaussian_mu
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import gaussian_sum

EPSILON, DELTA = 4.0, 1e-5
PEER = "Steinke et al. 2023"
FITS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("independent", {}),
    ("marginals", {}),
    ("independent", {"clusters": 3}),
    ("marginals", {"clusters": 3}),
    ("rbm", {}),
    ("vae", {}),
    ("gan", {}),
)


def audit_sum(canaries: int, seed: int) -> tuple[float, float]:
    """Audit one Gaussian sum of one-hot rows, and return both bounds."""
    included = np.random.default_rng(seed).random(canaries) < 0.5
    mu = compute_gaussian_mu(epsilon=EPSILON, delta=DELTA)
    ledger = Ledger(epsilon=EPSILON * 1.001, delta=DELTA)
    rows = np.eye(canaries)[included]
    noisy = gaussian_sum(rows, clip_norm=1.0, noise_multiplier=1 / mu, ledger=ledger, purpose="a sum")
    found = CanaryGuesses.make(noisy - 0.5, included, guesses=choose_guesses(canaries, mu=mu))
    return found.bound_gaussian_epsilon(delta=DELTA), found.bound_epsilon(delta=DELTA)


def audit_fit(model: str, options: dict[str, Any], seed: int) -> tuple[float, float]:
    """Audit one fit, and return both bounds."""
    demo = resources.files("sundog.demo")
    with resources.as_file(demo / "adult.csv.gz") as data, resources.as_file(demo / "adult.schema.yaml") as schema:
        found = audit_with_canaries(data, schema, model=model, epsilon=EPSILON, delta=DELTA, seed=seed, **options)
    if found.refutes:
        print(f"{model}: {found}")
    return found.epsilon_bound, found.steinke_bound


def main() -> None:
    options = parse_arguments(__doc__ or "")
    repeats = range(1 if options.quick else 2)
    rows = []
    pairs = [audit_sum(1000, seed) for seed in range(2 if options.quick else 10)]
    rows.append(make_row("Gaussian sum", pairs))
    for model, settings in FITS[:1] if options.quick else FITS:
        name = model + "".join(f", {value} {key}" for key, value in settings.items())
        rows.append(make_row(name, [audit_fit(model, settings, seed) for seed in repeats]))
    publish(rows, options)


def make_row(name: str, pairs: list[tuple[float, float]]) -> Row:
    ours, theirs = (statistics.mean(each) / EPSILON for each in zip(*pairs, strict=True))
    return Row(name, ours, "of ε", PEER, theirs)


if __name__ == "__main__":
    main()
