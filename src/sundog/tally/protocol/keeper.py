"""A keeper: holds seeds of masks, and tells nothing but the sum of masks over one set of survivors.

    keeper = Keeper.open(...)           keeper.reply is the advertisement of its key
    keeper.find_unusable(survivors)     whose seeds do not open here, for the tally to leave out
    keeper.endorse(survivors)           a signature on the survivors, the only one in this round
    keeper.reveal(endorsements)         the sums of masks, once a quorum of keepers endorsed the same survivors

**Store `keeper.to_bytes()` before you send a reply**: only the state remembers which survivors were endorsed. Endorsing
computes the sums and deletes the key that opens seeds.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sundog.errors import TallyError
from sundog.tally.protocol.agreement import compute_public_key
from sundog.tally.protocol.announcement import check_parameters
from sundog.tally.protocol.client_memory import ClientMemory
from sundog.tally.protocol.contribution_check import check_sealed_seeds
from sundog.tally.protocol.identity import NO_SIGNATURE, check_sender, sign
from sundog.tally.protocol.key_derivation import hash_parts
from sundog.tally.protocol.mask_stream import MaskStream
from sundog.tally.protocol.seed_sealing import commit_to_seed, derive_part_mask, list_parts, open_seeds
from sundog.tally.wire.codecs import U32, Blob, Vector, VectorCells
from sundog.tally.wire.keeper_messages import KeeperAdvertisement, MaskSums, SealedSeeds, SurvivorSeeds
from sundog.tally.wire.message import One, Record, check_round
from sundog.tally.wire.round_parameters import KEEPERS, RoundParameters
from sundog.tally.wire.survivor_messages import Endorsement

MINIMUM_SUM = 100  # the least number of survivors that a keeper endorses, unless its program says otherwise

_NOTHING: Vector = np.zeros(0, dtype=np.uint32)


@dataclass(frozen=True, eq=False)
class KeeperState(Record):
    """A keeper's state in one round, as bytes that its program stores."""

    parameters: Annotated[bytes, Blob(2**16)]
    memory: Annotated[ClientMemory, One(ClientMemory)]
    minimum: U32
    private_key: Annotated[bytes, Blob(32)]  # until survivors are endorsed
    endorsed: Annotated[bytes, Blob(32)]  # the digest of the message with the survivors
    statement: Annotated[bytes, Blob(32)]
    first: VectorCells  # the sums of masks of its two parts
    second: VectorCells
    reply: Annotated[bytes, Blob(2**24)]


