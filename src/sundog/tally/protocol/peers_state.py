"""A member's state in one round, as bytes that its program stores."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from sundog.tally.protocol.client_memory import ClientMemory
from sundog.tally.wire.codecs import MOST_MEMBERS, U8, U32, Blob, MemberBits, Members, Rows
from sundog.tally.wire.message import One, Record
from sundog.tally.wire.share_messages import SHARE_BYTES

_MOST = 2**23


class Stage(enum.IntEnum):
    """What a member has done last."""

    ADVERTISED = 1
    SHARED = 2
    MASKED = 3
    ENDORSED = 4
    REVEALED = 5


@dataclass(frozen=True, eq=False)
class PeersState(Record):
    """Everything that a member must still know. What is not needed any more is empty."""

    stage: U8
    parameters: Annotated[bytes, Blob(_MOST)]
    memory: Annotated[ClientMemory, One(ClientMemory)]
    minimum_group: U32
    seed: Annotated[bytes, Blob(32)]  # until the vector is masked
    directory: Annotated[bytes, Blob(_MOST)]
    sharers: MemberBits
    shares: Annotated[tuple[bytes, ...], Rows(2 * SHARE_BYTES, most=MOST_MEMBERS)]  # one for each sharer
    survivors: MemberBits
    statement: Annotated[bytes, Blob(32)]
    received: Annotated[bytes, Blob(32)]  # the digest of the message that was answered last
    reply: Annotated[bytes, Blob(_MOST)]  # and the answer


NOBODY: Members = np.zeros(0, dtype=np.bool_)
