"""Normal variates as fast as training can use them, and as hard to guess as AES.

An AES-256-CTR keystream, turned into float32 normals by Box and Muller's transform in lines of numpy, made ahead by
threads in the background. A radius takes 32 bits, and where those are small, which is where the tail is, 32 more: the
largest variate is 9.4 standard deviations out, and beyond 3.3 every digit that a float32 has is random.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

Bits = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float32]

BLOCK = 2**16  # values made at once: their arrays stay in a core's cache
AHEAD = 48  # blocks that wait to be used: 12 MiB

_PAIRS = BLOCK // 2
_TAIL = 2**24  # a radius of fewer bits than this is worth a second look


class NormalStream:
    """A stream of standard normal float32 values, none of which is ever given twice.

    >>> stream = NormalStream(bytes(32))
    >>> values = np.concatenate([stream.block() for _ in range(4)])
    >>> bool(abs(values.mean()) < 0.01), bool(abs(values.std() - 1) < 0.01)
    (True, True)

    Args:
        key: 32 secret bytes, used for this stream only.
        ahead: how many blocks wait to be used.
    """

    def __init__(self, key: bytes, *, ahead: int = AHEAD) -> None:
        self._key, self._ahead = key, ahead
        self._next = 0
        self._made: deque[Future[Floats]] = deque()
        self._workers: ThreadPoolExecutor | None = None

    def block(self) -> Floats:
        """The next BLOCK values; whoever asks owns them."""
        if self._workers is None:
            self._workers = ThreadPoolExecutor(max(1, min(6, (os.cpu_count() or 1) // 2)), "noise")
        while len(self._made) <= self._ahead:
            self._made.append(self._workers.submit(_block, self._key, self._next))
            self._next += 1
        return self._made.popleft().result()


class _Scratch(threading.local):
    """Arrays that every worker has for itself."""

    def __init__(self) -> None:
        self.bits = np.empty((2, _PAIRS), dtype=np.uint32)
        self.floats = np.empty((3, _PAIRS), dtype=np.float32)


_scratch = _Scratch()


def _block(key: bytes, number: int) -> Floats:
    """Block `number` of the stream: the same whoever makes it."""
    start = number.to_bytes(12, "big") + bytes(4)  # a block has 2³² counters for itself
    cipher = Cipher(algorithms.AES(key), modes.CTR(start)).encryptor()
    bits = _scratch.bits
    _draw(cipher, bits)
    radius, turn, wave = _scratch.floats
    _radii(cipher, bits[0], radius)
    np.multiply(bits[1].view(np.int32), np.float32(math.pi * 2**-31), out=turn, dtype=np.float32, casting="unsafe")
    values = np.empty((2, _PAIRS), dtype=np.float32)
    np.multiply(np.cos(turn, out=wave), radius, out=values[0])
    np.multiply(np.sin(turn, out=wave), radius, out=values[1])
    return values.reshape(-1)


def _radii(cipher: Any, bits: Bits, out: Floats) -> None:
    """√(−2 log u) for u uniform in (0, 1): from 32 bits, or 64 where u is small."""
    signed = bits.view(np.int32)  # from −2³¹, where u is 0: processors convert signed integers faster
    np.multiply(signed, np.float32(2**-32), out=out, dtype=np.float32, casting="unsafe")
    out += np.float32(0.5)
    rare = np.flatnonzero(signed < _TAIL - 2**31)
    out[rare] = 1.0
    np.log(out, out=out)
    out *= np.float32(-2)
    np.sqrt(out, out=out)
    more = np.empty(len(rare), dtype=np.uint32)
    _draw(cipher, more)
    high = signed[rare] + 2.0**31
    out[rare] = np.sqrt(-2 * np.log((high + (more + 0.5) * 2.0**-32) * 2.0**-32))


def _draw(cipher: Any, out: Bits) -> None:
    """Fills with keystream: what the cipher makes of zeros."""
    buffer: Any = out.reshape(-1).view(np.uint8)
    cipher.update_into(bytes(out.nbytes), buffer)
