"""Files made to harm: each lie is refused in one line, and nothing is written or unpacked on the way."""

from __future__ import annotations

import dataclasses
import json
import os
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from sundog.errors import ReleaseError
from sundog.release.archive import Archive, compute_content_hash, read_archive, to_canonical_json, write_archive

MANIFEST: dict[str, Any] = {"format": "sundog-release", "version": 1, "epsilon": 0.1, "age": {"min": 17, "max": 90}}
TENSORS = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3)}


@dataclasses.dataclass
class Member:
    """A zip member whose headers say what they are told to say."""

    name: bytes
    data: bytes  # as unpacked
    method: int = 0
    flags: int = 0
    packed: bytes | None = None
    size: int | None = None  # claimed
    crc: int | None = None
    start: int | None = None
    extra: bytes = b""
    local_name: bytes | None = None
    disk: int = 0

    def body(self) -> bytes:
        if self.packed is not None:
            return self.packed
        if self.method == 8:
            deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
            return deflater.compress(self.data) + deflater.flush()
        return self.data

    def claims(self) -> tuple[int, int, int]:
        crc = zlib.crc32(self.data) if self.crc is None else self.crc
        return crc, len(self.body()), len(self.data) if self.size is None else self.size

    def local(self) -> bytes:
        name = self.name if self.local_name is None else self.local_name
        head = struct.pack("<4s5H3L2H", b"PK\3\4", 20, self.flags, self.method, 0, 33, *self.claims(), len(name), 0)
        return head + name + self.body()

    def central(self, start: int) -> bytes:
        lengths = (len(self.name), len(self.extra), 0)
        place = (self.disk, 0, 0, start if self.start is None else self.start)
        fixed = (b"PK\1\2", 20, 20, self.flags, self.method, 0, 33, *self.claims(), *lengths, *place)
        return struct.pack("<4s6H3L5H2L", *fixed) + self.name + self.extra


def build(*members: Member, prefix: bytes = b"", gap: bytes = b"", comment: bytes = b"", disk: int = 0) -> bytes:
    body, directory = prefix, b""
    for member in members:
        directory += member.central(len(body))
        body += member.local()
    body += gap
    counts = (disk, disk, len(members), len(members), len(directory), len(body), len(comment))
    return body + directory + struct.pack("<4s4H2LH", b"PK\5\6", *counts) + comment


