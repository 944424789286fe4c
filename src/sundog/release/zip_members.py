"""A strict reader of small untrusted zip files: every byte is checked before anything is unpacked.

`zipfile` opens whatever it can; this reader does the opposite. The members must follow each other from the
first byte to the directory without gap or overlap, both headers of a member must agree, and nothing may be claimed
that the file could not honestly hold. So bombs, hidden members and files that two programs read differently all fail
before any memory is spent on them. Timestamps, attributes, extra fields and comments of members carry no content and
are ignored.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from sundog.errors import ReleaseError

# The records of a zip; versions, timestamps and attributes are skipped.
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4s12x2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4s4x2H4x3L4H6xL")
_LOCAL = struct.Struct("<4s2x2H4x3L2H")

_STORED, _DEFLATED = 0, 8
_HARMLESS_FLAGS = 0x0806  # utf-8 names and the compressor's effort; not encryption, patches or streaming
_SATURATED = 0xFFFFFFFF  # "see the zip64 field", which files over 2 GiB need
_MAX_DIRECTORY = 4096
_FREE_SIZE, _MAX_RATIO = 2**20, 256  # what unpacks to more than 1 MiB may not shrink more than 256-fold


@dataclass(frozen=True)
class Limit:
    """The limits of one member: its largest unpacked size, and whether it must be stored without compression."""

    size: int
    stored: bool = False


@dataclass(frozen=True)
class _Member:
    name: bytes
    start: int
    size: int
    packed: int
    crc: int
    method: int
    local: tuple[object, ...]  # what the header before the data must repeat


def make_damage_error(what: str) -> ReleaseError:
    """Return the error for a file that sundog did not write.

    >>> print(make_damage_error("is cut short"))
    is cut short; the file is damaged or was never a release, fetch it again
    """
    return ReleaseError(f"{what}; the file is damaged or was never a release, fetch it again")


def read_members(
    file: BinaryIO, limits: Mapping[str, Limit], *, only: Collection[str] | None = None
) -> dict[str, bytes]:
    """Return the unpacked members of a zip that holds at most the members named in `limits`, each within its limit.

    With `only`, return just those members.

    >>> import io, zipfile
    >>> with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
    ...     archive.writestr("a.txt", "hello")
    >>> read_members(file, {"a.txt": Limit(size=5)})
    {'a.txt': b'hello'}
    >>> read_members(file, {"a.txt": Limit(size=4)})
    Traceback (most recent call last):
    sundog.errors.ReleaseError: a.txt claims 5 bytes, more than the 4 allowed; ...
    """
    try:
        directory, directory_start, count = _read_directory(file, most=len(limits))
        members = _parse_members(directory, count)
        for member in members:
            _check_claims(member, limits)
        if len({member.name for member in members}) != len(members):
            raise make_damage_error("holds two members of the same name")
        starts = _find_data_starts(file, members, directory_start)
        names = {member.name: member.name.decode("ascii") for member in members}
        wanted = [member for member in members if only is None or names[member.name] in only]
        return {names[member.name]: _extract(file, member, starts[member.name]) for member in wanted}
    except (struct.error, zlib.error):
        raise make_damage_error("is not a readable zip") from None


def _read(file: BinaryIO, start: int, length: int) -> bytes:
    if start < 0:
        raise make_damage_error("is empty or cut short")
    file.seek(start)
    data = file.read(length)
    if len(data) != length:
        raise make_damage_error("is cut short")
    return data


def _read_directory(file: BinaryIO, *, most: int) -> tuple[bytes, int, int]:
    """Return the central directory, its position and its number of members, from the record that ends the file."""
    end = file.seek(0, os.SEEK_END) - _END.size
    signature, disk, first_disk, here, count, length, start, comment = _END.unpack(_read(file, end, _END.size))
    if signature != b"PK\5\6" or comment:
        raise make_damage_error("does not end as a zip")
    if end >= _LOCATOR64.size + _END64.size and _read(file, end - _LOCATOR64.size, 4) == b"PK\6\7":
        _, locator_disk, record_start, disks = _LOCATOR64.unpack(_read(file, end - _LOCATOR64.size, _LOCATOR64.size))
        end -= _LOCATOR64.size + _END64.size
        signature, disk, first_disk, here, count, length, start = _END64.unpack(_read(file, end, _END64.size))
        if signature != b"PK\6\6" or record_start != end or (locator_disk, disks) != (0, 1):
            raise make_damage_error("does not end as a zip64")
    if disk or first_disk or here != count:
        raise make_damage_error("is spread over several disks")
    if not 0 < count <= most:
        raise make_damage_error(f"lists {count} members where 1 to {most} are allowed")
    if length > _MAX_DIRECTORY or start + length != end:
        raise make_damage_error("has a directory of the wrong size")
    return _read(file, start, length), start, count


def _parse_members(directory: bytes, count: int) -> list[_Member]:
    members: list[_Member] = []
    position = 0
    for _ in range(count):
        fields = _CENTRAL.unpack_from(directory, position)
        signature, flags, method, crc, packed, size, name_length, extra_length, comment_length, disk, start = fields
        position += _CENTRAL.size
        name = directory[position : position + name_length]
        extra = directory[position + name_length : position + name_length + extra_length]
        position += name_length + extra_length + comment_length
        if signature != b"PK\1\2" or disk:
            raise make_damage_error("has a broken directory")
        if flags & ~_HARMLESS_FLAGS:
            raise make_damage_error(f"{_show(name)} is encrypted or streamed")
        local = (b"PK\3\4", flags, method, crc, packed, size, name)
        size, packed, start = _read_wide_values(extra, [size, packed, start])
        members.append(_Member(name, start, size, packed, crc, method, local))
    if position != len(directory):
        raise make_damage_error("has a broken directory")
    return members


def _read_wide_values(extra: bytes, values: list[int]) -> list[int]:
    """Replace each saturated 32-bit value by the next 64-bit one of the zip64 extra field."""
    while _SATURATED in values and extra:
        tag, length = struct.unpack_from("<2H", extra)
        if tag == 1:
            wide = (value for (value,) in struct.iter_unpack("<Q", extra[4 : 4 + length // 8 * 8]))
            return [next(wide, value) if value == _SATURATED else value for value in values]
        extra = extra[4 + length :]
    return values


def _check_claims(member: _Member, limits: Mapping[str, Limit]) -> None:
    shown = _show(member.name)
    limit = limits.get(member.name.decode("ascii", errors="replace"))
    if limit is None:
        raise make_damage_error(f"holds {shown}, which has no place in a release")
    if member.size > limit.size:
        raise make_damage_error(f"{shown} claims {member.size:,} bytes, more than the {limit.size:,} allowed")
    if member.method not in ((_STORED,) if limit.stored else (_STORED, _DEFLATED)):
        raise make_damage_error(f"{shown} is packed in a way that is not allowed")
    if member.method == _STORED and member.size != member.packed:
        raise make_damage_error(f"{shown} has two sizes")
    if member.size > _FREE_SIZE + _MAX_RATIO * member.packed:
        raise make_damage_error(f"{shown} claims {member.size:,} bytes out of {member.packed:,}, as a zip bomb does")


def _find_data_starts(file: BinaryIO, members: list[_Member], directory_start: int) -> dict[bytes, int]:
    """Return the position of each member's data; raise unless the members fill the file up to its directory exactly."""
    starts: dict[bytes, int] = {}
    position = 0
    for member in sorted(members, key=lambda member: member.start):
        if member.start != position:
            raise make_damage_error("has members that overlap or leave gaps")
        header = _LOCAL.unpack(_read(file, position, _LOCAL.size))
        signature, flags, method, crc, packed, size, name_length, extra_length = header
        name = _read(file, position + _LOCAL.size, name_length)
        if (signature, flags, method, crc, packed, size, name) != member.local:
            raise make_damage_error(f"{_show(member.name)} has two headers that disagree")
        starts[member.name] = position + _LOCAL.size + name_length + extra_length
        position = starts[member.name] + member.packed
        if position > directory_start:
            raise make_damage_error(f"{_show(member.name)} reaches beyond its place")
    if position != directory_start:
        raise make_damage_error("has bytes that belong to no member")
    return starts


def _extract(file: BinaryIO, member: _Member, start: int) -> bytes:
    data = _read(file, start, member.packed)
    if member.method == _DEFLATED:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        data = inflater.decompress(data, member.size + 1)  # one byte more than claimed is enough to refuse it
        if not inflater.eof or inflater.unused_data:
            raise make_damage_error(f"{_show(member.name)} does not unpack to the size it claims")
    if len(data) != member.size or zlib.crc32(data) != member.crc:
        raise make_damage_error(f"{_show(member.name)} fails its checksum")
    return data


def _show(name: bytes) -> str:
    """Return the first characters of a member's name; the error that quotes them escapes what cannot be printed."""
    return name[:40].decode("ascii", errors="backslashreplace")
