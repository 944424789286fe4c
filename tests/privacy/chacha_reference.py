"""What the kernel of `DeviceNormals` draws, by tensor operations: slowly, and on any device."""

from __future__ import annotations

import torch
from torch import Tensor

from sundog.privacy.chacha import PER_BLOCK
from sundog.privacy.normals import to_normal_pair

_CONSTANTS = tuple(int.from_bytes(b"expand 32-byte k"[i : i + 4], "little") for i in range(0, 16, 4))
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


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
