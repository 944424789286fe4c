"""The tally's side of a round with keepers: collects contributions, asks the keepers, and unmasks the sum."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from sundog.errors import TallyError
from sundog.tally.protocol.contribution_check import check_sealed_seeds, hash_vector
from sundog.tally.protocol.identity import check_sender
from sundog.tally.protocol.keeper import hash_contributions
from sundog.tally.protocol.seed_sealing import PARTS, list_parts
from sundog.tally.wire.codecs import Vector
from sundog.tally.wire.keeper_messages import Contribution, MaskSums, SealedSeeds, SurvivorSeeds
from sundog.tally.wire.message import check_round
from sundog.tally.wire.round_parameters import RoundParameters
from sundog.tally.wire.survivor_messages import Endorsement


class KeepersTally:
    """One round: `add_contribution`, `close`, then what the keepers send, then `unmask`."""

    def __init__(self, parameters: RoundParameters) -> None:
        self._parameters, self._round = parameters, parameters.digest
        self._contributions: dict[bytes, Contribution] = {}
        self._survivors: tuple[SealedSeeds, ...] = ()
        self._statement = b""
        self._endorsements: dict[bytes, bytes] = {}
        self._sums: dict[bytes, MaskSums] = {}

    def add_contribution(self, data: bytes) -> None:
        """Accept a `Contribution`, one from each identity. The same again counts once."""
        message = Contribution.decode(data)
        identity = message.seeds.identity
        if self._contributions.get(identity) == message:
            return
        if self._statement:
            raise TallyError("a contribution came after the round was closed; it was refused")
        if identity in self._contributions:
            raise TallyError("an identity sent two different contributions; the second was refused")
        check_round(message, self._round)
        check_sealed_seeds(message.seeds, self._round, self._parameters.operator)
        if message.vector.size != self._parameters.cells or hash_vector(message.vector) != message.seeds.vector_digest:
            raise TallyError("a vector is not the one that its contributor signed; it was refused")
        self._contributions[identity] = message

    def close(self, unusable: Collection[bytes] = ()) -> bytes:
        """Fix the survivors, without those that a keeper found unusable, and return their `SurvivorSeeds`.

        It may be closed again with more of those, until a keeper has endorsed.
        """
        if self._endorsements:
            raise TallyError("a keeper has endorsed the survivors; they cannot change any more")
        chosen = sorted(self._contributions.keys() - set(unusable))
        if len(chosen) < max(1, self._parameters.minimum):
            raise TallyError(f"the round is refused: {len(chosen)} contributed, {self._parameters.minimum} must")
        self._survivors = tuple(self._contributions[identity].seeds for identity in chosen)
        self._statement = hash_contributions(self._round, self._survivors)
        return SurvivorSeeds(self._round, self._survivors).encode()

    @property
    def survivors(self) -> tuple[bytes, ...]:
        """The identities in the sum."""
        return tuple(seeds.identity for seeds in self._survivors)

    def add_endorsement(self, data: bytes) -> None:
        """Accept a keeper's `Endorsement` of the survivors."""
        message = Endorsement.decode(data)
        check_sender(message, self._round, frozenset(self._parameters.keepers))
        self._check_statement(message.statement)
        self._endorsements[message.sender] = data

    def get_endorsements(self) -> tuple[bytes, ...]:
        """Return the endorsements for the keepers; raise TallyError if there is no quorum yet."""
        if len(self._endorsements) < self._parameters.quorum:
            raise TallyError(f"{len(self._endorsements)} keepers have endorsed, {self._parameters.quorum} must")
        return tuple(self._endorsements.values())

    def add_mask_sums(self, data: bytes) -> None:
        """Accept a keeper's `MaskSums`."""
        message = MaskSums.decode(data)
        check_sender(message, self._round, frozenset(self._parameters.keepers))
        self._check_statement(message.statement)
        if message.first.size != self._parameters.cells or message.second.size != self._parameters.cells:
            raise TallyError("sums of masks have another number of cells; they were refused")
        self._sums[message.sender] = message

    def unmask(self) -> Vector:
        """Return the sum of the survivors' vectors, modulo 2³²; raise TallyError unless two keepers answered alike."""
        parts: dict[int, Vector] = {}
        for position, keeper in enumerate(self._parameters.keepers):
            if keeper in self._sums:
                answer = self._sums[keeper]
                for part, total in zip(list_parts(position), (answer.first, answer.second), strict=True):
                    if not np.array_equal(parts.setdefault(part, total), total):
                        raise TallyError("two keepers gave different sums for one part; the round is refused")
        if len(parts) < PARTS:
            raise TallyError(f"{len(self._sums)} keepers gave their sums of masks, two must")
        total = np.zeros(self._parameters.cells, dtype=np.uint32)
        for identity in self.survivors:
            total += self._contributions[identity].vector
        for masks in parts.values():
            total -= masks
        return total

    def _check_statement(self, statement: bytes) -> None:
        if not self._statement or statement != self._statement:
            raise TallyError("a keeper's message is about other survivors; it was refused")
