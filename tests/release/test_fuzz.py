"""Damage a valid release in every way that comes to mind: it is refused, or it is still the same release."""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sundog.errors import ReleaseError
from sundog.release.archive import Archive, compute_content_hash, read_archive, write_archive
from sundog.release.signing import check, sign

MANIFEST = {"format": "sundog-release", "version": 1, "epsilon": 1.0, "columns": {"age": [17, 90]}}
TENSORS = {"weight": np.arange(4, dtype=np.float32).reshape(2, 2), "mask": np.array([True, False])}
HASH = compute_content_hash(MANIFEST, TENSORS)
SIGNATURE = sign(HASH, Ed25519PrivateKey.from_private_bytes(bytes(32)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def valid(folder: Path) -> bytes:
    path = folder / "valid.sundog"
    write_archive(path, Archive(dict(MANIFEST), dict(TENSORS), SIGNATURE))
    content = path.read_bytes()
    path.unlink()
    return content


def read_bytes(folder: Path, content: bytes) -> Archive | None:
    """What the reader makes of `content`: an archive, or None where it is refused in one line."""
    path = folder / "mutant.sundog"
    path.write_bytes(content)
    archive, line = None, f"{path}: "
    try:
        archive = read_archive(path)
    except ReleaseError as error:
        line = str(error)
    assert line.startswith(f"{path}: ")
    assert line.isprintable()
    assert list(folder.iterdir()) == [path], "reading must not write"
    return archive


def assert_refused_or_same(folder: Path, content: bytes) -> bool:
    archive = read_bytes(folder, content)
    if archive is None:
        return False
    assert compute_content_hash(archive.manifest, archive.tensors) == HASH
    assert archive.signature in (None, SIGNATURE)
    return True


def test_untouched_file_is_accepted(folder: Path, valid: bytes) -> None:
    assert assert_refused_or_same(folder, valid)


def test_cut_at_every_byte(folder: Path, valid: bytes) -> None:
    assert not any(assert_refused_or_same(folder, valid[:length]) for length in range(len(valid)))


def test_every_bit_flipped(folder: Path, valid: bytes) -> None:
    accepted = 0
    for bit in range(8 * len(valid)):
        mutant = bytearray(valid)
        mutant[bit // 8] ^= 1 << bit % 8
        accepted += assert_refused_or_same(folder, bytes(mutant))
    # What may change unseen: versions, times and attributes (20 bytes for each of 3 members), and the bits that fill
    # up the last byte of the 2 deflated ones. Nothing besides.
    assert 0 <= accepted - 8 * 20 * 3 <= 2 * 7


def mutate(content: bytes, rng: random.Random) -> bytes:
    mutant = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        at, length = rng.randrange(len(mutant) + 1), rng.choice([1, 2, 4, 8, 30, 46, 200])
        match rng.randrange(6):
            case 0:
                mutant[at : at + length] = rng.randbytes(length)
            case 1:
                mutant[at:at] = rng.randbytes(length)
            case 2:
                del mutant[at : at + length]
            case 3:
                source = rng.randrange(len(content))
                mutant[at : at + length] = content[source : source + length]
            case 4:
                source = rng.randrange(len(content))
                mutant[at:at] = content[source : source + length]
            case _:
                extreme = rng.choice([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, len(content)])
                mutant[at : at + 4] = struct.pack("<L", extreme)
    return bytes(mutant)


def test_random_damage(folder: Path, valid: bytes) -> None:
    rng = random.Random(20)
    for _ in range(6000):
        assert_refused_or_same(folder, mutate(valid, rng))


def rezip(valid: bytes, name: str, content: bytes) -> bytes:
    """The release with one member replaced and every checksum right, so that the damage reaches the parsers."""
    with zipfile.ZipFile(io.BytesIO(valid)) as old, zipfile.ZipFile(file := io.BytesIO(), "w") as new:
        for info in old.infolist():
            new.writestr(info, content if info.filename == name else old.read(info))
    return file.getvalue()


@pytest.mark.parametrize("name", ["manifest.json", "signature.json", "weights.safetensors"])
def test_random_damage_behind_the_checksums(folder: Path, valid: bytes, name: str) -> None:
    rng = random.Random(21)
    with zipfile.ZipFile(io.BytesIO(valid)) as zipped:
        content = zipped.read(name)
    for _ in range(1000):
        archive = read_bytes(folder, rezip(valid, name, mutate(content, rng)))
        if archive is None or archive.signature is None:
            continue
        # A forger can get this far; what the signature says must then be the truth.
        digest = compute_content_hash(archive.manifest, archive.tensors)
        assert check(digest, archive.signature) == (digest == HASH and archive.signature == SIGNATURE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
AXIS = st.integers(-2, 9) | st.sampled_from([2**31, 2**32, 2**63 - 1, 2**63, 2**64]) | JSON
ENTRY = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "F64", "U8", "BOOL", "BF16", "F8_E4M3", "F4", "C64"]) | JSON,
        "shape": st.lists(AXIS, max_size=4) | JSON,
        "data_offsets": st.lists(AXIS, min_size=2, max_size=2) | JSON,
    }
)


@settings(max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))
@given(header=st.dictionaries(st.text(max_size=3), ENTRY | JSON, max_size=3), data=st.binary(max_size=24))
def test_any_weights_header(folder: Path, valid: bytes, header: dict[str, object], data: bytes) -> None:
    raw = json.dumps(header).encode()
    archive = read_bytes(folder, rezip(valid, "weights.safetensors", struct.pack("<Q", len(raw)) + raw + data))
    if archive is not None:
        assert sum(tensor.nbytes for tensor in archive.tensors.values()) == len(data)
        compute_content_hash(archive.manifest, archive.tensors)


@settings(max_examples=100, derandomize=True, suppress_health_check=list(HealthCheck))
@given(extra=JSON)
def test_any_manifest_is_written_and_read_or_refused(folder: Path, extra: object) -> None:
    path = folder / "mutant.sundog"
    manifest = {**MANIFEST, "extra": extra}
    path.unlink(missing_ok=True)
    try:
        write_archive(path, Archive(manifest, {}))
    except ReleaseError:
        assert not list(folder.iterdir())
        return
    found = read_archive(path)
    assert found.manifest == manifest
    assert compute_content_hash(found.manifest, found.tensors) == compute_content_hash(manifest, {})
