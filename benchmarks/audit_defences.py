"""What dropout, weight normalisation and differential privacy do against the critic of a `gan` (white box).

Targets are trained on 100 of scikit-learn's digits for long. The figure is the area under the curve of the critic's
scores, beside one half, which is guessing. Dropout and weight normalisation are measured on fits without noise and
clipping.

    python benchmarks/audit_defences.py [--quick] [--json FILE] [--seeds N] [--epochs N]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from dpgan.series import Silence
from imagery.outcomes import Accuracy, measure_accuracy
from numpy.typing import NDArray
from report import Row, parse_arguments, publish
from sklearn.datasets import load_digits

import sundog
from sundog.data.records import Records
from sundog.models.gan.saved_critic import Critic

MEMBERS = 100
SCHEMA = sundog.Schema.from_dict({"columns": {"image": {"type": "image", "shape": [8, 8]}}})
COMMON: dict[str, Any] = {"shape": "mlp", "batch": 50, "hidden": 256, "learning_rate": 0.004, "critic_steps": 8}
UNCLIPPED = {"clip": 1e6}
TARGETS: dict[str, tuple[float | None, dict[str, Any]]] = {
    "no noise": (None, UNCLIPPED),
    "no noise, dropout .5": (None, {**UNCLIPPED, "dropout": 0.5}),
    "no noise, weight norm": (None, {**UNCLIPPED, "weight_norm": True}),
    "ε=10": (10.0, {}),
}


def main() -> None:
    options = parse_arguments(__doc__ or "", add_options)
    epochs, seeds = (2, 1) if options.quick else (options.epochs, options.seeds)
    pixels = np.round(load_digits().images * (255 / 16)).astype(np.uint8)
    rows = []
    for name, (epsilon, settings) in TARGETS.items():
        found = [attack(pixels, epsilon, {**COMMON, **settings, "epochs": epochs}, seed) for seed in range(seeds)]
        for seed, each in enumerate(found):
            print(f"{name}, seed {seed}: area {each.area:.3f}, ε ≥ {each.epsilon:.2f}", flush=True)
        mean = float(np.mean([each.area for each in found]))
        rows.append(Row(f"white box, {name}, {epochs} epochs", mean, "area", "guessing", 0.5))
    publish(rows, options)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=800)


def attack(pixels: NDArray[np.uint8], epsilon: float | None, settings: dict[str, Any], seed: int) -> Accuracy:
    """Fit some digits, and score all of them by the critic; no ε means no noise."""
    members = np.random.default_rng(seed).permutation(len(pixels)) < MEMBERS
    synth = sundog.Synthesizer(
        model="gan",
        epsilon=epsilon or 10.0,
        delta=1e-5,
        seed=seed,
        settings=settings,
        noise=Silence() if epsilon is None else None,
    )
    synth.fit(pixels[members], SCHEMA)
    if synth.private_ is None:
        raise RuntimeError("the fit kept no critic")
    scores = Critic(SCHEMA, synth.private_).score(Records(SCHEMA, {"image": pixels}, len(pixels)))
    return measure_accuracy(scores, members)


if __name__ == "__main__":
    main()
