"""A member of a group of peers: double masking (Bonawitz et al. 2017), without trusting the tally.

    client = PeersClient.join(...)      client.reply is the advertisement of keys
    client.share(directory)             shares of two secrets, sealed to each other member
    client.mask(delivered, vector)      the masked vector
    client.endorse(survivors)           a signature on whose vectors are in the sum
    client.reveal(endorsements)         one share for each member, of one of its two secrets

Each step returns the message to send. **Store `client.to_bytes()` before you send it**, and continue from there after
a restart (`PeersClient.load`): only the state remembers which survivors this member has endorsed, so one who goes back
to an older state could be made to release both kinds of share. The same message again gets the same answer; any other
message that does not come next is refused, and changes nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from sundog.errors import TallyError
from sundog.tally.protocol.agreement import Agreement
from sundog.tally.protocol.announcement import check_parameters
from sundog.tally.protocol.client_memory import ClientMemory
from sundog.tally.protocol.directory_log import LogHead, check_consistency, check_inclusion
from sundog.tally.protocol.identity import NO_SIGNATURE, Identity, check_signature, sign
from sundog.tally.protocol.key_directory import KeyDirectory
from sundog.tally.protocol.mask_stream import MaskStream
from sundog.tally.protocol.peers_secrets import (
    PeersSecrets,
    derive_pair_mask,
    derive_self_mask,
)
from sundog.tally.protocol.peers_state import NOBODY, PeersState, Stage
from sundog.tally.protocol.shamir import pack_elements, share_secrets, unpack_elements
from sundog.tally.protocol.share_sealing import open_shares, seal_shares
from sundog.tally.protocol.survivor_statement import hash_mask_context, hash_survivors
from sundog.tally.wire.codecs import Members, Vector
from sundog.tally.wire.key_messages import Advertisement, Directory, Entry
from sundog.tally.wire.message import check_round
from sundog.tally.wire.reveal_messages import RevealedShares
from sundog.tally.wire.round_parameters import PEERS, RoundParameters
from sundog.tally.wire.share_messages import SHARE_BYTES, DeliveredShares, SealedShares
from sundog.tally.wire.survivor_messages import Endorsement, Endorsements, MaskedVector, Survivors

MINIMUM_GROUP = 100  # the least group that a client joins, unless its program says otherwise


class PeersClient:
    """One identity in one round. `docs/tally.md` has the flow and the security argument."""

    def __init__(self, identity: Identity, state: PeersState) -> None:
        self._identity, self._state = identity, state
        self._parameters = RoundParameters.decode(state.parameters)
        self._agreed: dict[bytes, bytes] = {}  # secrets of channels by the other key, computed once

    @classmethod
    def join(
        cls,
        identity: Identity,
        parameters: bytes,
        *,
        operator: bytes,
        memory: ClientMemory,
        minimum_group: int = MINIMUM_GROUP,
    ) -> PeersClient:
        """Join a round with fresh keys; raise TallyError if the round is not a later one of this operator.

        Args:
            identity: who joins; its private key is not part of the state.
            parameters: the operator's announcement.
            operator: the operator's public key, from a source other than the tally.
            memory: of this identity's last round (`client.memory`), or `ClientMemory()`.
            minimum_group: the least number of members in the group.
        """
        checked = check_parameters(parameters, operator=operator, mode=PEERS)
        seed, member = os.urandom(32), identity.public_key
        secrets = PeersSecrets(seed, checked.digest, member)
        entry = Entry(member, identity.credential, *secrets.public_keys, memory.log_size, NO_SIGNATURE)
        unsigned = Advertisement(checked.digest, entry)
        signature = identity.private_key.sign(unsigned.signed_part)
        reply = replace(unsigned, entry=replace(entry, signature=signature)).encode()
        entered, minimum = memory.enter(checked.period), max(minimum_group, checked.minimum)
        bare = PeersState(
            Stage.ADVERTISED, parameters, entered, minimum, seed, b"", NOBODY, (), NOBODY, b"", b"", reply
        )
        return cls(identity, bare)

    @classmethod
    def load(cls, identity: Identity, data: bytes) -> PeersClient:
        """Continue from the bytes that were stored last."""
        return cls(identity, PeersState.decode(data))

    def to_bytes(self) -> bytes:
        """Return the state. It holds secrets: store it where only this member can read it."""
        return self._state.encode()

    @property
    def reply(self) -> bytes:
        """The message to send, again if need be."""
        return self._state.reply

    @property
    def memory(self) -> ClientMemory:
        """What the next round must know, whether or not this one ends well."""
        return self._state.memory

    def share(self, message: bytes) -> bytes:
        """Check the `Directory` of the group and return `SealedShares`."""
        return self._advance(Stage.SHARED, message, lambda: self._share(Directory.decode(message)))

    def mask(self, message: bytes, vector: Vector) -> bytes:
        """Open the `DeliveredShares` and return the vector as a `MaskedVector`.

        From here on the group can compute this member's masks, so its own secrets are deleted.
        """
        return self._advance(Stage.MASKED, message, lambda: self._mask(DeliveredShares.decode(message), vector))

    def endorse(self, message: bytes) -> bytes:
        """Check the `Survivors` and return an `Endorsement` of them, the only one in this round."""
        return self._advance(Stage.ENDORSED, message, lambda: self._endorse(Survivors.decode(message)))

    def reveal(self, message: bytes) -> bytes:
        """Check that enough survivors endorsed the same (`Endorsements`) and return `RevealedShares`."""
        return self._advance(Stage.REVEALED, message, lambda: self._reveal(Endorsements.decode(message)))

    def _advance(self, stage: Stage, message: bytes, work: Callable[[], PeersState]) -> bytes:
        """Do a step once: nothing changes unless all of it succeeds."""
        received = hashlib.sha256(message).digest()
        if not (self._state.stage == stage and self._state.received == received):
            if self._state.stage != stage - 1:
                done = Stage(self._state.stage).name.lower()
                raise TallyError(
                    f"a message for {stage.name.lower()} came after this client had {done}; it was refused"
                )
            self._state = replace(work(), stage=stage, received=received)
        return self._state.reply

    @cached_property
    def _round(self) -> bytes:
        return self._parameters.digest

    @property
    def _secrets(self) -> PeersSecrets:
        return PeersSecrets(self._state.seed, self._round, self._identity.public_key)

    @cached_property
    def _directory(self) -> KeyDirectory:
        message = Directory.decode(self._state.directory)  # which was checked before it was kept
        return KeyDirectory(self._round, message.group, message.entries)

    @cached_property
    def _me(self) -> int:
        return self._directory.find(self._identity.public_key)

    def _share(self, message: Directory) -> PeersState:
        directory, head = self._check_directory(message)
        coefficients = self._secrets.draw_coefficients(directory.digest, directory.threshold)
        shares = share_secrets(self._secrets.get_shared(), coefficients, len(directory.entries))
        packed = [pack_elements(row) for row in shares]
        me = directory.find(self._identity.public_key)
        sealed = tuple(
            seal_shares(
                packed[position],
                self._agree(other),
                directory=directory.digest,
                sender=self._identity.public_key,
                receiver=other.identity,
            )
            for position, other in enumerate(directory.entries)
            if position != me
        )
        unsigned = SealedShares(self._round, self._identity.public_key, directory.digest, sealed, NO_SIGNATURE)
        return replace(
            self._state,
            memory=self.memory.see(head),
            directory=message.encode(),
            shares=(packed[me],),
            reply=sign(unsigned, self._identity.private_key).encode(),
        )

    def _check_directory(self, message: Directory) -> tuple[KeyDirectory, LogHead]:
        """Return the directory and the log head; raise TallyError unless everything about the group is sound."""
        check_round(message, self._round)
        directory = KeyDirectory(self._round, message.group, message.entries)
        if len(directory.entries) < self._state.minimum_group:
            raise TallyError(
                f"a group has {len(directory.entries)} members, and this client joins none "
                f"below {self._state.minimum_group}; it was refused"
            )
        head = LogHead(message.log_size, message.log_root)
        check_inclusion(directory.digest, message.log_index, head, message.inclusion)
        check_consistency(self.memory.log_head, head, message.consistency)
        directory.check_entries(self._parameters.operator, Advertisement.decode(self._state.reply).entry)
        return directory, head

    def _agree(self, other: Entry) -> bytes:
        if other.channel_key not in self._agreed:
            self._agreed[other.channel_key] = self._channel.agree(other.channel_key)
        return self._agreed[other.channel_key]

    @cached_property
    def _channel(self) -> Agreement:
        return Agreement(self._secrets.channel_private_key)

    def _mask(self, message: DeliveredShares, vector: Vector) -> PeersState:
        check_round(message, self._round)
        if vector.dtype != np.uint32 or vector.shape != (self._parameters.cells,):
            raise TallyError(f"a vector must have {self._parameters.cells} cells of type uint32")
        self._check_members("shared", message.sharers, includes_me=True)
        positions = [int(position) for position in np.flatnonzero(message.sharers) if position != self._me]
        if len(message.sealed) != len(positions):
            raise TallyError(
                f"{len(message.sealed)} sealed shares came from {len(positions)} members; they were refused"
            )
        shares = {self._me: self._state.shares[0]}
        for position, sealed in zip(positions, message.sealed, strict=True):
            other = self._directory.entries[position]
            shares[position] = open_shares(
                sealed,
                self._agree(other),
                directory=self._directory.digest,
                sender=other.identity,
                receiver=self._identity.public_key,
            )
            unpack_elements(shares[position])  # refuses numbers outside the field
        masked = self._add_masks(vector, message.sharers)
        unsigned = MaskedVector(self._round, self._identity.public_key, masked, NO_SIGNATURE)
        self._agreed.clear()
        return replace(
            self._state,
            seed=b"",
            sharers=message.sharers,
            shares=tuple(shares[position] for position in sorted(shares)),
            reply=sign(unsigned, self._identity.private_key).encode(),
        )

    def _add_masks(self, vector: Vector, sharers: Members) -> Vector:
        """Return the vector plus the self mask, and plus or minus a mask for each other sharer."""
        context = hash_mask_context(self._directory.digest, sharers)
        me, secrets = self._identity.public_key, self._secrets
        masks, agreement = MaskStream(vector.size), Agreement(secrets.mask_private_key)
        total = vector.copy()
        masks.add(total, derive_self_mask(secrets.self_secret, context, me))
        for position in np.flatnonzero(sharers):
            other = self._directory.entries[position]
            if position > self._me:
                masks.add(total, derive_pair_mask(agreement.agree(other.mask_key), context, me, other.identity))
            elif position < self._me:
                masks.subtract(total, derive_pair_mask(agreement.agree(other.mask_key), context, other.identity, me))
        return total

    def _endorse(self, message: Survivors) -> PeersState:
        check_round(message, self._round)
        self._check_members("survived", message.survivors, among=self._state.sharers, includes_me=True)
        context = hash_mask_context(self._directory.digest, self._state.sharers)
        statement = hash_survivors(context, message.survivors, self.memory.log_head)
        unsigned = Endorsement(self._round, self._identity.public_key, statement, NO_SIGNATURE)
        reply = sign(unsigned, self._identity.private_key).encode()
        return replace(self._state, survivors=message.survivors, statement=statement, reply=reply)

    def _reveal(self, message: Endorsements) -> PeersState:
        check_round(message, self._round)
        self._check_members("endorsed", message.endorsers, among=self._state.survivors)
        endorsers = np.flatnonzero(message.endorsers)
        if len(message.signatures) != len(endorsers):
            raise TallyError(f"{len(message.signatures)} signatures came from {len(endorsers)} members; it was refused")
        for position, signature in zip(endorsers, message.signatures, strict=True):
            identity = self._directory.identities[position]
            check_signature(Endorsement(self._round, identity, self._state.statement, signature), identity)
        survived = self._state.survivors[self._state.sharers]
        shares = tuple(  # the mask secret's share comes first, the self secret's second
            share[SHARE_BYTES:] if alive else share[:SHARE_BYTES]
            for share, alive in zip(self._state.shares, survived, strict=True)
        )
        unsigned = RevealedShares(self._round, self._identity.public_key, shares, NO_SIGNATURE)
        return replace(self._state, shares=(), reply=sign(unsigned, self._identity.private_key).encode())

    def _check_members(
        self, what: str, members: Members, *, among: Members | None = None, includes_me: bool = False
    ) -> None:
        """Raise TallyError unless these are at least the threshold of the group, among those of the step before."""
        size, threshold = len(self._directory.entries), self._directory.threshold
        if members.size != size or (among is not None and (members & ~among).any()):
            raise TallyError(f"the members who {what} are not of this group; the message was refused")
        if members.sum() < threshold:
            raise TallyError(f"{members.sum()} of {size} members {what}, {threshold} must; the message was refused")
        if includes_me and not members[self._me]:
            raise TallyError(f"this client is not among the members who {what}; the message was refused")
