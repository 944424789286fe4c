"""Tabulation hashing: against a slow loop, with the right collisions, and with hostile keys."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from sundog.errors import ArgumentError
from sundog.tally.sketches.tabulation import TabulationHash

SEED = bytes(range(32))
KEYS = [0, 1, 2, 255, 256, 65_535, 2**24 + 1, 2**31, 2**32 - 1]


def hash_slowly(label: str, seed: bytes, row: int, key: int) -> int:
    """From the words of the description: one word of the keystream at a time."""
    secret = hashlib.sha256(label.encode() + seed).digest()
    found, product = 0, key * 0x9E3779B1 % 2**32
    for place in range(4):
        word = (row * 4 + place) * 256 + product // 256**place % 256
        block, offset = divmod(4 * word, 16)
        counter = modes.CTR(block.to_bytes(16, "big"))
        stream = Cipher(algorithms.AES(secret), counter).encryptor().update(bytes(16))
        found ^= int.from_bytes(stream[offset : offset + 4], "little")
    return found


def test_hashes_are_those_of_a_slow_loop() -> None:
    hashes = TabulationHash("a label", SEED, rows=3).hash(KEYS)
    assert hashes.dtype == np.uint32
    assert hashes.tolist() == [[hash_slowly("a label", SEED, row, key) for key in KEYS] for row in range(3)]


def test_more_rows_do_not_change_the_first() -> None:
    few, many = (TabulationHash("a label", SEED, rows=rows).hash(KEYS) for rows in (2, 9))
    assert (many[:2] == few).all()


def test_other_labels_and_seeds_give_other_hashes() -> None:
    hashes = [TabulationHash(*which, rows=1).hash(KEYS) for which in (("a", SEED), ("b", SEED), ("a", bytes(32)))]
    assert len({tuple(each[0].tolist()) for each in hashes}) == 3


@pytest.mark.parametrize("spread", [1, 256, 4096, 2**20])
def test_keys_collide_as_often_as_random_ones(spread: int) -> None:
    """Over seeds, for keys in arithmetic progression: in a sixteenth of all pairs, with 16 buckets."""
    keys = np.arange(40) * spread
    buckets = np.array(
        [TabulationHash("x", bytes([seed]) * 32, rows=20).hash(keys) >> np.uint32(28) for seed in range(20)]
    ).reshape(-1, 40)
    assert stats.chisquare(np.bincount(buckets.ravel(), minlength=16)).pvalue > 1e-9
    pairs = (buckets[:, :, None] == buckets[:, None, :]).sum() - buckets.size
    expected = len(buckets) * 40 * 39 / 16
    assert abs(pairs - expected) < 8 * np.sqrt(expected)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_seed_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ArgumentError, match="the seed of a sketch has 32 bytes"):
        TabulationHash("x", bytes(size), rows=1)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([-1], "lies between 0 and 2³² − 1, but one is -1"),
        ([5, 2**32], "but one is 4294967296"),
        ([2**70], "flat sequence of whole numbers"),
        ([0.5], "flat sequence of whole numbers"),
        (["1"], "flat sequence of whole numbers"),
        ([[1]], "flat sequence of whole numbers"),
        (3, "flat sequence of whole numbers"),
    ],
)
def test_keys_that_are_none_are_refused(keys: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        TabulationHash("x", SEED, rows=1).hash(keys)