class Keeper:
    """One keeper in one round. `docs/tally.md` has the flow and the security argument."""

    def __init__(self, key: Ed25519PrivateKey, state: KeeperState) -> None:
        self._key, self._state = key, state
        self._identity = key.public_key().public_bytes_raw()
        self._parameters = RoundParameters.decode(state.parameters)
        self._round = self._parameters.digest

    @classmethod
    def open(
        cls,
        key: Ed25519PrivateKey,
        parameters: bytes,
        *,
        operator: bytes,
        memory: ClientMemory,
        minimum: int = MINIMUM_SUM,
    ) -> Keeper:
        """Open a round with a fresh key; raise TallyError if it is not a later one of this operator, with this keeper.

        Args:
            key: the keeper's identity.
            parameters: the operator's announcement.
            operator: the operator's public key.
            memory: of this keeper's last round (`keeper.memory`), or `ClientMemory()`.
            minimum: the least number of survivors.
        """
        checked = check_parameters(parameters, operator=operator, mode=KEEPERS)
        identity = key.public_key().public_bytes_raw()
        if identity not in checked.keepers:
            raise TallyError("a round does not name this keeper; it was refused")
        private_key, least = os.urandom(32), max(minimum, checked.minimum)
        public_key = compute_public_key(private_key)
        reply = sign(KeeperAdvertisement(checked.digest, identity, public_key, NO_SIGNATURE), key).encode()
        entered = memory.enter(checked.period)
        return cls(key, KeeperState(parameters, entered, least, private_key, b"", b"", _NOTHING, _NOTHING, reply))

    @classmethod
    def load(cls, key: Ed25519PrivateKey, data: bytes) -> Keeper:
        """Continue from the bytes that were stored last."""
        return cls(key, KeeperState.decode(data))

    def to_bytes(self) -> bytes:
        """Return the state. It holds secrets: store it where only this keeper can read it."""
        return self._state.encode()

    @property
    def reply(self) -> bytes:
        """The message to send, again if need be."""
        return self._state.reply

    @property
    def memory(self) -> ClientMemory:
        """What the next round must know."""
        return self._state.memory

    def find_unusable(self, message: bytes) -> tuple[bytes, ...]:
        """Return the identities in `SurvivorSeeds` whose contributions this keeper would refuse to endorse."""
        self._expect_key()
        found = []
        for seeds in self._decode(message).members:
            try:
                self._open(seeds)
            except TallyError:
                found.append(seeds.identity)
        return tuple(found)

    def endorse(self, message: bytes) -> bytes:
        """Check the `SurvivorSeeds` and return an `Endorsement` of them."""
        received = hashlib.sha256(message).digest()
        if self._state.endorsed == received:
            return self._state.reply
        self._expect_key()
        members = self._decode(message).members
        if len(members) < self._state.minimum:
            raise TallyError(f"{len(members)} people are in a sum, {self._state.minimum} must be; it was refused")
        if any(a.identity >= b.identity for a, b in pairwise(members)):
            raise TallyError("survivors are not sorted or one is there twice; they were refused")
        first, second = self._sum_masks(members)
        statement = hash_contributions(self._round, members)
        reply = sign(Endorsement(self._round, self._identity, statement, NO_SIGNATURE), self._key).encode()
        self._state = replace(
            self._state,
            private_key=b"",
            endorsed=received,
            statement=statement,
            first=first,
            second=second,
            reply=reply,
        )
        return reply

    def reveal(self, endorsements: Sequence[bytes]) -> bytes:
        """Check that a quorum of keepers endorsed the same survivors, and return `MaskSums` over them."""
        if not self._state.statement:
            raise TallyError("this keeper has endorsed no survivors; the message was refused")
        agreeing = {self._identity}
        for data in endorsements:
            message = Endorsement.decode(data)
            check_sender(message, self._round, frozenset(self._parameters.keepers))
            if message.statement == self._state.statement:
                agreeing.add(message.sender)
        if len(agreeing) < self._parameters.quorum:
            raise TallyError(
                f"{len(agreeing)} keepers endorsed these survivors, {self._parameters.quorum} must; it was refused"
            )
        sums = (self._state.first, self._state.second)
        return sign(
            MaskSums(self._round, self._identity, self._state.statement, *sums, NO_SIGNATURE), self._key
        ).encode()

    def _decode(self, message: bytes) -> SurvivorSeeds:
        decoded = SurvivorSeeds.decode(message)
        check_round(decoded, self._round)
        return decoded

    def _expect_key(self) -> None:
        if not self._state.private_key:
            raise TallyError("this keeper has endorsed its survivors in this round; other ones were refused")

    def _open(self, seeds: SealedSeeds) -> tuple[bytes, ...]:
        """Return the keys of the two masks of a contributor; raise TallyError if anything is wrong."""
        check_sealed_seeds(seeds, self._round, self._parameters.operator)
        me = self._parameters.keepers.index(self._identity)
        opened = open_seeds(
            seeds.seals[me],
            self._state.private_key,
            round_digest=self._round,
            parties=seeds.identity + self._identity,
        )
        for part, seed in zip(list_parts(me), opened, strict=True):
            if commit_to_seed(seed, self._round, part, seeds.identity) != seeds.commitments[part]:
                raise TallyError("a seed is not the one that was committed to; the contribution was refused")
        return tuple(
            derive_part_mask(seed, self._round, part, seeds.identity)
            for part, seed in zip(list_parts(me), opened, strict=True)
        )

    def _sum_masks(self, members: Sequence[SealedSeeds]) -> tuple[Vector, Vector]:
        cells = self._parameters.cells
        masks, sums = MaskStream(cells), (np.zeros(cells, dtype=np.uint32), np.zeros(cells, dtype=np.uint32))
        for seeds in members:
            for total, key in zip(sums, self._open(seeds), strict=True):
                masks.add(total, key)
        return sums


def hash_contributions(round_digest: bytes, members: Sequence[SealedSeeds]) -> bytes:
    """Return the digest of a set of contributions, which keepers endorse."""
    return hash_parts("contributions", round_digest, b"".join(seeds.encode() for seeds in members))
