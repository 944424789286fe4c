"""A small table, and audits of fits on it with repeatable noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from sundog.auditing.canaries.canary_audit import CanaryFinding, audit_with_canaries
from sundog.privacy.noise import NoiseSource

SCHEMA: dict[str, Any] = {
    "columns": {
        "colour": {"type": "categorical", "values": ["red", "green", "blue", "grey"]},
        "size": {"type": "integer", "min": 0, "max": 9},
        "new": {"type": "boolean", "nullable": True},
    },
    "records": 600,
}


def draw_table(count: int = 600) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "colour": rng.choice(SCHEMA["columns"]["colour"]["values"], count, p=[0.4, 0.3, 0.2, 0.1]),
        "size": rng.integers(0, 10, count),
        "new": rng.choice(np.array([True, False, None], object), count),
    }


FULL_BATCHES = {"epochs": 6, "batch": 600, "hidden": 300}  # six steps: quick, and all that is left is the noise


def audit(model: str, *, seed: int = 0, **options: Any) -> CanaryFinding:
    """Audit a fit at ε = 4; the noise and the canaries follow from the seed."""
    settings = {"rbm": {"epochs": 20, "hidden": 300}, "vae": {"epochs": 20}, "gan": {"epochs": 20}}
    options = {"settings": settings.get(model), "canaries": 1000} | options
    return audit_with_canaries(
        draw_table(), SCHEMA, model=model, epsilon=4.0, delta=1e-5, seed=seed, noise=NoiseSource.seeded(seed), **options
    )
