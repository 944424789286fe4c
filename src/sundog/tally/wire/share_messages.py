"""Peers, second step: each member sends every other one a share of its two secrets, sealed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sundog.tally.wire.codecs import Digest, MemberBits, Rows, Signature
from sundog.tally.wire.message import RoundMessage, SentMessage

SHARE_BYTES = 24  # six elements of the field, four bytes each
SEALED_BYTES = 2 * SHARE_BYTES + 16  # a share of either secret, and the tag of AES-GCM


@dataclass(frozen=True, eq=False)
class SealedShares(SentMessage, kind=4):
    """Client to tally: for each other member of the directory, in its order, shares that only it can open."""

    directory: Digest
    sealed: Annotated[tuple[bytes, ...], Rows(SEALED_BYTES)]
    signature: Signature


@dataclass(frozen=True, eq=False)
class DeliveredShares(RoundMessage, kind=5):
    """Tally to client: who sent shares, and from each other one of them what is sealed to you."""

    sharers: MemberBits
    sealed: Annotated[tuple[bytes, ...], Rows(SEALED_BYTES)]
