from __future__ import annotations

import dataclasses
import errno
import json
import os
import resource
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sundog.errors import ReleaseError
from sundog.release import archive as archive_module
from sundog.release.archive import Archive, compute_content_hash, read_archive, to_canonical_json, write_archive
from sundog.release.signing import check, sign

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
MANIFEST: dict[str, Any] = {
    "format": "sundog-release",
    "version": 1,
    "epsilon": 0.1,
    "columns": {"größe": [1, 2, None, True], "age": {"min": 17, "max": 90}},
}
TENSORS = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "bias": np.array([-0.0, np.inf, np.nan]),
    "scalar": np.array(7, dtype=np.int16),
    "empty": np.zeros((0, 4), dtype=np.uint8),
    "mask": np.array([True, False]),
}
GOLDEN = "f0bf68ad1bc6e88f96a555f2e4c3346e178d5f9f34fcf7c2a2a4571868f0fb4a"


def make_small(**changes: Any) -> Archive:
    return dataclasses.replace(Archive(dict(MANIFEST), dict(TENSORS)), **changes)


def make_signed() -> Archive:
    return make_small(signature=sign(compute_content_hash(MANIFEST, TENSORS), KEY))


@pytest.mark.parametrize("archive", [make_small(), make_signed(), make_small(tensors={})])
def test_round_trip(tmp_path: Path, archive: Archive) -> None:
    write_archive(tmp_path / "a.sundog", archive)
    found = read_archive(tmp_path / "a.sundog")
    assert found.manifest == archive.manifest
    assert found.signature == archive.signature
    assert found.tensors.keys() == archive.tensors.keys()
    for name, tensor in archive.tensors.items():
        np.testing.assert_array_equal(found.tensors[name], tensor)
        assert found.tensors[name].dtype == tensor.dtype
        assert found.tensors[name].shape == tensor.shape
    assert compute_content_hash(found.manifest, found.tensors) == compute_content_hash(
        archive.manifest, archive.tensors
    )


