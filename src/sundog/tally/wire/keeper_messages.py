"""Keepers: their keys, a client's only message, and the sums of masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sundog.tally.wire.codecs import MOST_CONTRIBUTIONS, Digest, Key, Rows, Signature, VectorCells
from sundog.tally.wire.message import One, Record, Records, RoundMessage, SentMessage

SEED_BYTES = 32
SEAL_BYTES = 32 + 2 * SEED_BYTES + 16  # an encapsulated key, two seeds, and the tag of AES-GCM


@dataclass(frozen=True, eq=False)
class KeeperAdvertisement(SentMessage, kind=11):
    """Keeper to clients: my HPKE key of this round."""

    key: Key
    signature: Signature


@dataclass(frozen=True, eq=False)
class SealedSeeds(Record):
    """What keepers see of a contribution. The signature covers everything before it (`ContributionStatement`)."""

    identity: Key
    credential: Signature  # of the operator
    vector_digest: Digest
    commitments: Annotated[tuple[bytes, ...], Rows(32, most=3)]
    seals: Annotated[tuple[bytes, ...], Rows(SEAL_BYTES, most=3)]
    signature: Signature


@dataclass(frozen=True, eq=False)
class ContributionStatement(RoundMessage, kind=12):
    """What a contributor signs; it is not sent."""

    seeds: Annotated[SealedSeeds, One(SealedSeeds)]


@dataclass(frozen=True, eq=False)
class Contribution(RoundMessage, kind=13):
    """Client to tally: my masked vector, and the seeds of its masks, sealed to the keepers."""

    seeds: Annotated[SealedSeeds, One(SealedSeeds)]
    vector: VectorCells


@dataclass(frozen=True, eq=False)
class SurvivorSeeds(RoundMessage, kind=14):
    """Tally to keeper: those who are in the sum, sorted by identity."""

    members: Annotated[tuple[SealedSeeds, ...], Records(SealedSeeds, most=MOST_CONTRIBUTIONS)]


@dataclass(frozen=True, eq=False)
class MaskSums(SentMessage, kind=15):
    """Keeper to tally: the sums of the masks of the two parts that this keeper holds, in the order of the parts."""

    statement: Digest
    first: VectorCells
    second: VectorCells
    signature: Signature
