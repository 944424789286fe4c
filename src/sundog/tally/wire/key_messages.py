"""Peers, first step: each member advertises its keys, and gets those of its group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sundog.tally.wire.codecs import MOST_MEMBERS, U32, Digest, Key, Path, Signature
from sundog.tally.wire.message import One, Record, Records, RoundMessage


@dataclass(frozen=True, eq=False)
class Entry(Record):
    """A member of a group: who it is, and its keys of this round. The signature is that of its `Advertisement`."""

    identity: Key
    credential: Signature  # of the operator
    mask_key: Key
    channel_key: Key
    log_size: U32  # the log head that the member remembers, for a proof of consistency
    signature: Signature


@dataclass(frozen=True, eq=False)
class Advertisement(RoundMessage, kind=2):
    """Client to tally: my keys of this round."""

    entry: Annotated[Entry, One(Entry)]


@dataclass(frozen=True, eq=False)
class Directory(RoundMessage, kind=3):
    """Tally to client: the members of your group, sorted by identity, and where the log of directories has them."""

    group: U32
    entries: Annotated[tuple[Entry, ...], Records(Entry, most=MOST_MEMBERS)]
    log_size: U32
    log_root: Digest
    log_index: U32
    inclusion: Path
    consistency: Path
