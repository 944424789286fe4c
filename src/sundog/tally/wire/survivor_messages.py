"""Peers, third and fourth step: masked vectors, and what the survivors sign before any share is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sundog.tally.wire.codecs import Digest, MemberBits, Rows, Signature, VectorCells
from sundog.tally.wire.message import RoundMessage, SentMessage


@dataclass(frozen=True, eq=False)
class MaskedVector(SentMessage, kind=6):
    """Client to tally: my vector, with a mask on each cell."""

    vector: VectorCells
    signature: Signature


@dataclass(frozen=True, eq=False)
class Survivors(RoundMessage, kind=7):
    """Tally to client: whose masked vectors are in the sum."""

    survivors: MemberBits


@dataclass(frozen=True, eq=False)
class Endorsement(SentMessage, kind=8):
    """Client or keeper to tally: these are the survivors that I was told of (`statement`)."""

    statement: Digest
    signature: Signature


@dataclass(frozen=True, eq=False)
class Endorsements(RoundMessage, kind=9):
    """Tally to client: the signatures of those who endorsed the same survivors, in the order of the directory."""

    endorsers: MemberBits
    signatures: Annotated[tuple[bytes, ...], Rows(64)]
