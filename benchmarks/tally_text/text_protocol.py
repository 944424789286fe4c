"""Pairwise masks hashed cell by cell, unsigned public keys, and recovery by revealing the masks of dropped users.

As in Fig. 4.1: kᵢₗ = Σ H(yⱼ^xᵢ ‖ l ‖ s) · (−1)^(i>j) mod 2³², with SHA-256 for H. The group is X25519 instead of the
text's Ed25519 points, which makes no difference to the number of hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from sundog.tally.wire.codecs import Vector


class TextUser:
    """One user, by number. Keys are used in every round, as in the text."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._key = X25519PrivateKey.generate()

    @property
    def public_key(self) -> bytes:
        """What the tally passes on to the others."""
        return self._key.public_key().public_bytes_raw()

    def encrypt(self, vector: Vector, keys: Mapping[int, bytes], round_name: bytes) -> Vector:
        """Return the vector plus the blinding factors against all other users (step 2)."""
        return vector + self._blind(keys, keys, vector.size, round_name)

    def recover(self, keys: Mapping[int, bytes], online: Iterable[int], cells: int, round_name: bytes) -> Vector:
        """Return the blinding factors against the users who are not online, for the tally to subtract (step 4)."""
        return self._blind(keys, keys.keys() - set(online), cells, round_name)

    def _blind(self, keys: Mapping[int, bytes], others: Iterable[int], cells: int, round_name: bytes) -> Vector:
        total = np.zeros(cells, dtype=np.uint32)
        for other in others:
            if other != self.number:
                shared = self._key.exchange(X25519PublicKey.from_public_bytes(keys[other]))
                mask = hash_cells(shared, cells, round_name)
                total += mask if self.number < other else -mask
        return total


def hash_cells(shared: bytes, cells: int, round_name: bytes) -> Vector:
    """Return one SHA-256 for each cell, modulo 2³²."""
    digests = b"".join(
        hashlib.sha256(shared + cell.to_bytes(4, "little") + round_name).digest()[:4] for cell in range(cells)
    )
    return np.frombuffer(digests, dtype="<u4").astype(np.uint32)
