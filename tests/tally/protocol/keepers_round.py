"""A round with keepers in memory: contributors, three keepers and a tally."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.tally.protocol.peers_group import Operator

from sundog.tally.protocol.announcement import announce_keepers
from sundog.tally.protocol.client_memory import ClientMemory
from sundog.tally.protocol.keeper import Keeper
from sundog.tally.protocol.keepers_client import KeepersTerms, contribute
from sundog.tally.protocol.keepers_tally import KeepersTally
from sundog.tally.wire.codecs import Vector


def make_keeper_keys() -> list[Ed25519PrivateKey]:
    """Return three keys in the order of the identities."""
    keys = [Ed25519PrivateKey.generate() for _ in range(3)]
    return sorted(keys, key=lambda key: key.public_key().public_bytes_raw())


class KeepersRound:
    """Contributors by number; contributor k contributes 1 in cell k."""

    def __init__(self, size: int, *, quorum: int = 2, minimum: int = 3) -> None:
        self.operator, self.keys = Operator(), make_keeper_keys()
        self.identities = self.operator.enrol(size)
        self.names = tuple(key.public_key().public_bytes_raw() for key in self.keys)
        self.parameters = announce_keepers(
            self.operator.key, period=1, cells=size, minimum=minimum, keepers=self.names, quorum=quorum
        )
        self.keepers = [self.open(number) for number in range(3)]
        self.tally = KeepersTally(self.parameters)

    def open(self, number: int, memory: ClientMemory | None = None) -> Keeper:
        return Keeper.open(
            self.keys[number],
            self.parameters.encode(),
            operator=self.operator.public_key,
            memory=memory or ClientMemory(),
            minimum=3,
        )

    def restart(self, number: int) -> Keeper:
        """Replace a keeper by one that continues from the stored bytes."""
        self.keepers[number] = Keeper.load(self.keys[number], self.keepers[number].to_bytes())
        return self.keepers[number]

    def vector(self, number: int) -> Vector:
        vector = np.zeros(len(self.identities), dtype=np.uint32)
        vector[number] = 1
        return vector

    def contribute(self, number: int, vector: Vector | None = None, memory: ClientMemory | None = None) -> bytes:
        message, _ = contribute(
            self.identities[number],
            self.parameters.encode(),
            [keeper.reply for keeper in self.keepers],
            self.vector(number) if vector is None else vector,
            terms=self.terms,
            memory=memory or ClientMemory(),
        )
        return message

    @property
    def terms(self) -> KeepersTerms:
        return KeepersTerms(self.operator.public_key, frozenset(self.names), minimum=3)

    def collect(self, members: Iterable[int] | None = None) -> None:
        for number in range(len(self.identities)) if members is None else members:
            self.tally.add_contribution(self.contribute(number))

    def unmask(self, keepers: Iterable[int] = range(3)) -> Vector:
        chosen = [self.keepers[number] for number in keepers]
        request = self.tally.close()
        for keeper in chosen:
            self.tally.add_endorsement(keeper.endorse(request))
        for keeper in chosen:
            self.tally.add_mask_sums(keeper.reveal(self.tally.get_endorsements()))
        return self.tally.unmask()
