"""A contributor to a round with keepers: one message, and nothing to do afterwards.

    message, memory = contribute(...)

**Store the memory before you send the message**, and send the same message again if need be: a second call for the same
round is refused.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sundog.errors import TallyError
from sundog.tally.protocol.agreement import check_public_key
from sundog.tally.protocol.announcement import check_parameters
from sundog.tally.protocol.client_memory import ClientMemory
from sundog.tally.protocol.contribution_check import hash_vector
from sundog.tally.protocol.identity import NO_SIGNATURE, Identity, check_sender
from sundog.tally.protocol.mask_stream import MaskStream
from sundog.tally.protocol.seed_sealing import PARTS, commit_to_seed, derive_part_mask, seal_seeds
from sundog.tally.wire.codecs import Vector
from sundog.tally.wire.keeper_messages import (
    SEED_BYTES,
    Contribution,
    ContributionStatement,
    KeeperAdvertisement,
    SealedSeeds,
)
from sundog.tally.wire.round_parameters import KEEPERS, RoundParameters


@dataclass(frozen=True)
class KeepersTerms:
    """What a client demands of a round, from a source other than the tally.

    Seeds are sealed for the exact parameters of the round, so keepers can open them only under terms that the client
    has accepted.
    """

    operator: bytes
    keepers: frozenset[bytes]  # their identities
    minimum: int = 100  # the least number of people in the sum
    quorum: int = 2  # the least number of keepers that must agree on the survivors

    def check(self, parameters: bytes) -> RoundParameters:
        """Return the parameters of a round; raise TallyError if they do not meet these terms."""
        checked = check_parameters(parameters, operator=self.operator, mode=KEEPERS)
        if frozenset(checked.keepers) != self.keepers:
            raise TallyError("a round names other keepers than this client trusts; it was refused")
        if checked.minimum < self.minimum or checked.quorum < self.quorum:
            raise TallyError(
                f"a round allows sums of {checked.minimum} people and a quorum of {checked.quorum} keepers; "
                f"this client demands {self.minimum} and {self.quorum}"
            )
        return checked


def contribute(
    identity: Identity,
    parameters: bytes,
    advertisements: Sequence[bytes],
    vector: Vector,
    *,
    terms: KeepersTerms,
    memory: ClientMemory,
) -> tuple[bytes, ClientMemory]:
    """Return a `Contribution` and the memory for the next round.

    Args:
        identity: who contributes.
        parameters: the operator's announcement.
        advertisements: a `KeeperAdvertisement` of each keeper.
        vector: the cells to add to the sum.
        terms: what the round must be like.
        memory: of this identity's last round, or `ClientMemory()`.
    """
    checked = terms.check(parameters)
    if vector.dtype != np.uint32 or vector.shape != (checked.cells,):
        raise TallyError(f"a vector must have {checked.cells} cells of type uint32")
    keys = _check_keys(checked, advertisements)
    entered, member, digest = memory.enter(checked.period), identity.public_key, checked.digest
    seeds = tuple(os.urandom(SEED_BYTES) for _ in range(PARTS))
    masked, masks = vector.copy(), MaskStream(vector.size)
    for part, seed in enumerate(seeds):
        masks.add(masked, derive_part_mask(seed, digest, part, member))
    commitments = tuple(commit_to_seed(seed, digest, part, member) for part, seed in enumerate(seeds))
    seals = tuple(
        seal_seeds(seeds, position, keys[keeper], round_digest=digest, parties=member + keeper)
        for position, keeper in enumerate(checked.keepers)
    )
    unsigned = SealedSeeds(member, identity.credential, hash_vector(masked), commitments, seals, NO_SIGNATURE)
    signature = identity.private_key.sign(ContributionStatement(digest, unsigned).signed_part)
    return Contribution(digest, replace(unsigned, signature=signature), masked).encode(), entered


def _check_keys(parameters: RoundParameters, advertisements: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the HPKE key of each keeper."""
    keys: dict[bytes, bytes] = {}
    for data in advertisements:
        message = KeeperAdvertisement.decode(data)
        check_sender(message, parameters.digest, frozenset(parameters.keepers))
        check_public_key(message.key)
        if message.sender in keys or message.key in keys.values():
            raise TallyError("a keeper or its key was advertised twice; it was refused")
        keys[message.sender] = message.key
    if len(keys) != len(parameters.keepers):
        raise TallyError(f"{len(keys)} of {len(parameters.keepers)} keepers have advertised keys; all must")
    return keys
