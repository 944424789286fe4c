"""What a round is about. Its digest is in every message and in every key that is derived."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated

from sundog.tally.wire.codecs import U8, U32, Digest, Key, Rows, Signature
from sundog.tally.wire.message import Message

PEERS, KEEPERS = 1, 2  # the modes


@dataclass(frozen=True, eq=False)
class RoundParameters(Message, kind=1):
    """A round, as its operator announces it."""

    operator: Key
    nonce: Digest  # random: no two rounds are equal
    mode: U8
    period: U32  # increases from round to round; an identity contributes once in each
    cells: U32
    minimum: U32  # the least number of people in a sum
    purpose: Digest  # of a description of the cells and of their noise, which other parts define
    keepers: Annotated[tuple[bytes, ...], Rows(32, most=8)]  # their identities; none for peers
    quorum: U8  # keepers that must agree on the survivors; 0 for peers
    signature: Signature

    @property
    def digest(self) -> bytes:
        """SHA-256 of the whole message."""
        return hashlib.sha256(self.encode()).digest()
