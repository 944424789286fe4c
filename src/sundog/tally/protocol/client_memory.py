"""What a client remembers from round to round."""

from __future__ import annotations

from dataclasses import dataclass

from sundog.errors import TallyError
from sundog.tally.protocol.directory_log import EMPTY_ROOT, LogHead
from sundog.tally.wire.codecs import U32, Digest
from sundog.tally.wire.message import Record


@dataclass(frozen=True, eq=False)
class ClientMemory(Record):
    """The last period that an identity took part in, and the log head that it saw last.

    Periods increase, so a round that is announced again, and a second round of the same period, are refused.

    >>> memory = ClientMemory().enter(7)
    >>> memory.enter(7)
    Traceback (most recent call last):
    ...
    sundog.errors.TallyError: this identity has taken part in period 7 and cannot join a round of period 7
    """

    last_period: U32 = 0
    log_size: U32 = 0
    log_root: Digest = EMPTY_ROOT

    @property
    def log_head(self) -> LogHead:
        """The log head that was seen last."""
        return LogHead(self.log_size, self.log_root)

    def enter(self, period: int) -> ClientMemory:
        """Return the memory after joining a round of this period; raise TallyError if it is not a later one."""
        if period <= self.last_period:
            raise TallyError(
                f"this identity has taken part in period {self.last_period} and cannot join a round of period {period}"
            )
        return ClientMemory(period, self.log_size, self.log_root)

    def see(self, head: LogHead) -> ClientMemory:
        """Return the memory after a log head was checked."""
        return ClientMemory(self.last_period, head.size, head.root)
