"""The archive: a zip of `manifest.json`, `weights.safetensors` and, if signed, `signature.json`.

Nothing in it can execute. Writing is deterministic and all or nothing; reading trusts nothing, and every failure is
one `ReleaseError` of one line. A signature covers the content hash: the manifest and the tensors, whatever the
packing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from sundog.errors import ReleaseError
from sundog.files import replace_file
from sundog.release.signing import Signature
from sundog.release.zip_members import Limit, make_damage_error, read_members

FORMAT = "sundog-release"
VERSION = 1

_MANIFEST, _WEIGHTS, _SIGNATURE = "manifest.json", "weights.safetensors", "signature.json"
_LIMITS = {
    _MANIFEST: Limit(size=32 * 2**20),
    _SIGNATURE: Limit(size=64 * 2**10),
    _WEIGHTS: Limit(size=8 * 2**30, stored=True),
}
_MAX_JSON_DEPTH = 64
_MAX_JSON_ITEMS = 500_000  # a parsed item takes some 100 bytes, far more than the 3 it may take in the file
_MAX_JSON_OBJECTS = 100_000  # and an object four times as many
_MAX_HEADER = 32 * 2**20
_MAX_TENSORS = 50_000
_MAX_AXES = 16
_DTYPES = {
    "BOOL": "|b1",
    "U8": "|u1",
    "I8": "|i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}

Tensors = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Archive:
    """The content of a release file."""

    manifest: dict[str, Any]
    tensors: dict[str, npt.NDArray[Any]]
    signature: Signature | None = None


def compute_content_hash(manifest: Mapping[str, Any], tensors: Tensors) -> str:
    """Return the sha256 of the content of a release, the same for every packing.

    Each part is preceded by its length, so that no two contents have the same bytes.

    >>> compute_content_hash({"format": "sundog-release", "version": 1}, {"bias": np.zeros(3)})[:16]
    'a8818eb7e369b2a6'
    """
    digest = hashlib.sha256(b"sundog content v1\n")
    for part in _list_hashed_parts(manifest, tensors):
        digest.update(struct.pack("<Q", part.nbytes))
        digest.update(part)
    return digest.hexdigest()


def to_canonical_json(value: object) -> bytes:
    """Return the canonical JSON of a value: sorted keys, no spaces, UTF-8; raise if it holds NaN or an infinity.

    >>> to_canonical_json({"b": 1.5, "a": ["é"]}).decode()
    '{"a":["é"],"b":1.5}'
    >>> to_canonical_json(float("nan"))
    Traceback (most recent call last):
    sundog.errors.ReleaseError: the value has no JSON form (Out of range float ...); use finite numbers and ...
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ReleaseError(f"the value has no JSON form ({reason}); use finite numbers and plain text") from None


def write_archive(path: str | Path, archive: Archive) -> None:
    """Write a release file: the same content gives the same bytes, and a failure leaves the earlier file.

    The file is read back before it is put in place, so that no unreadable release is ever written.

    >>> import tempfile
    >>> archive = Archive(manifest={"format": "sundog-release", "version": 1}, tensors={"bias": np.zeros(3)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_archive(f"{folder}/small.sundog", archive)
    ...     read_archive(f"{folder}/small.sundog").tensors
    {'bias': array([0., 0., 0.])}
    """
    path = Path(path)
    fix = "free some space or choose another place" if path.parent.is_dir() else "create its folder first"
    with _name_file_in_errors(path, "cannot be written", fix):
        if path.exists() and not path.is_file():
            raise ReleaseError("is not a regular file; choose another name")
        with replace_file(path) as file:
            _write_zip(file, archive)
            file.flush()
            _check_read_back(Path(file.name), archive)


