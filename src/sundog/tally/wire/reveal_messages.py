"""Peers, fifth step: shares that unmask the sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sundog.tally.wire.codecs import Key, Rows, Signature
from sundog.tally.wire.message import Message, RoundDigest
from sundog.tally.wire.share_messages import SHARE_BYTES


@dataclass(frozen=True, eq=False)
class RevealedShares(Message, kind=10):
    """Client to tally: one share for each sharer, in order: of a survivor's self mask, or of a dropped user's mask key."""

    round: RoundDigest
    sender: Key
    shares: Annotated[tuple[bytes, ...], Rows(SHARE_BYTES)]
    signature: Signature
