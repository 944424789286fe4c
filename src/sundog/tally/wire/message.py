"""Records and messages: data classes whose annotations say how each field is encoded.

A message starts with its version and its kind, one byte each, and names its round. Fields follow in the order of the
class, so none can be missing, unknown or repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Self, get_type_hints

from sundog.errors import TallyError
from sundog.tally.wire.codecs import Codec, Fixed, Key, Reader

VERSION = 1

# Separates signatures on messages from all others that a key may make.
_SIGNED = b"sundog tally message v1\0"


class Record:
    """Fields one after the other. Subclasses are frozen data classes whose annotations carry codecs."""

    def encode(self) -> bytes:
        """Return the bytes of all fields."""
        return b"".join(codec.write(getattr(self, name)) for name, codec in _list_codecs(type(self)))

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Return the next record; raise TallyError if the bytes encode none."""
        return cls(**{name: codec.read(reader) for name, codec in _list_codecs(cls)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the record that these bytes are, all of them; raise TallyError if they are none."""
        reader = Reader(data)
        record = cls.read(reader)
        reader.finish()
        return record

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Record) and other.encode() == self.encode()

    def __hash__(self) -> int:
        return hash(self.encode())


@dataclass(frozen=True)
class Records:
    """A count of four bytes, and then as many records of one class."""

    item: type[Record]
    most: int

    def write(self, value: tuple[Record, ...]) -> bytes:
        """Return the encoding of a value; raise ValueError if it has none."""
        if len(value) > self.most:
            raise ValueError(f"more than {self.most} records")
        return len(value).to_bytes(4, "little") + b"".join(record.encode() for record in value)

    def read(self, reader: Reader) -> tuple[Record, ...]:
        """Return the next value; raise TallyError if the bytes encode none."""
        return tuple(self.item.read(reader) for _ in range(reader.take_count(4, self.most)))


@dataclass(frozen=True)
class One:
    """A record inside another one."""

    item: type[Record]

    def write(self, value: Record) -> bytes:
        """Return the encoding of a value; raise ValueError if it has none."""
        return value.encode()

    def read(self, reader: Reader) -> Record:
        """Return the next value; raise TallyError if the bytes encode none."""
        return self.item.read(reader)


_CODECS: dict[type[Any], tuple[tuple[str, Codec], ...]] = {}


def _list_codecs(cls: type[Any]) -> tuple[tuple[str, Codec], ...]:
    """Return the names and codecs of the fields of a class, which are looked up once."""
    if cls not in _CODECS:
        hints = get_type_hints(cls, include_extras=True)
        _CODECS[cls] = tuple((field.name, hints[field.name].__metadata__[0]) for field in fields(cls))
    return _CODECS[cls]


class Message(Record):
    """A record with a header. Subclasses name their kind: `class Survivors(Message, kind=7)`."""

    KIND: ClassVar[int]

    def __init_subclass__(cls, *, kind: int, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.KIND = kind

    def encode(self) -> bytes:
        """Return the header and the bytes of all fields."""
        return bytes([VERSION, self.KIND]) + super().encode()

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Return the next message; raise TallyError if it is of another version or kind."""
        version, kind = reader.take(2)
        if version != VERSION:
            raise TallyError(f"a message is of version {version}, this program knows {VERSION}; upgrade sundog")
        if kind != cls.KIND:
            raise TallyError(f"a message is of kind {kind} where {cls.KIND} ({cls.__name__}) belongs; it was refused")
        return super().read(reader)

    @property
    def signed_part(self) -> bytes:
        """What the signature covers, which is the last field: everything before it, and what it is for."""
        return _SIGNED + self.encode()[:-64]


RoundDigest = Annotated[bytes, Fixed(32)]  # of the round's parameters: in every message


@dataclass(frozen=True, eq=False)
class RoundMessage(Message, kind=0):
    """A message of a round: all but its parameters."""

    round: RoundDigest


@dataclass(frozen=True, eq=False)
class SentMessage(RoundMessage, kind=0):
    """A message that its sender signs. The signature is the last field."""

    sender: Key


def check_round(message: RoundMessage, digest: bytes) -> None:
    """Raise TallyError unless a message belongs to this round."""
    if message.round != digest:
        raise TallyError("a message belongs to another round; it was refused")
