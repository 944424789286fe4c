"""What the tally and every keeper check of a contribution."""

from __future__ import annotations

import hashlib

from sundog.errors import TallyError
from sundog.tally.protocol.identity import check_credential, check_signature
from sundog.tally.protocol.seed_sealing import PARTS
from sundog.tally.wire.codecs import Cells, Vector
from sundog.tally.wire.keeper_messages import ContributionStatement, SealedSeeds


def hash_vector(vector: Vector) -> bytes:
    """Return the digest of a masked vector that its contributor signs."""
    return hashlib.sha256(Cells().write(vector)).digest()


def check_sealed_seeds(seeds: SealedSeeds, round_digest: bytes, operator: bytes) -> None:
    """Raise TallyError unless an enrolled identity signed these seals and this vector's digest for this round."""
    if len(seeds.commitments) != PARTS or len(seeds.seals) != PARTS:
        raise TallyError("a contribution does not have three commitments and three seals; it was refused")
    check_credential(seeds.identity, seeds.credential, operator)
    check_signature(ContributionStatement(round_digest, seeds), seeds.identity)
