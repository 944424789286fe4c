"""Golden vectors of the tally, which the clients in other languages must reproduce bit for bit.

python -m tests.tally.golden writes them anew: only if their meaning is to change, with a new label of the hashes.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.privacy.skellam import SkellamTable
from sundog.tally.modulus import decode, encode
from sundog.tally.sketches import CountMin, CountSketch
from sundog.tally.sketches.tabulation import TabulationHash

FOLDER = Path(__file__).parent / "vectors"

SEEDS = [bytes(32), bytes(range(32)), bytes([255] * 32)]
KEYS = [0, 1, 2, 3, 255, 256, 65_535, 65_536, 244_999, 2**31 - 1, 2**31, 2**32 - 1]
COUNTS = [1, 1, 2, 5, -3, 1, 0, 7, 2**31 - 1, 1, -(2**31), 1]
UNITS = [1, 4295, 2**31, 2**32, 2**33 + 1, 9_368_850_653, 100 * 2**32, 4000 * 2**32]


def make_tabulation() -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "seed": seed.hex(),
            "rows": 3,
            "keys": KEYS,
            "hashes": TabulationHash(label, seed, rows=3).hash(KEYS).tolist(),
        }
        for label in ("sundog tally: buckets of a sketch, 1", "sundog tally: signs of a sketch, 1")
        for seed in SEEDS
    ]


def make_sketches() -> list[dict[str, Any]]:
    found = []
    for kind in (CountMin, CountSketch):
        for seed in SEEDS:
            sketch = kind(rows=4, width=23, seed=seed)
            totals = decode(sketch.sketch(KEYS, COUNTS))
            found.append(
                {
                    "kind": kind.__name__,
                    "rows": 4,
                    "width": 23,
                    "seed": seed.hex(),
                    "keys": KEYS,
                    "counts": COUNTS,
                    "cells": sketch.locate(KEYS).tolist(),
                    "vector": sketch.sketch(KEYS, COUNTS).tolist(),
                    "estimates": sketch.estimate(totals, KEYS).tolist(),
                }
            )
    return found


def make_tables() -> list[dict[str, Any]]:
    return [describe_table(SkellamTable.build(units)) for units in UNITS]


def describe_table(table: SkellamTable) -> dict[str, Any]:
    """The bytes of a table, and what it makes of words, of which some tie with a threshold and need a second word."""
    generator = np.random.default_rng(table.units)
    middle = table.thresholds[len(table.thresholds) // 2]
    ties = [((middle >> 64) << 1) + sign for sign in (0, 1, 0)]
    first = [0, 1, 2**64 - 1, *generator.integers(2**64, size=20, dtype=np.uint64).tolist(), *ties]
    rest = [middle % 2**64, max(0, middle % 2**64 - 1), 2**64 - 1]
    waiting = [*first, *rest, *generator.integers(2**64, size=8, dtype=np.uint64).tolist()]
    used: list[int] = []

    def draw_words(size: int) -> npt.NDArray[np.uint64]:
        taken = waiting[len(used) : len(used) + size]
        used.extend(taken)
        return np.array(taken, np.uint64)

    noise = table.draw(draw_words, len(first))
    return {
        "units": table.units,
        "thresholds": base64.b64encode(table.to_bytes()).decode(),
        "words": [f"{word:016x}" for word in used],
        "noise": noise.tolist(),
        "share": encode(noise).tolist(),
    }


MAKERS = {"tabulation.json": make_tabulation, "sketches.json": make_sketches, "skellam_tables.json": make_tables}


def main() -> None:
    for name, make in MAKERS.items():
        lines = ",\n".join(json.dumps(each) for each in make())
        (FOLDER / name).write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
