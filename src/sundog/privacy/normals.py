"""Normal variates from an AES keystream, fast enough for training.

An AES-256-CTR keystream is turned into float32 normals by the Box-Muller transform in a few tensor operations, which
torch runs on all cores. A radius takes 64 bits: the largest variate is 9.4 standard deviations out, and large variates
have full precision. Drawing noise ahead in background threads was tried: on few cores it slows the step down.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from torch import Tensor

_LONGEST = 2**36  # bytes of one message, the most that its counter allows


class Keystream:
    """A stream of random words that never repeats.

    >>> stream = Keystream(bytes(32))
    >>> values = to_normals(stream.draw_words((3, 50_000)))
    >>> round(float(values.mean()), 1), round(float(values.std()), 1)
    (-0.0, 1.0)

    Args:
        key: 32 secret bytes, used for this stream only.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._message = 0

    def draw_words(self, shape: tuple[int, ...]) -> Tensor:
        """Return the next words, as int32."""
        if 4 * math.prod(shape) > _LONGEST:
            raise ValueError(f"{4 * math.prod(shape)} bytes of noise at once are more than one message holds")
        words = np.empty(shape, dtype=np.int32)
        start = self._message.to_bytes(12, "big") + bytes(4)
        self._message += 1
        buffer: Any = words.reshape(-1).view(np.uint8)
        Cipher(algorithms.AES(self._key), modes.CTR(start)).encryptor().update_into(bytes(words.nbytes), buffer)
        return torch.from_numpy(words)


def to_normals(words: Tensor) -> Tensor:
    """Turn (3, n) random words into (2, n) normals."""
    return torch.stack(to_normal_pair(*words))


def to_normal_pair(high: Tensor, low: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """Turn a radius of 64 bits and an angle of 32 bits into two normals."""
    uniform = _to_unsigned(low).add_(0.5).mul_(2.0**-32).add_(_to_unsigned(high)).mul_(2.0**-32)  # above 0, at most 1
    radius = uniform.log_().mul_(-2.0).sqrt_()
    turn = angle.to(torch.float32).mul_(math.pi * 2.0**-31)
    return torch.cos(turn).mul_(radius), turn.sin_().mul_(radius)


def _to_unsigned(word: Tensor) -> Tensor:
    return word.to(torch.float32).add_(word < 0, alpha=2.0**32)