def weights(header: object, data: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


PLAIN = to_canonical_json(MANIFEST)
WEIGHTS = safetensors.numpy.save(TENSORS)


def manifest_member(data: bytes = PLAIN, **lies: Any) -> Member:
    return Member(b"manifest.json", data, **{"method": 8, **lies})


def weights_member(data: bytes = WEIGHTS, **lies: Any) -> Member:
    return Member(b"weights.safetensors", data, **lies)


def check_refusal(folder: Path, content: bytes, message: str) -> None:
    path = folder / "hostile.sundog"
    path.write_bytes(content)
    with pytest.raises(ReleaseError, match=message) as caught:
        read_archive(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert line.isprintable()
    assert len(line) < len(str(path)) + 200
    assert [found.name for found in folder.iterdir()] == ["hostile.sundog"], "reading must not write"


def test_handmade_zip_is_read(tmp_path: Path) -> None:
    """Without its lies the builder's file is accepted, so that the tests below fail for the lie alone."""
    (tmp_path / "a.sundog").write_bytes(build(manifest_member(), weights_member()))
    found = read_archive(tmp_path / "a.sundog")
    assert compute_content_hash(found.manifest, found.tensors) == compute_content_hash(MANIFEST, TENSORS)


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for path, message in [
        (tmp_path / "none.sundog", "no such file"),
        (tmp_path, "not a file"),
        (tmp_path / "pipe", "not a file"),
        (tmp_path / "loop", "cannot be read|no such file"),
        (tmp_path / ("x" * 300), "cannot be read"),
        (Path("a\0b"), "no such file"),
        (Path("a\nb"), "no such file"),
        (Path("/dev/zero"), "not a file"),
    ]:
        with pytest.raises(ReleaseError, match=message) as caught:
            read_archive(path)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty or cut short"),
        (b"PK", "is empty or cut short"),
        (b"x" * 1000, "does not end as a zip"),
        (b"\x80\x04\x95" + b"." * 100, "does not end as a zip"),
        (struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0, 0, 0, 0, 0), "lists 0 members"),
        (build(manifest_member()), "has no weights.safetensors"),
        (build(weights_member()), "has no manifest.json"),
        (build(manifest_member(), weights_member(), comment=b"hello"), "does not end as a zip"),
        (build(manifest_member(), weights_member(), disk=1), "several disks"),
        (build(manifest_member(disk=1), weights_member()), "broken directory"),
        (build(manifest_member(), weights_member(), prefix=b"#!/bin/sh\n"), "overlap or leave gaps"),
        (build(manifest_member(), weights_member(), gap=b"hidden"), "bytes that belong to no member"),
        (build(manifest_member(), weights_member()) + b"\n", "does not end as a zip"),
        (build(manifest_member(), manifest_member()), "two members of the same name"),
        (build(manifest_member(), weights_member(), weights_member()), "two members of the same name"),
        (build(*[manifest_member()] * 4), "lists 4 members"),
        (build(manifest_member(), weights_member(), Member(b"x" * 60_000, b"")), "directory of the wrong size"),
        (build(manifest_member(extra=b"x" * 5000), weights_member()), "directory of the wrong size"),
        (build(manifest_member(flags=1), weights_member()), "is encrypted or streamed"),
        (build(manifest_member(flags=8), weights_member()), "is encrypted or streamed"),
        (build(manifest_member(flags=0x2000), weights_member()), "is encrypted or streamed"),
        (build(manifest_member(method=12), weights_member()), "packed in a way that is not allowed"),
        (build(manifest_member(), weights_member(method=8)), "packed in a way that is not allowed"),
        (build(manifest_member(crc=0), weights_member()), "manifest.json fails its checksum"),
        (build(manifest_member(), weights_member(crc=0)), "weights.safetensors fails its checksum"),
        (build(manifest_member(local_name=b"../../etc/pw.x"), weights_member()), "two headers that disagree"),
        (build(manifest_member(packed=b"\xff" * 9), weights_member()), "not a readable zip"),
        (build(manifest_member(packed=manifest_member().body() + b"x"), weights_member()), "the size it claims"),
        (build(manifest_member(packed=manifest_member().body()[:-1]), weights_member()), "the size it claims"),
        (build(manifest_member(size=1), weights_member()), "the size it claims"),
        (build(manifest_member(size=1000), weights_member()), "fails its checksum"),
        (build(manifest_member(), weights_member(size=1)), "has two sizes"),
        (build(manifest_member(), weights_member(size=0xFFFFFFFF)), "has two sizes"),
    ],
)
def test_hostile_zip(tmp_path: Path, content: bytes, message: str) -> None:
    check_refusal(tmp_path, content, message)


@pytest.mark.parametrize(
    "name",
    [
        b"../manifest.json",
        b"/manifest.json",
        b"C:\\manifest.json",
        b"..\\..\\evil.dll",
        b"manifest.json/",
        b"./manifest.json",
        b"MANIFEST.JSON",
        b"manifest.json\0.txt",
        b"weights.pkl",
        b"",
        b"\xff\xfe",
        b"\x1b[2J\r\nhello",
        b"a" * 3000,
    ],
)
def test_other_names_are_refused(tmp_path: Path, name: bytes) -> None:
    check_refusal(tmp_path, build(Member(name, PLAIN), weights_member()), "which has no place in a release")


def test_folder_entries_and_links_have_no_place(tmp_path: Path) -> None:
    check_refusal(tmp_path, build(Member(b"weights.safetensors/", b""), manifest_member()), "has no place")


def test_overlapping_members_of_one_body(tmp_path: Path) -> None:
    """The better zip bomb: many directory entries for the same compressed bytes."""
    body = manifest_member().local()
    for second in (manifest_member(start=0, local_name=b"manifest.json"), weights_member(start=len(body) - 5)):
        second.name = b"signature.json"
        check_refusal(tmp_path, build(manifest_member(), second, weights_member()), "overlap or leave gaps")


def test_member_that_swallows_the_next_header(tmp_path: Path) -> None:
    inner = weights_member()
    outer = manifest_member(PLAIN + inner.local(), method=0)
    start = len(outer.local()) - len(inner.local())
    content = outer.local()
    directory = outer.central(0) + inner.central(start)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, len(directory), len(content), 0)
    check_refusal(tmp_path, content + directory + end, "overlap or leave gaps")


def deflate_zeros(size: int) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflater.compress(bytes(size)) + deflater.flush()


def test_zip_bombs_cost_no_memory(tmp_path: Path) -> None:
    bomb = deflate_zeros(200 * 2**20)
    claims = {
        200 * 2**20: "claims 209,715,200 bytes, more than the 33,554,432 allowed",
        30 * 2**20: "does not unpack to the size it claims",
        100: "does not unpack to the size it claims",
    }
    for size, message in claims.items():
        content = build(manifest_member(packed=bomb, size=size), weights_member())
        tracemalloc.start()
        try:
            check_refusal(tmp_path, content, message)
            assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
        finally:
            tracemalloc.stop()


