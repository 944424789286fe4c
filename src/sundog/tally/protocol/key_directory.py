"""The directory of a group: its members and their keys of the round, as every member checks it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from sundog.errors import TallyError
from sundog.tally.protocol.agreement import check_public_key
from sundog.tally.protocol.identity import check_credential, check_signature
from sundog.tally.protocol.key_derivation import hash_parts
from sundog.tally.thresholds import compute_threshold
from sundog.tally.wire.codecs import MOST_MEMBERS
from sundog.tally.wire.key_messages import Advertisement, Entry
from sundog.tally.wire.message import check_round


def check_advertisement(advertisement: Advertisement, round_digest: bytes, operator: bytes) -> None:
    """Raise TallyError unless an enrolled identity signed sound keys for this round."""
    entry = advertisement.entry
    check_round(advertisement, round_digest)
    check_credential(entry.identity, entry.credential, operator)
    check_signature(advertisement, entry.identity)
    check_public_key(entry.mask_key)
    check_public_key(entry.channel_key)


@dataclass(frozen=True)
class KeyDirectory:
    """The members of a group of one round, sorted by identity."""

    round: bytes
    group: int
    entries: tuple[Entry, ...]

    def __post_init__(self) -> None:
        """Refuse what no group may have, whoever made the entries."""
        if not 0 < len(self.entries) <= MOST_MEMBERS:
            raise TallyError(f"a group has {len(self.entries)} members, not 1 to {MOST_MEMBERS}; it was refused")
        if any(a.identity >= b.identity for a, b in pairwise(self.entries)):
            raise TallyError("a directory is not sorted or has a member twice; it was refused")
        keys = [key for entry in self.entries for key in (entry.mask_key, entry.channel_key)]
        if len(set(keys)) < len(keys):
            raise TallyError("a directory has a key twice; it was refused")

    @cached_property
    def digest(self) -> bytes:
        """The leaf of this directory in the log, to which every key of the group is bound."""
        entries = b"".join(entry.encode() for entry in self.entries)
        return hash_parts("directory", self.round, self.group.to_bytes(4, "little"), entries)

    @property
    def threshold(self) -> int:
        """How many members must take part in each step."""
        return compute_threshold(len(self.entries))

    @cached_property
    def identities(self) -> tuple[bytes, ...]:
        """The members in order."""
        return tuple(entry.identity for entry in self.entries)

    def find(self, identity: bytes) -> int:
        """Return the position of a member; raise TallyError if there is no such member."""
        try:
            return self.identities.index(identity)
        except ValueError:
            raise TallyError("an identity is not in the directory of this group; it was refused") from None

    def check_entries(self, operator: bytes, own: Entry) -> None:
        """Raise TallyError unless my entry is the one I made, and all others are enrolled and signed their keys."""
        if self.entries[self.find(own.identity)] != own:
            raise TallyError("a directory does not have the keys that this client advertised; it was refused")
        for entry in self.entries:
            if entry.identity != own.identity:
                check_advertisement(Advertisement(self.round, entry), self.round, operator)
