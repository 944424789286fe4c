"""Peers, fifth step: shares that unmask the sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sundog.tally.wire.codecs import Rows, Signature
from sundog.tally.wire.message import SentMessage
from sundog.tally.wire.share_messages import SHARE_BYTES


@dataclass(frozen=True, eq=False)
class RevealedShares(SentMessage, kind=10):
    """Client to tally: a share for each sharer, in order: of a survivor's self secret, or of another's mask secret."""

    shares: Annotated[tuple[bytes, ...], Rows(SHARE_BYTES)]
    signature: Signature
