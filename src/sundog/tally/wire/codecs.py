"""Codecs: how one field of a message becomes bytes. Integers are little-endian; there is one encoding of each value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
import numpy.typing as npt

from sundog.errors import TallyError

MOST_MEMBERS = 1024  # of a group of peers
MOST_CONTRIBUTIONS = 2**16  # of a round with keepers
MOST_CELLS = 2**20

Vector = npt.NDArray[np.uint32]
Members = npt.NDArray[np.bool_]  # which members of a group, by their position in the directory


class Reader:
    r"""Takes bytes off the front of a message.

    >>> reader = Reader(bytes([1, 2, 0]))
    >>> reader.take(1), reader.take_integer(2)
    (b'\x01', 2)
    >>> reader.finish()
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._position = data, 0

    def take(self, length: int) -> bytes:
        """Return the next bytes; raise TallyError if there are fewer."""
        end = self._position + length
        if end > len(self._data):
            raise TallyError("a message is truncated; it was refused")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def take_integer(self, length: int) -> int:
        """Return the next unsigned integer of this many bytes."""
        return int.from_bytes(self.take(length), "little")

    def take_count(self, length: int, most: int) -> int:
        """Return the next unsigned integer; raise TallyError if it is above `most`."""
        count = self.take_integer(length)
        if count > most:
            raise TallyError(f"a message has {count} items where at most {most} are allowed; it was refused")
        return count

    def finish(self) -> None:
        """Raise TallyError if bytes are left."""
        if self._position != len(self._data):
            raise TallyError("a message has bytes after its end; it was refused")


class Codec(Protocol):
    """Writes and reads one field."""

    def write(self, value: Any) -> bytes:
        """Return the encoding of a value; raise ValueError if it has none."""

    def read(self, reader: Reader) -> Any:
        """Return the next value; raise TallyError if the bytes encode none."""


@dataclass(frozen=True)
class Fixed:
    """Bytes of a known length.

    >>> Fixed(2).write(b"ab")
    b'ab'
    """

    length: int

    def write(self, value: bytes) -> bytes:
        """Return the encoding of a value; raise ValueError if it has none."""
        if len(value) != self.length:
            raise ValueError(f"{len(value)} bytes where {self.length} belong")
        return value

    def read(self, reader: Reader) -> bytes:
        """Return the next value; raise TallyError if the bytes encode none."""
        return reader.take(self.length)


@dataclass(frozen=True)
class Unsigned:
    r"""An unsigned integer of a known number of bytes.

    >>> Unsigned(2).write(258)
    b'\x02\x01'
    """

    length: int

    def write(self, value: int) -> bytes:
        """Return the encoding of a value; raise ValueError if it has none."""
        return value.to_bytes(self.length, "little")

    def read(self, reader: Reader) -> int:
        """Return the next value; raise TallyError if the bytes encode none."""
        return reader.take_integer(self.length)


@dataclass(frozen=True)
class Rows:
    r"""A count of two bytes, and then as many rows of one length.

    >>> Rows(1, most=9).write((b"a", b"b"))
    b'\x02\x00ab'
    """

    width: int
    most: int = MOST_MEMBERS

    def write(self, value: tuple[bytes, ...]) -> bytes:
        """Return the encoding of a value; raise ValueError if it has none."""
        if len(value) > self.most or any(len(row) != self.width for row in value):
            raise ValueError(f"not at most {self.most} rows of {self.width} bytes")
        return len(value).to_bytes(2, "little") + b"".join(value)

    def read(self, reader: Reader) -> tuple[bytes, ...]:
        """Return the next value; raise TallyError if the bytes encode none."""
        count = reader.take_count(2, self.most)
        whole = reader.take(count * self.width)
        return tuple(whole[start : start + self.width] for start in range(0, len(whole), self.width))


@dataclass(frozen=True)
class Cells:
    r"""A count of four bytes, and then as many integers modulo 2³² of four bytes.

    >>> Cells().write(np.array([1], dtype=np.uint32))
    b'\x01\x00\x00\x00\x01\x00\x00\x00'
    """

    most: int = MOST_CELLS

    def write(self, value: Vector) -> bytes:
        """Return the encoding of a value; raise ValueError if it has none."""
        if value.dtype != np.uint32 or value.ndim != 1 or value.size > self.most:
            raise ValueError(f"not a vector of at most {self.most} integers of 32 bits")
        return value.size.to_bytes(4, "little") + value.astype("<u4", copy=False).tobytes()

    def read(self, reader: Reader) -> Vector:
        """Return the next value; raise TallyError if the bytes encode none."""
        count = reader.take_count(4, self.most)
        return np.frombuffer(reader.take(4 * count), dtype="<u4").astype(np.uint32, copy=False)


@dataclass(frozen=True)
class Bits:
    r"""A count of two bytes, and then as many bits, the first one the lowest; the bits after the last are zero.

    >>> Bits().write(np.array([True, False, True]))
    b'\x03\x00\x05'
    """

    most: int = MOST_MEMBERS

    def write(self, value: Members) -> bytes:
        """Return the encoding of a value; raise ValueError if it has none."""
        if value.dtype != np.bool_ or value.ndim != 1 or value.size > self.most:
            raise ValueError(f"not at most {self.most} bits")
        return value.size.to_bytes(2, "little") + np.packbits(value, bitorder="little").tobytes()

    def read(self, reader: Reader) -> Members:
        """Return the next value; raise TallyError if the bytes encode none."""
        count = reader.take_count(2, self.most)
        packed = np.frombuffer(reader.take(-(-count // 8)), dtype=np.uint8)
        bits = np.unpackbits(packed, bitorder="little").astype(np.bool_)
        if bits[count:].any():
            raise TallyError("a message sets bits after the last member; it was refused")
        return bits[:count]


@dataclass(frozen=True)
class Blob:
    r"""A count of four bytes, and then as many bytes.

    >>> Blob(most=9).write(b"ab")
    b'\x02\x00\x00\x00ab'
    """

    most: int

    def write(self, value: bytes) -> bytes:
        """Return the encoding of a value; raise ValueError if it has none."""
        if len(value) > self.most:
            raise ValueError(f"more than {self.most} bytes")
        return len(value).to_bytes(4, "little") + value

    def read(self, reader: Reader) -> bytes:
        """Return the next value; raise TallyError if the bytes encode none."""
        return reader.take(reader.take_count(4, self.most))


U8 = Annotated[int, Unsigned(1)]
U16 = Annotated[int, Unsigned(2)]
U32 = Annotated[int, Unsigned(4)]
Key = Annotated[bytes, Fixed(32)]  # a public key, Ed25519 or X25519
Digest = Annotated[bytes, Fixed(32)]  # SHA-256
Signature = Annotated[bytes, Fixed(64)]  # Ed25519
Path = Annotated[tuple[bytes, ...], Rows(32, most=64)]  # hashes of a Merkle proof
MemberBits = Annotated[Members, Bits()]
VectorCells = Annotated[Vector, Cells()]
