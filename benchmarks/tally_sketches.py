"""Sketches of the tally: what tabulation hashing gains over the text's linear hashing, and what a sketch costs.

Sums over 500 consecutive keys of 1,500, estimated by a Count Sketch of 10,000 values with log-normal magnitudes: the
root mean square error over all such sums and many seeds, beside the text's hashes ((a·x + b) mod p) mod w and beside
functions drawn at random. Then, for the text's sketch of 18 × 272 cells of all pairs of 50 items (1,275 keys), the
largest cell and the sum of squares that 99% of people do not exceed; and the CPU time of sketching these pairs, and 50
keys.

python benchmarks/tally_sketches.py [--quick] [--json FILE]
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from report import Row, parse_arguments, publish, time_interleaved

from sundog.tally.modulus import Integers, decode
from sundog.tally.sketches import CountMin, CountSketch

DOMAIN, LENGTH, VALUES = 1500, 500, 10_000
PRIME = 2**31 - 1


class LinearHashes:
    """The text's pairwise independent hashes, in place of those of a sketch."""

    seed: bytes
    rows: int
    width: int

    @cached_property
    def _factors(self) -> Any:
        generator = np.random.default_rng(list(self.seed))
        return generator.integers(1, PRIME, (2, 2, self.rows, 1), dtype=np.uint64)

    def _hash(self, which: int, keys: Any, buckets: int) -> Integers:
        a, b = self._factors[which]
        return np.asarray((a * np.asarray(keys, np.uint64) + b) % PRIME % buckets, np.int64)

    def locate(self, keys: Any) -> Integers:  # noqa: D102
        return self._hash(0, keys, self.width) + self.width * np.arange(self.rows)[:, None]

    def choose_signs(self, keys: Any) -> Integers:  # noqa: D102
        return 1 - 2 * self._hash(1, keys, 2)


@dataclass(frozen=True)
class LinearCountSketch(LinearHashes, CountSketch):
    """A Count Sketch with the text's hashes."""


@dataclass(frozen=True)
class LinearCountMin(LinearHashes, CountMin):
    """A Count-Min sketch with the text's hashes."""


@dataclass(frozen=True)
class RandomCountSketch(CountSketch):
    """The same sketch with functions drawn at random: the best that hashing can do."""

    @cached_property
    def _drawn(self) -> Any:
        generator = np.random.default_rng(list(self.seed))
        buckets = generator.integers(self.width, size=(self.rows, DOMAIN))
        return buckets + self.width * np.arange(self.rows)[:, None], generator.choice([-1, 1], (self.rows, DOMAIN))

    def locate(self, keys: Any) -> Integers:  # noqa: D102
        return np.asarray(self._drawn[0][:, keys])

    def choose_signs(self, keys: Any) -> Integers:  # noqa: D102
        return np.asarray(self._drawn[1][:, keys])


def measure_range_error(kind: type[CountSketch], seeds: int) -> float:
    """Return the root mean square error of sums over consecutive keys."""
    squares = []
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        values = np.minimum(generator.lognormal(5.5, 0.7, VALUES).astype(np.int64), DOMAIN - 1)
        counts = np.bincount(values, minlength=DOMAIN)
        sketch = kind(rows=18, width=54, seed=generator.bytes(32))
        keys = np.arange(DOMAIN)
        errors = sketch.estimate(decode(sketch.sketch(keys, counts)), keys) - counts
        below = np.concatenate([[0.0], np.cumsum(errors)])
        squares.append(np.mean((below[LENGTH:] - below[:-LENGTH]) ** 2))
    return float(np.sqrt(np.mean(squares)))


def measure_bounds(people: int) -> list[Row]:
    """Return what 99% of vectors of all pairs of 50 items keep to, beside linear hashing."""
    generator = np.random.default_rng(1)
    found = []
    for kind in (CountMin, LinearCountMin):
        sketch = kind(18, 272, bytes(32))
        vectors = [decode(sketch.sketch(draw_pairs(generator))) for _ in range(people)]
        found.append([np.quantile([vector.max() for vector in vectors], 0.99)])
        found[-1].append(np.quantile([np.sum(vector**2) for vector in vectors], 0.99))
    names = ("largest cell, pairs of 50 items", "squares, pairs of 50 items")
    return [Row(name, ours, "", "linear hashing", peer) for name, ours, peer in zip(names, *found, strict=True)]


def draw_pairs(generator: np.random.Generator) -> Integers:
    """Return the keys of all pairs of 50 of 700 items, of an item with itself too."""
    items = np.sort(generator.choice(700, 50, replace=False))
    first, second = np.triu_indices(50)
    return np.asarray(items[first] * 700 + items[second], np.int64)


def measure_times(repeats: int) -> list[Row]:
    """Return the CPU time of sketching a person, beside linear hashing."""
    generator = np.random.default_rng(0)
    ours = CountMin(18, 272, bytes(32))
    signed = CountSketch(ours.rows, ours.width, bytes(32))
    linear = LinearCountSketch(ours.rows, ours.width, bytes(32))
    rows = []
    for items, size in (("50 items", 50), ("pairs of 50 items", 1275)):
        keys = draw_pairs(generator)[:size]
        contestants = {type(each).__name__: partial(each.sketch, keys) for each in (ours, signed, linear)}
        seconds = time_interleaved(contestants, repeats=repeats, clock=time.process_time)
        peer = 1e6 * seconds.pop("LinearCountSketch")
        rows += [Row(f"{name}, {items}", 1e6 * value, "µs", "linear hashing", peer) for name, value in seconds.items()]
    return rows


def main() -> None:
    options = parse_arguments(__doc__ or "")
    seeds = 10 if options.quick else 400
    ours = measure_range_error(CountSketch, seeds)
    rows = [
        Row("error of range sums", ours, "", "linear hashing", measure_range_error(LinearCountSketch, seeds)),
        Row("error of range sums", ours, "", "random functions", measure_range_error(RandomCountSketch, seeds)),
    ]
    rows += measure_bounds(30 if options.quick else 1000)
    publish([*rows, *measure_times(20 if options.quick else 1000)], options)


if __name__ == "__main__":
    main()
