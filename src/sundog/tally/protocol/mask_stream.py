"""Masks: the keystream of AES-256 in counter mode as integers of 32 bits.

Each key is used for one stream, so the counter starts at zero.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sundog.tally.wire.codecs import Vector

_START = modes.CTR(bytes(16))


class MaskStream:
    """Expands keys to masks of a number of cells, in one buffer that all share.

    >>> masks = MaskStream(cells=3)
    >>> total = np.zeros(3, dtype=np.uint32)
    >>> masks.add(total, bytes(32))
    >>> [hex(value) for value in total]
    ['0x78c095dc', '0x898940a2', '0x14a248ad']
    >>> masks.subtract(total, bytes(32))
    >>> total.any()
    np.False_
    """

    def __init__(self, cells: int) -> None:
        self._zeros = bytes(4 * cells)
        self._buffer = bytearray(4 * cells + 15)  # `update_into` asks for room for a block more
        self._mask = np.frombuffer(self._buffer, dtype="<u4", count=cells)

    def add(self, total: Vector, key: bytes) -> None:
        """Add the mask of a key to a vector, in place."""
        np.add(total, self.expand(key), out=total)

    def subtract(self, total: Vector, key: bytes) -> None:
        """Subtract the mask of a key from a vector, in place."""
        np.subtract(total, self.expand(key), out=total)

    def expand(self, key: bytes) -> Vector:
        """Return the mask of a key: a view, valid until the next call."""
        Cipher(algorithms.AES(key), _START).encryptor().update_into(self._zeros, self._buffer)
        return self._mask
