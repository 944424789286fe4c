"""Shamir's secret sharing over the field of 2³¹ − 1, for many elements at a time.

A secret is six elements: 186 bits, more than the strength of X25519. The product of two elements fits 64 bits, so numpy
computes all shares of a group in milliseconds; `shamirs` takes most of a second to reconstruct one secret of 300
members (docs/tally.md). Neither runs in constant time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sundog.errors import TallyError
from sundog.tally.protocol.mask_stream import MaskStream

PRIME = 2**31 - 1
ELEMENTS = 6  # of a secret

Elements = npt.NDArray[np.uint64]
_P = np.uint64(PRIME)


def expand_elements(key: bytes, count: int) -> Elements:
    """Return uniform elements of the field from a key: the low 31 bits of each word, except those that are 2³¹ − 1.

    >>> expand_elements(bytes(32), 2)
    array([2025887196,  159989922], dtype=uint64)
    """
    words = MaskStream(count + 64).expand(key) & np.uint32(PRIME)
    elements: Elements = words[words != PRIME][:count].astype(np.uint64)
    if elements.size < count:  # 65 words in 2³¹ each
        raise RuntimeError("the generator of elements is broken")
    return elements


def share_secrets(secrets: Elements, coefficients: Elements, members: int) -> Elements:
    """Return the shares of members 1, 2, …: a row each, with a column for each element that is shared.

    Args:
        secrets: the elements to share.
        coefficients: one row for each power of x from the first, so one row fewer than the threshold.
        members: the number of shares.

    >>> share_secrets(np.array([5], dtype=np.uint64), np.array([[2]], dtype=np.uint64), members=3).tolist()
    [[7], [9], [11]]
    """
    x = np.arange(1, members + 1, dtype=np.uint64)[:, None]
    shares = np.zeros((members, secrets.size), dtype=np.uint64)
    for row in coefficients[::-1]:
        shares = (shares + row) * x % _P  # below 2³² · 2¹⁰
    return (shares + secrets) % _P


def reconstruct_secrets(members: npt.NDArray[np.int64], shares: Elements) -> Elements:
    """Return the secrets from the shares of as many members as the threshold, counted from 1.

    Args:
        members: which members the shares are of.
        shares: along the first axis one for each member; further axes are elements.

    >>> reconstruct_secrets(np.array([3, 1]), np.array([[11], [7]], dtype=np.uint64))
    array([5], dtype=uint64)
    """
    weights = _interpolate_at_zero(members).reshape(-1, *[1] * (shares.ndim - 1))
    return np.asarray((weights * shares % _P).sum(axis=0) % _P)


def _interpolate_at_zero(members: npt.NDArray[np.int64]) -> Elements:
    """Return Lagrange's weights: for each x the product of y / (y − x) over the others y."""
    if len(set(members.tolist())) < len(members) or (members % PRIME == 0).any():
        raise ValueError("members must differ, and none may be 0")
    x = members.astype(np.int64)
    above, below = np.ones(len(x), dtype=np.int64), np.ones(len(x), dtype=np.int64)
    for position, y in enumerate(x):
        others = np.arange(len(x)) != position
        above[others] = above[others] * y % PRIME
        below[others] = below[others] * ((y - x[others]) % PRIME) % PRIME
    inverse = np.array([pow(int(value), -1, PRIME) for value in below], dtype=np.int64)
    return (above * inverse % PRIME).astype(np.uint64)


def pack_elements(elements: Elements) -> bytes:
    r"""Return elements as four bytes each, little-endian.

    >>> pack_elements(np.array([258], dtype=np.uint64))
    b'\x02\x01\x00\x00'
    """
    return elements.astype("<u4").tobytes()


def unpack_elements(data: bytes) -> Elements:
    r"""Return elements from their bytes; raise TallyError for numbers outside the field.

    >>> unpack_elements(b"\xff\xff\xff\xff")
    Traceback (most recent call last):
    ...
    sundog.errors.TallyError: a share is not in the field; it was refused
    """
    elements = np.frombuffer(data, dtype="<u4").astype(np.uint64)
    if (elements >= PRIME).any():
        raise TallyError("a share is not in the field; it was refused")
    return elements