def test_high_ratio_is_refused_before_unpacking(tmp_path: Path) -> None:
    packed = deflate_zeros(30 * 2**20)
    content = build(manifest_member(bytes(30 * 2**20), packed=packed), weights_member())
    check_refusal(tmp_path, content, "as a zip bomb does")


def zip64_extra(*values: int) -> bytes:
    return struct.pack(f"<2H{len(values)}Q", 1, 8 * len(values), *values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((2**63, 2**63), "claims 9,223,372,036,854,775,808 bytes"),
        ((2**33 + 1, 2**33 + 1), "claims 8,589,934,593 bytes, more than the 8,589,934,592"),
        ((2**33, 2**33), "reaches beyond its place"),
        ((10,), "has two sizes"),
        ((), "reaches beyond its place"),
    ],
)
def test_zip64_claims(tmp_path: Path, values: tuple[int, ...], message: str) -> None:
    class Saturated(Member):
        def claims(self) -> tuple[int, int, int]:
            return zlib.crc32(self.data), 0xFFFFFFFF, 0xFFFFFFFF

    member = Saturated(b"weights.safetensors", WEIGHTS, extra=zip64_extra(*values))
    check_refusal(tmp_path, build(manifest_member(), member), message)
    member.extra = b"\1\0\xff"
    check_refusal(tmp_path, build(manifest_member(), member), "not a readable zip|reaches beyond")


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"", "not strict JSON"),
        (b"\xff\xfe", "not strict JSON"),
        (b"\xef\xbb\xbf" + PLAIN, "not strict JSON"),
        (PLAIN[:-1], "not strict JSON"),
        (PLAIN + b"{}", "not strict JSON"),
        (PLAIN.replace(b"0.1", b"NaN"), "not strict JSON"),
        (PLAIN.replace(b"0.1", b"-Infinity"), "not strict JSON"),
        (PLAIN.replace(b"0.1", b"1e999"), "not strict JSON"),
        (PLAIN.replace(b"0.1", b"1" * 5000), "not strict JSON"),
        (PLAIN.replace(b"0.1", b'"\\ud800"'), "not strict JSON"),
        (PLAIN.replace(b"0.1", b'1,"epsilon":100'), "not strict JSON"),
        (PLAIN.replace(b'"min"', b'"max"'), "not strict JSON"),
        (PLAIN.replace(b"0.1", b"[" * 100_000 + b"]" * 100_000), "not strict JSON"),
        (PLAIN.replace(b"0.1", b'{"a":' * 90_000), "not strict JSON"),
        (PLAIN.replace(b"0.1", b"[" * 100 + b"]" * 100), "nested more than 64 deep"),
        (PLAIN.replace(b"0.1", b"[" + b"[]," * 1_100_000 + b"[]]"), "more than 500,000 items|zip bomb"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{}", "not that of a sundog release"),
        (PLAIN.replace(b"sundog-release", b"moondog-release"), "not that of a sundog release"),
        (PLAIN.replace(b'"version":1', b'"version":true'), "not that of a sundog release"),
        (PLAIN.replace(b'"version":1', b'"version":1.0'), "not that of a sundog release"),
        (PLAIN.replace(b'"version":1', b'"version":"1"'), "not that of a sundog release"),
        (PLAIN.replace(b'"version":1', b'"version":0'), "not that of a sundog release"),
        (PLAIN.replace(b'"version":1', b'"version":2'), "made by a newer version of sundog; upgrade"),
        (PLAIN.replace(b'"version":1', b'"version":' + b"9" * 4000), "made by a newer version of sundog; upgrade"),
    ],
)
def test_hostile_manifest(tmp_path: Path, manifest: bytes, message: str) -> None:
    assert manifest != PLAIN
    check_refusal(tmp_path, build(manifest_member(manifest), weights_member()), message)


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        (b"{}", "the signature is malformed"),
        (b"[]", "not a JSON object"),
        (b'{"algorithm":"none","public_key":"","value":""}', "unknown kind, 'none'; upgrade"),
        (b" " * 70_000, "claims 70,000 bytes, more than the 65,536 allowed"),
        (b"[" * 60_000, "not strict JSON"),
    ],
)
def test_hostile_signature(tmp_path: Path, signature: bytes, message: str) -> None:
    check_refusal(tmp_path, build(manifest_member(), Member(b"signature.json", signature), weights_member()), message)


