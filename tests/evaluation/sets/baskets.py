"""Baskets of items to compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.section import Section
from sundog.evaluation.sets.set_evaluation import evaluate_sets

Baskets = Sequence[Sequence[int]]


def encode_baskets(baskets: Baskets, universe: int) -> Records:
    schema = Schema.from_dict(
        {"columns": {"basket": {"type": "set", "universe": universe, "max_size": universe}, "age": AGE}}
    )
    codes = schema.columns["basket"].encode(
        [list(basket) for basket in baskets] or sparse.csr_array((0, universe)), where="t"
    )
    return Records(schema, {"basket": codes, "age": np.zeros(len(baskets), np.uint8)}, len(baskets))


AGE = {"type": "integer", "min": 0, "max": 9}


def evaluate_baskets(real: Baskets, synthetic: Baskets, universe: int, seed: int = 0) -> Section:
    ours, theirs = encode_baskets(real, universe), encode_baskets(synthetic, universe)
    return evaluate_sets(Comparison(ours, theirs, ours, ours, seed=seed), "basket")


def draw_baskets(n: int, rng: np.random.Generator, universe: int = 30) -> list[list[int]]:
    """Draw baskets in which items 3k, 3k + 1 and 3k + 2 are mostly bought together, and low numbers often."""
    baskets = []
    for _ in range(n):
        kits = np.flatnonzero(rng.random(universe // 3) < 1.2 / np.arange(2, universe // 3 + 2))
        baskets.append([3 * int(kit) + part for kit in kits for part in range(3) if rng.random() < 0.9])
    return baskets


def disturb_baskets(baskets: Baskets, share: float, rng: np.random.Generator, universe: int = 30) -> list[list[int]]:
    """Replace this share of the items by random ones."""
    return [
        sorted({int(rng.integers(universe)) if rng.random() < share else item for item in basket}) for basket in baskets
    ]