def read_archive(path: str | Path) -> Archive:
    """Read an untrusted release file; raise ReleaseError, in one line, if anything is wrong with it.

    >>> read_archive("missing.sundog")
    Traceback (most recent call last):
    sundog.errors.ReleaseError: missing.sundog: no such file; check the name
    """
    path = Path(path)
    with _name_file_in_errors(path, "cannot be read", "check the file and its permissions"):
        return _read(path)


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read the manifest of a release without its weights; raise ReleaseError if the file is not a release."""
    path = Path(path)
    with _name_file_in_errors(path, "cannot be read", "check the file and its permissions"):
        _refuse_missing_file(path)
        with path.open("rb") as file:
            members = read_members(file, _LIMITS, only=[_MANIFEST])
        if _MANIFEST not in members:
            raise make_damage_error(f"has no {_MANIFEST}")
        return _parse_manifest(members[_MANIFEST])


def is_release(path: Path) -> bool:
    """Return whether the file has the manifest of a release."""
    try:
        return bool(read_manifest(path))
    except ReleaseError:
        return False


@contextlib.contextmanager
def _name_file_in_errors(path: Path, what: str, fix: str) -> Iterator[None]:
    """Turn every error inside into one line that begins with the file's name."""
    try:
        yield
    except ReleaseError as error:
        raise ReleaseError(f"{path}: {error}") from None
    except OSError as error:
        raise ReleaseError(f"{path}: {what} ({error.strerror or error}); {fix}") from None
    except MemoryError:
        raise ReleaseError(f"{path}: {what} (out of memory); use a machine with more memory") from None


# --- writing ---


def _write_zip(file: BinaryIO, archive: Archive) -> None:
    with zipfile.ZipFile(file, "w") as zipped:
        _add(zipped, _MANIFEST, to_canonical_json(archive.manifest), zipfile.ZIP_DEFLATED)
        if archive.signature is not None:
            _add(zipped, _SIGNATURE, to_canonical_json(archive.signature.to_dict()), zipfile.ZIP_DEFLATED)
        plain = {name: _to_plain(name, tensor)[1] for name, tensor in archive.tensors.items()}
        _add(zipped, _WEIGHTS, safetensors.numpy.save(plain), zipfile.ZIP_STORED)


def _add(zipped: zipfile.ZipFile, name: str, data: bytes, method: int) -> None:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = method
    info.create_system = 3  # fixed, for the same bytes on every platform
    info.external_attr = 0o644 << 16
    zipped.writestr(info, data)


def _check_read_back(partial: Path, archive: Archive) -> None:
    try:
        found = _read(partial)
    except ReleaseError as error:
        reason = str(error).partition(";")[0]
        raise ReleaseError(
            f"not written, because it could not be read back: {reason}; change what goes into it"
        ) from None
    same_content = compute_content_hash(found.manifest, found.tensors) == compute_content_hash(
        archive.manifest, archive.tensors
    )
    if not same_content or found.signature != archive.signature:
        raise ReleaseError("not written, because it would read back differently; use text for all keys of the manifest")


# --- hashing ---


def _list_hashed_parts(manifest: Mapping[str, Any], tensors: Tensors) -> Iterator[memoryview]:
    yield memoryview(to_canonical_json(manifest))
    for name in sorted(tensors):
        code, tensor = _to_plain(name, tensors[name])
        yield memoryview(name.encode("utf-8"))
        yield memoryview(code.encode("ascii"))
        yield memoryview(struct.pack(f"<{tensor.ndim}Q", *tensor.shape))
        yield tensor.reshape(-1).view(np.uint8).data  # hashed where it lies: weights may be gigabytes


def _to_plain(name: str, tensor: npt.NDArray[Any]) -> tuple[str, npt.NDArray[Any]]:
    """Return the safetensors code of a tensor's type, and the tensor as it is stored: little-endian, in row order."""
    little = tensor.dtype.newbyteorder("<")
    for code, dtype in _DTYPES.items():
        if little == np.dtype(dtype):
            return code, np.asarray(tensor, dtype=little, order="C")
    raise ReleaseError(f"tensor {name[:40]!a} is of type {tensor.dtype}; convert it to float32")


# --- reading untrusted files ---


