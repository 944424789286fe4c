"""What all masks of a group are bound to, and what its survivors sign."""

from __future__ import annotations

from sundog.tally.protocol.directory_log import LogHead
from sundog.tally.protocol.key_derivation import hash_parts
from sundog.tally.wire.codecs import Bits, Members


def hash_mask_context(directory: bytes, sharers: Members) -> bytes:
    """Return the digest of a directory and of those who sent shares: the salt of every mask."""
    return hash_parts("masks", directory, Bits().write(sharers))


def hash_survivors(mask_context: bytes, survivors: Members, head: LogHead) -> bytes:
    """Return the digest of the group, of who shared and who survived, and of the log head that they saw."""
    return hash_parts("survivors", mask_context, Bits().write(survivors), head.size.to_bytes(4, "little"), head.root)
