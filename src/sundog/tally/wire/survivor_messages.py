"""Peers, third and fourth step: masked vectors, and what the survivors sign before any share is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sundog.tally.wire.codecs import Digest, Key, MemberBits, Rows, Signature, VectorCells
from sundog.tally.wire.message import Message, RoundDigest


@dataclass(frozen=True, eq=False)
class MaskedVector(Message, kind=6):
    """Client to tally: my vector, with a mask on each cell."""

    round: RoundDigest
    sender: Key
    vector: VectorCells
    signature: Signature


@dataclass(frozen=True, eq=False)
class Survivors(Message, kind=7):
    """Tally to client: whose masked vectors are in the sum."""

    round: RoundDigest
    survivors: MemberBits


@dataclass(frozen=True, eq=False)
class Endorsement(Message, kind=8):
    """Client or keeper to tally: these are the survivors that I was told of (`statement`)."""

    round: RoundDigest
    sender: Key
    statement: Digest
    signature: Signature


@dataclass(frozen=True, eq=False)
class Endorsements(Message, kind=9):
    """Tally to client: the signatures of those who endorsed the same survivors, in the order of the directory."""

    round: RoundDigest
    endorsers: MemberBits
    signatures: Annotated[tuple[bytes, ...], Rows(64)]