def _read(path: Path) -> Archive:
    _refuse_missing_file(path)
    with path.open("rb") as file:
        members = read_members(file, _LIMITS)
    for name in (_MANIFEST, _WEIGHTS):
        if name not in members:
            raise make_damage_error(f"has no {name}")
    signature = members.get(_SIGNATURE)
    return Archive(
        manifest=_parse_manifest(members[_MANIFEST]),
        tensors=_parse_weights(members.pop(_WEIGHTS)),
        signature=None if signature is None else Signature.from_dict(_parse_object(signature, _SIGNATURE)),
    )


def _refuse_missing_file(path: Path) -> None:
    if not path.is_file():  # before opening: opening a pipe would block
        raise ReleaseError("not a file; give a .sundog file" if path.exists() else "no such file; check the name")


def _parse_manifest(raw: bytes) -> dict[str, Any]:
    manifest = _parse_object(raw, _MANIFEST)
    version = manifest.get("version")
    if manifest.get("format") != FORMAT or type(version) is not int or version < 1:
        raise make_damage_error(f"{_MANIFEST} is not that of a sundog release")
    if version != VERSION:
        raise ReleaseError("made by a newer version of sundog; upgrade sundog to open it")
    return manifest


def _parse_object(raw: bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object strictly: no duplicate keys, no NaN, bounded in depth and in items."""
    if sum(raw.count(mark) for mark in (b",", b"[", b"{")) > _MAX_JSON_ITEMS:
        raise make_damage_error(f"{what} has more than {_MAX_JSON_ITEMS:,} items")
    if raw.count(b"{") > _MAX_JSON_OBJECTS:
        raise make_damage_error(f"{what} has more than {_MAX_JSON_OBJECTS:,} objects")
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_refuse_duplicate_keys)
        to_canonical_json(value)  # what has no canonical form (1e999, half a surrogate pair) could not be hashed
    except (ValueError, RecursionError, ReleaseError):
        raise make_damage_error(f"{what} is not strict JSON") from None
    if not isinstance(value, dict):
        raise make_damage_error(f"{what} is not a JSON object")
    _check_depth(value, what)
    return value


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _check_depth(value: object, what: str) -> None:
    level: list[Any] = [value]
    for _ in range(_MAX_JSON_DEPTH):
        nested = [node for node in level if isinstance(node, dict | list)]
        level = [child for node in nested for child in (node.values() if isinstance(node, dict) else node)]
        if not level:
            return
    raise make_damage_error(f"{what} is nested more than {_MAX_JSON_DEPTH} deep")


def _parse_weights(raw: bytes) -> dict[str, npt.NDArray[Any]]:
    """Parse the tensors; the size of the header is checked here, and its offsets by safetensors."""
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or length > min(_MAX_HEADER, len(raw) - 8):
        raise make_damage_error(f"{_WEIGHTS} has a header of the wrong size")
    header = _parse_object(raw[8 : 8 + length], f"the header of {_WEIGHTS}")
    if len(header) > _MAX_TENSORS:
        raise make_damage_error(f"{_WEIGHTS} has more than {_MAX_TENSORS:,} tensors")
    for name, entry in header.items():
        _check_tensor_entry(name, entry)
    try:
        tensors = safetensors.numpy.load(raw)
    except (safetensors.SafetensorError, ValueError, OverflowError):
        raise make_damage_error(f"{_WEIGHTS} is malformed") from None
    for name, tensor in tensors.items():
        if tensor.dtype == np.bool_ and tensor.size and tensor.view(np.uint8).max() > 1:
            raise make_damage_error(f"tensor {name[:40]!a} has truth values other than 0 and 1")
    return dict(sorted(tensors.items()))


def _check_tensor_entry(name: str, entry: object) -> None:
    """Refuse what safetensors accepts: other types, metadata that is not hashed, shapes that numpy cannot hold."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise make_damage_error(f"tensor {name[:40]!a} is described wrongly")
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in _DTYPES:
        raise make_damage_error(f"tensor {name[:40]!a} is of a type that is not allowed")
    shape = entry["shape"]
    fits = isinstance(shape, list) and len(shape) <= _MAX_AXES
    if not fits or not all(type(axis) is int and 0 <= axis <= _LIMITS[_WEIGHTS].size for axis in shape):
        raise make_damage_error(f"tensor {name[:40]!a} has a shape that is not allowed")
