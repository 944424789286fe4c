"""The tally's side of a group of peers: collects each step's messages, and closes it when its program says so.

What a tally holds is a function of the messages that it accepted and of the steps that were closed, in order, so a
service restores it by giving it the same again. The same message twice counts once.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

import numpy as np

from sundog.errors import TallyError
from sundog.tally.protocol.directory_log import DirectoryLog
from sundog.tally.protocol.identity import check_sender
from sundog.tally.protocol.key_directory import KeyDirectory, check_advertisement
from sundog.tally.protocol.shamir import ELEMENTS, unpack_elements
from sundog.tally.protocol.survivor_statement import hash_mask_context, hash_survivors
from sundog.tally.protocol.unmasking import Unmasking
from sundog.tally.wire.codecs import Members, Vector
from sundog.tally.wire.key_messages import Advertisement, Directory, Entry
from sundog.tally.wire.message import SentMessage
from sundog.tally.wire.reveal_messages import RevealedShares
from sundog.tally.wire.round_parameters import RoundParameters
from sundog.tally.wire.share_messages import DeliveredShares, SealedShares
from sundog.tally.wire.survivor_messages import Endorsement, Endorsements, MaskedVector, Survivors

_M = TypeVar("_M", bound=SentMessage)


class Step(enum.IntEnum):
    """What a tally waits for."""

    ADVERTISEMENTS = 1
    SHARES = 2
    VECTORS = 3
    ENDORSEMENTS = 4
    REVEALS = 5
    DONE = 6
    REFUSED = 7


class PeersTally:
    """One group of one round.

    Each `add_…` takes a client's message; the `close_…` of a step moves on to the next, or refuses the round for good
    if fewer members took part than the threshold.
    """

    step: Step
    sharers: Members  # from the end of the shares on
    survivors: Members  # from the end of the vectors on

    def __init__(self, parameters: RoundParameters, *, group: int = 0) -> None:
        self._parameters, self._round, self._group = parameters, parameters.digest, group
        self.step = Step.ADVERTISEMENTS
        self._accepted: set[bytes] = set()  # digests of all messages that count
        self._senders: dict[bytes, Any] = {}  # what each sender sent in this step
        self._masked = np.zeros(parameters.cells, dtype=np.uint32)

    def add_advertisement(self, data: bytes) -> None:
        """Accept an `Advertisement` from an enrolled identity."""
        if self._has_accepted(data):
            return
        self._expect(Step.ADVERTISEMENTS)
        message = Advertisement.decode(data)
        check_advertisement(message, self._round, self._parameters.operator)
        others = [other for name, other in self._senders.items() if name != message.entry.identity]
        KeyDirectory(self._round, self._group, _sort([*others, message.entry]))  # refuses keys that others have
        self._keep(message.entry.identity, data, message.entry)

    def close_advertisements(self, log: DirectoryLog) -> None:
        """Make the directory of the group, and add it to the log."""
        self._expect(Step.ADVERTISEMENTS)
        if len(self._senders) < max(1, self._parameters.minimum):
            self._refuse(f"{len(self._senders)} members advertised keys, {self._parameters.minimum} must")
        self._directory = KeyDirectory(self._round, self._group, _sort(self._senders.values()))
        self._log, self._log_index = log, log.append(self._directory.digest)
        self._head = log.head
        self._move_to(Step.SHARES, np.ones(len(self._directory.entries), dtype=np.bool_))

    def get_directory(self, identity: bytes) -> bytes:
        """Return the `Directory` for a member, with the proofs that it asks for."""
        self._require(Step.SHARES)
        own = self._directory.entries[self._directory.find(identity)]
        head, index = self._head, self._log_index
        inclusion = self._log.prove_inclusion(index, head.size)
        consistency = self._log.prove_consistency(own.log_size, head.size)
        place = (head.size, head.root, index, inclusion, consistency)
        return Directory(self._round, self._group, self._directory.entries, *place).encode()

    def add_shares(self, data: bytes) -> None:
        """Accept the `SealedShares` of a member."""
        if self._has_accepted(data):
            return
        message = self._check(Step.SHARES, SealedShares.decode(data))
        if message.directory != self._directory.digest or len(message.sealed) != len(self._directory.entries) - 1:
            raise TallyError("sealed shares are not for this group; they were refused")
        self._keep(message.sender, data, message.sealed)

    def close_shares(self) -> None:
        """Fix the sharers: those between whom there are masks."""
        self.sharers, self._sealed = self._close(Step.SHARES)

    def get_delivered(self, identity: bytes) -> bytes:
        """Return the `DeliveredShares` for a sharer."""
        self._require(Step.VECTORS)
        me = self._directory.find(identity)
        senders = [position for position in np.flatnonzero(self.sharers) if position != me]
        names = self._directory.identities
        sealed = tuple(self._sealed[names[sender]][me - (sender < me)] for sender in senders)
        return DeliveredShares(self._round, self.sharers, sealed).encode()

    def add_vector(self, data: bytes) -> None:
        """Add the `MaskedVector` of a sharer to the sum."""
        if self._has_accepted(data):
            return
        message = self._check(Step.VECTORS, MaskedVector.decode(data))
        if message.vector.size != self._parameters.cells:
            raise TallyError(f"a vector has {message.vector.size} cells, not {self._parameters.cells}; it was refused")
        self._keep(message.sender, data, None)
        self._masked += message.vector

    def close_vectors(self) -> None:
        """Fix the survivors: those whose vectors are in the sum. A later vector is refused."""
        self.survivors, _ = self._close(Step.VECTORS)
        context = hash_mask_context(self._directory.digest, self.sharers)
        self._statement = hash_survivors(context, self.survivors, self._head)

    def get_survivors(self) -> bytes:
        """Return the `Survivors`, the same for all."""
        self._require(Step.ENDORSEMENTS)
        return Survivors(self._round, self.survivors).encode()

    def add_endorsement(self, data: bytes) -> None:
        """Accept the `Endorsement` of a survivor."""
        if self._has_accepted(data):
            return
        message = self._check(Step.ENDORSEMENTS, Endorsement.decode(data))
        if message.statement != self._statement:
            raise TallyError("an endorsement is not of these survivors; it was refused")
        self._keep(message.sender, data, message.signature)

    def close_endorsements(self) -> None:
        """Fix the signatures that survivors get: as many as the threshold are enough."""
        self._endorsers, self._signatures = self._close(Step.ENDORSEMENTS)
        self._endorsers[np.flatnonzero(self._endorsers)[self._directory.threshold :]] = False

    def get_endorsements(self) -> bytes:
        """Return the `Endorsements`, the same for all."""
        self._require(Step.REVEALS)
        names = [self._directory.identities[position] for position in np.flatnonzero(self._endorsers)]
        signatures = tuple(self._signatures[name] for name in names)
        return Endorsements(self._round, self._endorsers, signatures).encode()

    def add_reveal(self, data: bytes) -> None:
        """Accept the `RevealedShares` of a survivor."""
        if self._has_accepted(data):
            return
        message = self._check(Step.REVEALS, RevealedShares.decode(data))
        if len(message.shares) != self.sharers.sum():
            raise TallyError("revealed shares are not one for each sharer; they were refused")
        self._keep(message.sender, data, unpack_elements(b"".join(message.shares)).reshape(-1, ELEMENTS))

    def close_reveals(self) -> Vector:
        """Return the sum of the survivors' vectors, modulo 2³²."""
        revealed, shares = self._close(Step.REVEALS)
        helpers = np.flatnonzero(revealed)
        stacked = np.stack([shares[self._directory.identities[helper]] for helper in helpers])
        return Unmasking(self._directory, self.sharers, self.survivors).unmask(self._masked, helpers, stacked)

    def _has_accepted(self, data: bytes) -> bool:
        return hashlib.sha256(data).digest() in self._accepted

    def _check(self, step: Step, message: _M) -> _M:
        self._expect(step)
        check_sender(message, self._round, self._may_send)
        return message

    def _expect(self, step: Step) -> None:
        if self.step != step:
            raise TallyError(f"a message for {step.name.lower()} came during {self.step.name.lower()}; it was refused")

    def _require(self, step: Step) -> None:
        """Raise TallyError unless this step has begun."""
        if not step <= self.step <= Step.DONE:
            raise TallyError(f"this group is at {self.step.name.lower()}, not yet or never at {step.name.lower()}")

    def _keep(self, sender: bytes, data: bytes, content: Any) -> None:
        if sender in self._senders:
            raise TallyError("a member sent two different messages in one step; the second was refused")
        self._senders[sender] = content
        self._accepted.add(hashlib.sha256(data).digest())

    def _close(self, step: Step) -> tuple[Members, dict[bytes, Any]]:
        """End a step, and return who took part and what they sent."""
        self._expect(step)
        senders = self._senders
        members = np.array([name in senders for name in self._directory.identities])
        if members.sum() < self._directory.threshold:
            what = step.name.lower()
            self._refuse(f"{members.sum()} of {members.size} members sent {what}, {self._directory.threshold} must")
        self._move_to(Step(step + 1), members)
        return members.copy(), senders

    def _move_to(self, step: Step, members: Members) -> None:
        """Begin a step, in which only these members may send."""
        self.step, self._senders = step, {}
        self._may_send = frozenset(self._directory.identities[position] for position in np.flatnonzero(members))

    def _refuse(self, why: str) -> NoReturn:
        self.step = Step.REFUSED
        raise TallyError(f"the round is refused: {why}")


def _sort(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.identity))
