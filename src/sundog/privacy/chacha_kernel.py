"""The kernel of `chacha.py`, for GPUs. Triton comes with every build of torch that has CUDA."""

from __future__ import annotations

import math

import triton
import triton.language as tl
from torch import Tensor

_LANES = 128
_TURN = tl.constexpr(math.pi * 2.0**-31)


def launch(key: Tensor, message: Tensor, out: Tensor, *, blocks: int) -> None:
    """Fill `out` from `blocks` blocks: value j of block i goes to place j × blocks + i."""
    _fill[(-(-blocks // _LANES),)](key, message, out, blocks, len(out), LANES=_LANES)


@triton.jit
def _fill(key, message, out, blocks, count, LANES: tl.constexpr):
    lane = tl.program_id(0) * LANES + tl.arange(0, LANES)
    zero = tl.zeros([LANES], dtype=tl.uint32)
    k0, k1 = _load_word(key, 0) + zero, _load_word(key, 1) + zero
    k2, k3 = _load_word(key, 2) + zero, _load_word(key, 3) + zero
    k4, k5 = _load_word(key, 4) + zero, _load_word(key, 5) + zero
    k6, k7 = _load_word(key, 6) + zero, _load_word(key, 7) + zero
    number = tl.load(message)
    counter = lane.to(tl.uint32)
    low, high = number.to(tl.uint32) + zero, (number >> 32).to(tl.uint32) + zero
    c0, c1, c2, c3 = zero + 0x61707865, zero + 0x3320646E, zero + 0x79622D32, zero + 0x6B206574
    x0, x1, x2, x3, x4, x5, x6, x7 = c0, c1, c2, c3, k0, k1, k2, k3
    x8, x9, x10, x11, x12, x13, x14, x15 = k4, k5, k6, k7, counter, low, high, zero
    for _ in range(10):
        x0, x4, x8, x12 = _quarter_round(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter_round(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter_round(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter_round(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter_round(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter_round(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter_round(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter_round(x3, x4, x9, x14)
    _store_pair(out, lane, blocks, count, 0, x0 + c0, x1 + c1, x2 + c2)
    _store_pair(out, lane, blocks, count, 1, x3 + c3, x4 + k0, x5 + k1)
    _store_pair(out, lane, blocks, count, 2, x6 + k2, x7 + k3, x8 + k4)
    _store_pair(out, lane, blocks, count, 3, x9 + k5, x10 + k6, x11 + k7)
    _store_pair(out, lane, blocks, count, 4, x12 + counter, x13 + low, x14 + high)


@triton.jit
def _load_word(key, i: tl.constexpr):
    return tl.load(key + i).to(tl.uint32, bitcast=True)


@triton.jit
def _quarter_round(a, b, c, d):
    a = a + b
    d = _rotate(d ^ a, 16)
    c = c + d
    b = _rotate(b ^ c, 12)
    a = a + b
    d = _rotate(d ^ a, 8)
    c = c + d
    b = _rotate(b ^ c, 7)
    return a, b, c, d


@triton.jit
def _rotate(word, bits: tl.constexpr):
    return (word << bits) | (word >> (32 - bits))


@triton.jit
def _store_pair(out, lane, blocks, count, pair: tl.constexpr, high, low, angle):
    uniform = (high.to(tl.float32) + (low.to(tl.float32) + 0.5) * 2.3283064365386963e-10) * 2.3283064365386963e-10
    radius = tl.sqrt(-2.0 * tl.log(uniform))
    turn = angle.to(tl.int32, bitcast=True).to(tl.float32) * _TURN
    first = 2 * pair * blocks + lane
    tl.store(out + first, radius * tl.cos(turn), mask=(lane < blocks) & (first < count))
    second = first + blocks
    tl.store(out + second, radius * tl.sin(turn), mask=(lane < blocks) & (second < count))