def make_entry(dtype: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "header of the wrong size"),
        (b"\2\0\0\0\0\0\0", "header of the wrong size"),
        (struct.pack("<Q", 2**64 - 1) + b"{}", "header of the wrong size"),
        (struct.pack("<Q", 2**40) + b"{}", "header of the wrong size"),
        (struct.pack("<Q", 3) + b"{}", "header of the wrong size"),
        (weights(b" " * (33 * 2**20)), "header of the wrong size"),
        (weights(b""), "not strict JSON"),
        (weights(b"[" * 100_000), "not strict JSON"),
        (weights(b'{"a":' * 100_000), "not strict JSON"),
        (weights(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "not strict JSON"),
        (weights(b'{"a":1,"a":1}'), "not strict JSON"),
        (weights([]), "not a JSON object"),
        (weights({}, b"left over"), "is malformed"),
        (weights({"w": make_entry()}, bytes(7)), "is malformed"),
        (weights({"w": make_entry()}, bytes(9)), "is malformed"),
        (weights({"w": make_entry(offsets=(-8, 0))}, bytes(8)), "is malformed"),
        (weights({"w": make_entry(offsets=(8, 0))}, bytes(8)), "is malformed"),
        (weights({"w": make_entry(offsets=(4, 12))}, bytes(12)), "is malformed"),
        (weights({"w": make_entry(offsets=(0, 2**64))}, bytes(8)), "is malformed"),
        (weights({"w": make_entry(offsets=(0.0, 8.0))}, bytes(8)), "is malformed"),
        (weights({"w": make_entry(offsets=(0,))}, bytes(8)), "is malformed"),
        (weights({"w": make_entry(offsets=None)}, bytes(8)), "is malformed"),
        (weights({"a": make_entry(), "b": make_entry()}, bytes(8)), "is malformed"),
        (weights({"a": make_entry(), "b": make_entry(offsets=(4, 12))}, bytes(12)), "is malformed"),
        (weights({"a": make_entry(), "b": make_entry(offsets=(12, 20))}, bytes(20)), "is malformed"),
        (weights({"w": make_entry(shape=[3])}, bytes(8)), "is malformed"),
        (weights({"w": make_entry(shape=[2**33, 2**33])}, bytes(8)), "is malformed"),
        (weights({"w": make_entry(shape=[0, 2**33, 2**33, 2**33], offsets=(0, 0))}), "is malformed"),
        (weights({"w": make_entry(shape=[0, 2**63], offsets=(0, 0))}), "shape that is not allowed"),
        (weights({"w": make_entry(shape=[-2])}, bytes(8)), "shape that is not allowed"),
        (weights({"w": make_entry(shape=[True, 2])}, bytes(8)), "shape that is not allowed"),
        (weights({"w": make_entry(shape=[1] * 100 + [2])}, bytes(8)), "shape that is not allowed"),
        (weights({"w": make_entry(shape="2")}, bytes(8)), "shape that is not allowed"),
        (weights({"w": make_entry("BF16", [4])}, bytes(8)), "type that is not allowed"),
        (weights({"w": make_entry("C64", [1])}, bytes(8)), "type that is not allowed"),
        (weights({"w": make_entry("object")}, bytes(8)), "type that is not allowed"),
        (weights({"w": make_entry([])}, bytes(8)), "type that is not allowed"),
        (weights({"w": make_entry("BOOL", [8])}, b"\0\1\2\3\4\5\6\7"), "truth values other than 0 and 1"),
        (weights({"__metadata__": {"a": "b"}}), "described wrongly"),
        (weights({"w": {**make_entry(), "more": 1}}, bytes(8)), "described wrongly"),
        (weights({"w\n\x1b[2J": 7}), r"tensor 'w\\n\\x1b\[2J' is described wrongly"),
        (weights({f"{i}": make_entry("U8", [0], (0, 0)) for i in range(50_001)}), "more than 50,000 tensors"),
    ],
)
def test_hostile_weights(tmp_path: Path, content: bytes, message: str) -> None:
    check_refusal(tmp_path, build(manifest_member(), weights_member(content)), message)


def test_file_that_shrinks_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.sundog"
    write_archive(path, Archive(MANIFEST, {"w": np.zeros(100_000)}))
    real = zlib.crc32

    def shrink(data: bytes) -> int:
        os.truncate(path, 10)
        return real(data)

    monkeypatch.setattr(zlib, "crc32", shrink)  # called when the manifest is read and the weights are not
    with pytest.raises(ReleaseError, match="is cut short"):
        read_archive(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "a.sundog"
    write_archive(path, Archive(MANIFEST, TENSORS))
    path.chmod(0)
    with pytest.raises(ReleaseError, match=r"cannot be read \(Permission denied\)"):
        read_archive(path)
