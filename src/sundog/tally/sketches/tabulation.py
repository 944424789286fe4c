"""Tabulation hashing, with tables from a public seed.

A key of 32 bits is multiplied by an odd constant, modulo 2³², and cut into four bytes; its hash is the exclusive or of
four random words, one from the table of each byte. Errors of keys that are neighbours then cancel as if the hashes were
independent. Those of linear hashing, an arithmetic progression, do not, and without the factor the errors of k and
k + 256 are alike (benchmarks/tally_sketches.py).

The tables are an AES-256-CTR keystream, which every browser has too: the key is SHA-256 of a label and the seed, the
first counter block is zero, and the bytes are little-endian words in the order [row][byte of the product,
lowest first][value of the byte].
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sundog.errors import ArgumentError

Words = npt.NDArray[np.uint32]

_BYTES = 4  # of a key
_VALUES = 256  # of a byte
_FACTOR = 0x9E3779B1  # Knuth's, near 2³² divided by the golden ratio: spreads consecutive keys over all four bytes


@dataclass(frozen=True)
class TabulationHash:
    """Independent hash functions, one a row, from keys of 32 bits to words of 32 bits.

    >>> TabulationHash("an example", bytes(32), rows=2).hash([0, 1, 2]).shape
    (2, 3)

    Args:
        label: what the hashes are for: other labels give other tables.
        seed: 32 public bytes.
        rows: how many functions there are.
    """

    label: str
    seed: bytes
    rows: int

    def __post_init__(self) -> None:
        if len(self.seed) != 32:
            raise ArgumentError(f"the seed of a sketch has 32 bytes, not {len(self.seed)}")

    @functools.cached_property
    def tables(self) -> Words:
        """The random words, an array of (4, rows, 256)."""
        key = hashlib.sha256(self.label.encode() + self.seed).digest()
        keystream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        words = np.frombuffer(keystream.update(bytes(self.rows * _BYTES * _VALUES * 4)), "<u4")
        return np.ascontiguousarray(words.reshape(self.rows, _BYTES, _VALUES).swapaxes(0, 1))

    def hash(self, keys: Any) -> Words:
        """Return the hash of each key in each row, an array of (rows, keys)."""
        low, *others = split_keys(keys)
        found = self.tables[0][:, low]
        for table, byte in zip(self.tables[1:], others, strict=True):
            found ^= table[:, byte]
        return np.asarray(found)


def split_keys(keys: Any) -> npt.NDArray[np.uint8]:
    """Return the four bytes of each key times the factor, lowest first, an array of (4, keys)."""
    values = np.asarray(keys)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise ArgumentError("the keys of a sketch are a flat sequence of whole numbers")
    if values.size and not 0 <= values.min() <= values.max() < 2**32:
        wrong = values.min() if values.min() < 0 else values.max()
        raise ArgumentError(f"a key of a sketch lies between 0 and 2³² − 1, but one is {wrong}")
    return (values.astype("<u4") * np.uint32(_FACTOR)).astype("<u4").view(np.uint8).reshape(-1, _BYTES).T