def test_signature_survives_the_file(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.sundog", make_signed())
    found = read_archive(tmp_path / "a.sundog")
    assert found.signature is not None
    assert check(compute_content_hash(found.manifest, found.tensors), found.signature)


def test_golden_hash() -> None:
    """A release signed today must verify for ever: this value never changes for version 1."""
    assert compute_content_hash(MANIFEST, TENSORS) == GOLDEN


def test_hash_depends_on_content_alone() -> None:
    big_endian_by_column = {
        name: np.asarray(tensor, dtype=tensor.dtype.newbyteorder(">"), order="F")
        for name, tensor in reversed(TENSORS.items())
    }
    assert compute_content_hash(dict(reversed(MANIFEST.items())), big_endian_by_column) == GOLDEN


def test_layout_does_not_reach_the_file(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.sundog", make_small(tensors={"w": np.arange(12, dtype=">f8").reshape(3, 4).T[::2]}))
    np.testing.assert_array_equal(
        read_archive(tmp_path / "a.sundog").tensors["w"], np.arange(12.0).reshape(3, 4).T[::2]
    )


@pytest.mark.parametrize(
    "tensors",
    [
        {},
        {**TENSORS, "weight": TENSORS["weight"].reshape(3, 2)},
        {**TENSORS, "weight": TENSORS["weight"].view(np.int32)},
        {**TENSORS, "empty": np.zeros((0, 5), dtype=np.uint8)},
        {**TENSORS, "bias": np.array([0.0, np.inf, np.nan])},
        {("Weight" if name == "weight" else name): tensor for name, tensor in TENSORS.items()},
    ],
)
def test_hash_sees_every_change(tensors: dict[str, np.ndarray]) -> None:
    assert compute_content_hash(MANIFEST, tensors) != GOLDEN
    assert compute_content_hash({**MANIFEST, "epsilon": 0.10000000000000002}, TENSORS) != GOLDEN


def test_same_content_same_bytes(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.sundog", make_signed())
    os.utime(tmp_path / "a.sundog", (0, 0))
    shuffled = dataclasses.replace(
        make_signed(), manifest=dict(reversed(MANIFEST.items())), tensors=dict(reversed(TENSORS.items()))
    )
    write_archive(tmp_path / "b.sundog", shuffled)
    assert (tmp_path / "a.sundog").read_bytes() == (tmp_path / "b.sundog").read_bytes()


def test_other_tools_can_open_it(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.sundog", make_signed())
    with zipfile.ZipFile(tmp_path / "a.sundog") as zipped:
        assert zipped.testzip() is None
        assert zipped.namelist() == ["manifest.json", "signature.json", "weights.safetensors"]
        assert zipped.read("manifest.json") == to_canonical_json(MANIFEST)
        assert [info.compress_type for info in zipped.infolist()] == [8, 8, 0]


def test_repacked_elsewhere_it_is_the_same_release(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.sundog", "w") as zipped:
        zipped.writestr("weights.safetensors", safetensors.numpy.save(TENSORS))
        zipped.writestr("manifest.json", json.dumps(MANIFEST, indent=4), zipfile.ZIP_DEFLATED)
    found = read_archive(tmp_path / "a.sundog")
    assert compute_content_hash(found.manifest, found.tensors) == GOLDEN


def test_zip64_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As files over 2 GiB are written, without writing 2 GiB."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 50)
    write_archive(tmp_path / "a.sundog", make_signed())
    assert b"PK\6\6" in (tmp_path / "a.sundog").read_bytes()
    found = read_archive(tmp_path / "a.sundog")
    assert compute_content_hash(found.manifest, found.tensors) == GOLDEN
    content = (tmp_path / "a.sundog").read_bytes()
    for at in range(len(content) - 98, len(content)):
        (tmp_path / "b.sundog").write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            found = read_archive(tmp_path / "b.sundog")
        except ReleaseError:
            continue
        assert compute_content_hash(found.manifest, found.tensors) == GOLDEN


# --- writing ---


def test_mode_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_archive(tmp_path / "a.sundog", make_small())
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.sundog").stat().st_mode) == 0o640


@pytest.mark.parametrize("step", ["_write_zip", "_check_read_back"])
@pytest.mark.parametrize(
    ("failure", "expected", "message"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, None),
        (OSError(errno.ENOSPC, "No space left on device"), ReleaseError, r"a\.sundog: cannot be written \(No space"),
        (MemoryError(), ReleaseError, "out of memory"),
        (ReleaseError("what; fix"), ReleaseError, r"a\.sundog: what; fix"),
    ],
)
def test_failure_leaves_what_was_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    failure: BaseException,
    expected: type[BaseException],
    message: str | None,
) -> None:
    path = tmp_path / "a.sundog"
    write_archive(path, make_small())
    before = path.read_bytes()
    real: Callable[..., None] = getattr(archive_module, step)

    def fail(*arguments: Any) -> None:
        real(*arguments)
        raise failure

    monkeypatch.setattr(archive_module, step, fail)
    with pytest.raises(expected, match=message):
        write_archive(path, make_signed())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_full_disk(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(ReleaseError, match=r"a\.sundog: cannot be written \(File too large\)"):
            write_archive(tmp_path / "a.sundog", make_small(tensors={"w": np.zeros(100_000)}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for path, message in [
        (tmp_path, "is not a regular file"),
        (tmp_path / "pipe", "is not a regular file"),
        (tmp_path / "none" / "a.sundog", "No such file or directory"),
        (tmp_path / "file" / "a.sundog", "Not a directory"),
        (tmp_path / ("x" * 300), "File name too long"),
    ]:
        with pytest.raises(ReleaseError, match=message) as caught:
            write_archive(path, make_small())
        assert str(caught.value).startswith(f"{path}: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pipe"]


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (make_small(manifest={**MANIFEST, "x": float("nan")}), "no JSON form"),
        (make_small(manifest={**MANIFEST, "x": float("inf")}), "no JSON form"),
        (make_small(manifest={**MANIFEST, "x": "\ud800"}), "no JSON form"),
        (make_small(manifest={**MANIFEST, "x": object()}), "no JSON form"),
        (make_small(manifest={**MANIFEST, "x": {1: 0, "1": 0}}), "no JSON form"),
        (make_small(manifest={**MANIFEST, "x": {9: 0, 10: 0}}), "use text for all keys"),
        (make_small(manifest={}), "it could not be read back: manifest.json is not that of a sundog release"),
        (make_small(manifest={**MANIFEST, "x": list(range(500_100))}), "more than 500,000 items"),
        (make_small(manifest={**MANIFEST, "x": " " * 2**24}), "as a zip bomb does"),
        (make_small(tensors={"w": np.zeros(2, dtype=np.complex64)}), "tensor 'w' is of type complex64"),
        (make_small(tensors={"w": np.array(["a"])}), "tensor 'w' is of type"),
        (make_small(tensors={"w": np.zeros((1,) * 17)}), "shape that is not allowed"),
        (make_small(tensors={"__metadata__": np.zeros(1)}), "not written"),
    ],
)
def test_what_could_not_be_read_is_not_written(tmp_path: Path, archive: Archive, message: str) -> None:
    with pytest.raises(ReleaseError, match=message) as caught:
        write_archive(tmp_path / "a.sundog", archive)
    assert str(caught.value).isprintable()
    assert not list(tmp_path.iterdir())
