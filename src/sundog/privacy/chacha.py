"""Normal variates drawn on the GPU that trains: ChaCha20 in one kernel.

The host can make a few hundred million normals a second, and a GPU uses them faster. So the block function of ChaCha20
(RFC 8439) runs on the GPU, one lane per block, followed by the Box-Muller transform. Sixteen words make
ten normals: five pairs of a radius of 64 bits and an angle of 32. `reference_normals` computes the same
with tensor operations, slowly and on any device; tests compare it with the RFC, and the kernel (`chacha_kernel.py`)
with it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sundog.privacy.normals import to_normal_pair

PER_BLOCK = 10  # normals

_CONSTANTS = tuple(int.from_bytes(b"expand 32-byte k"[i : i + 4], "little") for i in range(0, 16, 4))
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


class DeviceNormals:
    """A stream of normals on one GPU; its key is used for nothing else.

    Args:
        device: where the normals are drawn.
        secret: the key, 32 bytes.
    """

    def __init__(self, device: Any, secret: bytes) -> None:
        words = [int.from_bytes(secret[i : i + 4], "little", signed=True) for i in range(0, 32, 4)]
        self.key = torch.tensor(words, dtype=torch.int32, device=device)
        self.message = torch.zeros(1, dtype=torch.int64, device=device)  # the nonce: no two fills have the same

    def fill(self, out: Tensor) -> Tensor:
        """Fill a flat float32 tensor; in a graph, with new values in every replay."""
        from sundog.privacy.chacha_kernel import launch

        self.message += 1
        launch(self.key, self.message, out, blocks=-(-len(out) // PER_BLOCK))
        return out


def reference_normals(key: Tensor, message: Tensor, count: int) -> Tensor:
    """Return what the kernel would draw."""
    blocks = -(-count // PER_BLOCK)
    counter = torch.arange(blocks, dtype=torch.int32, device=key.device)
    low, high = message.to(torch.int32), (message >> 32).to(torch.int32)
    words = chacha20(key, counter, (low, high, torch.zeros_like(low)))
    pairs = [to_normal_pair(*words[3 * i : 3 * i + 3]) for i in range(PER_BLOCK // 2)]
    return torch.stack([value for pair in pairs for value in pair]).flatten()[:count]


def chacha20(key: Tensor, counter: Tensor, nonce: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
    """Return the sixteen words of each block: RFC 8439, section 2.3, for many counters at once.

    Args:
        key: eight 32-bit words, as int32.
        counter: the numbers of the blocks, as int32.
        nonce: three words.
    """
    constants = [torch.full_like(counter, _to_int32(word)) for word in _CONSTANTS]
    start = [
        *constants,
        *(key[i].expand_as(counter) for i in range(8)),
        counter,
        *(n.expand_as(counter) for n in nonce),
    ]
    state = list(start)
    for _ in range(10):
        for quarter in (*_COLUMNS, *_DIAGONALS):
            _quarter_round(state, *quarter)
    return [word + first for word, first in zip(state, start, strict=True)]


def _quarter_round(state: list[Tensor], a: int, b: int, c: int, d: int) -> None:
    for target, source, mixed, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[target] = state[target] + state[source]
        state[mixed] = _rotate(state[mixed] ^ state[target], bits)


def _rotate(word: Tensor, bits: int) -> Tensor:
    carried: Tensor = (word >> (32 - bits)) & (2**bits - 1)  # the shift brings in the sign, which is masked off
    return (word << bits) | carried


def _to_int32(word: int) -> int:
    return word - 2**32 if word >= 2**31 else word
