"""A group of peers in memory: members, a tally, and what goes between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sundog.tally.protocol.announcement import announce_peers
from sundog.tally.protocol.client_memory import ClientMemory
from sundog.tally.protocol.directory_log import DirectoryLog
from sundog.tally.protocol.identity import Identity, issue_credential
from sundog.tally.protocol.peers_client import PeersClient
from sundog.tally.protocol.peers_tally import PeersTally
from sundog.tally.wire.codecs import Vector
from sundog.tally.wire.round_parameters import RoundParameters


@dataclass
class Operator:
    """Enrols members and announces rounds."""

    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public_key(self) -> bytes:
        return self.key.public_key().public_bytes_raw()

    def enrol(self, count: int) -> list[Identity]:
        """Return members in the order of their identities, which is that of the directory."""
        keys = [Ed25519PrivateKey.generate() for _ in range(count)]
        members = [Identity(key, issue_credential(key.public_key().public_bytes_raw(), self.key)) for key in keys]
        return sorted(members, key=lambda member: member.public_key)


class PeersGroup:
    """Members by number; member k contributes 1 in cell k, so the sum shows who is in it, and a 2 is a replay."""

    def __init__(self, size: int, *, operator: Operator | None = None, minimum_group: int = 3, period: int = 1) -> None:
        self.operator = operator or Operator()
        self.identities = self.operator.enrol(size)
        self.log = DirectoryLog()
        self.minimum_group = minimum_group
        self.memories = [ClientMemory()] * size
        self.open(announce_peers(self.operator.key, period=period, cells=size, minimum=3))

    def open(self, parameters: RoundParameters) -> None:
        self.parameters = parameters
        self.tally = PeersTally(parameters)
        self.clients = [self.join(number) for number in range(len(self.identities))]

    def join(self, number: int) -> PeersClient:
        return PeersClient.join(
            self.identities[number],
            self.parameters.encode(),
            operator=self.operator.public_key,
            memory=self.memories[number],
            minimum_group=self.minimum_group,
        )

    @property
    def everybody(self) -> range:
        return range(len(self.identities))

    def name(self, number: int) -> bytes:
        return self.identities[number].public_key

    def vector(self, number: int) -> Vector:
        vector = np.zeros(len(self.identities), dtype=np.uint32)
        vector[number] = 1
        return vector

    def restart(self, number: int) -> PeersClient:
        """Replace a member by one that continues from the stored bytes."""
        self.clients[number] = PeersClient.load(self.identities[number], self.clients[number].to_bytes())
        return self.clients[number]

    def advertise(self, members: Iterable[int] | None = None) -> None:
        for number in self.everybody if members is None else members:
            self.tally.add_advertisement(self.clients[number].reply)
        self.tally.close_advertisements(self.log)

    def share(self, members: Iterable[int] | None = None) -> None:
        for number in self.everybody if members is None else members:
            self.tally.add_shares(self.clients[number].share(self.tally.get_directory(self.name(number))))
        self.tally.close_shares()

    def mask(self, members: Iterable[int] | None = None) -> None:
        for number in self.everybody if members is None else members:
            delivered = self.tally.get_delivered(self.name(number))
            self.tally.add_vector(self.clients[number].mask(delivered, self.vector(number)))
        self.tally.close_vectors()

    def endorse(self, members: Iterable[int] | None = None) -> None:
        for number in self.everybody if members is None else members:
            self.tally.add_endorsement(self.clients[number].endorse(self.tally.get_survivors()))
        self.tally.close_endorsements()

    def reveal(self, members: Iterable[int] | None = None) -> Vector:
        for number in self.everybody if members is None else members:
            self.tally.add_reveal(self.clients[number].reveal(self.tally.get_endorsements()))
        return self.tally.close_reveals()

    def run_until_masked(self) -> None:
        self.advertise()
        self.share()
        self.mask()
