"""Ed25519 signatures on releases: they show who made a file to anybody who knows the maker's public key.

A signature covers the content hash of a release (`archive.compute_content_hash`) and a prefix, so that it can never
pass for a signature on something else. It names the key that it was made with. That alone does not prove who holds the
key, so the verifier compares it with a public key from another source.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sundog.errors import ReleaseError

ALGORITHM = "ed25519"

# The y of the eight points whose order divides 8, of which five differ: with such a "public key" one signature holds
# for a large part of all messages, and with the neutral element for every one.
_PRIME = 2**255 - 19
_EIGHTH = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER = frozenset({0, 1, _PRIME - 1, _EIGHTH, _PRIME - _EIGHTH})
_PREFIX = "sundog release v1\n"
_MAX_KEY_FILE = 64 * 1024


@dataclass(frozen=True)
class Signature:
    """A signature in a release: lower-case hex, and the public key that belongs to it."""

    public_key: str
    value: str
    algorithm: str = ALGORITHM

    def to_dict(self) -> dict[str, str]:
        """Return the signature as plain JSON values.

        >>> Signature(public_key="00", value="11").to_dict()
        {'public_key': '00', 'value': '11', 'algorithm': 'ed25519'}
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Signature:
        """Parse a signature from JSON values; raise ReleaseError if it is malformed.

        >>> Signature.from_dict({"algorithm": "ed25519", "public_key": "00"})
        Traceback (most recent call last):
        sundog.errors.ReleaseError: the signature is malformed; sign the release again
        """
        algorithm = values.get("algorithm")
        if isinstance(algorithm, str) and algorithm != ALGORITHM:
            raise ReleaseError(f"the signature is of an unknown kind, {algorithm[:20]!a}; upgrade sundog")
        well_formed = (
            values.keys() == {"algorithm", "public_key", "value"}
            and algorithm == ALGORITHM
            and _is_hex(values["public_key"], digits=64)
            and _is_hex(values["value"], digits=128)
        )
        if not well_formed:
            raise ReleaseError("the signature is malformed; sign the release again")
        return cls(**values)


def sign(digest: str, private_key: Ed25519PrivateKey) -> Signature:
    """Sign a content hash.

    >>> key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    >>> signature = sign("ab" * 32, key)
    >>> check("ab" * 32, signature), check("cd" * 32, signature)
    (True, False)
    """
    if not _is_hex(digest, digits=64):
        raise ValueError(f"not a content hash: {digest!r}")
    public = private_key.public_key().public_bytes_raw()
    return Signature(public_key=public.hex(), value=private_key.sign(_make_message(digest)).hex())


def check(digest: str, signature: Signature, *, public_key: Ed25519PublicKey | None = None) -> bool:
    """Return whether the key that the signature names signed `digest`, and is `public_key` if one is given.

    A malformed signature gives False, never an error.

    >>> check("ab" * 32, Signature(public_key="no hex", value="at all"))
    False
    """
    if signature.algorithm != ALGORITHM or not _is_hex(digest, digits=64):
        return False
    if not _is_hex(signature.public_key, digits=64) or not _is_hex(signature.value, digits=128):
        return False
    if public_key is not None and public_key.public_bytes_raw().hex() != signature.public_key:
        return False
    if has_small_order(bytes.fromhex(signature.public_key)):
        return False
    try:
        named_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
        named_key.verify(bytes.fromhex(signature.value), _make_message(digest))
    except (InvalidSignature, ValueError):
        return False
    return True


def has_small_order(raw: bytes) -> bool:
    """Return whether a public key is a point of small order, in any encoding.

    >>> has_small_order(bytes([1, *[0] * 31])), has_small_order(bytes([2, *[0] * 31]))
    (True, False)
    """
    y = int.from_bytes(raw, "little") & (2**255 - 1)  # the highest bit is the sign of x
    return y % _PRIME in _SMALL_ORDER


def compute_fingerprint(public_key: Ed25519PublicKey | str) -> str:
    """Return the fingerprint of a public key (or of its hex in a `Signature`), short enough to read out on the phone.

    >>> compute_fingerprint(Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key())
    '139e 3940 e64b 5491 7220 88d9 a0d7 4162'
    """
    raw = bytes.fromhex(public_key) if isinstance(public_key, str) else public_key.public_bytes_raw()
    digits = hashlib.sha256(raw).hexdigest()[:32]  # 128 bits: no second key with the same name can be found
    return " ".join(digits[i : i + 4] for i in range(0, len(digits), 4))


def generate_key(private_path: str | Path, public_path: str | Path) -> str:
    """Write a new key pair as PEM files, never over an existing file, and return its fingerprint.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = generate_key(f"{folder}/key.pem", f"{folder}/key.pub.pem")
    ...     name == compute_fingerprint(load_public_key(f"{folder}/key.pub.pem"))
    True
    """
    private_path, public_path = Path(private_path), Path(public_path)
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    _write_new(private_path, private, mode=0o600)
    try:
        _write_new(public_path, public, mode=0o644)
    except BaseException:
        private_path.unlink(missing_ok=True)  # half a pair is useless, and a private key must not be left behind
        raise
    return compute_fingerprint(key.public_key())


def load_private_key(path: str | Path) -> Ed25519PrivateKey:
    """Load the private key to sign with, from a PEM file as `generate_key` writes it.

    >>> load_private_key("missing.pem")
    Traceback (most recent call last):
    sundog.errors.ReleaseError: missing.pem: no such file; give the PEM file of an Ed25519 private key
    """
    try:
        key = serialization.load_pem_private_key(_read_key(path, "private"), password=None)
    except TypeError:
        raise _make_key_error(path, "the key is encrypted", "private", "unencrypted ") from None
    except (ValueError, UnsupportedAlgorithm):
        raise _make_key_error(path, "not a private key", "private") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _make_key_error(path, "a private key of another kind", "private")
    return key


def load_public_key(path: str | Path) -> Ed25519PublicKey:
    """Load the public key to verify with, from a PEM file as `generate_key` writes it.

    >>> load_public_key("missing.pem")
    Traceback (most recent call last):
    sundog.errors.ReleaseError: missing.pem: no such file; give the PEM file of an Ed25519 public key
    """
    try:
        key = serialization.load_pem_public_key(_read_key(path, "public"))
    except (ValueError, UnsupportedAlgorithm):
        raise _make_key_error(path, "not a public key", "public") from None
    if not isinstance(key, Ed25519PublicKey):
        raise _make_key_error(path, "a public key of another kind", "public")
    if has_small_order(key.public_bytes_raw()):
        raise _make_key_error(path, "a key of small order, with which one signature holds for anything", "public")
    return key


def _make_message(digest: str) -> bytes:
    return f"{_PREFIX}{digest}".encode("ascii")


def _is_hex(text: object, *, digits: int) -> bool:
    # bytes.fromhex would take spaces and capitals too: many spellings of one signature
    return isinstance(text, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", text) is not None


def _make_key_error(path: str | Path, what: str, kind: str, extra: str = "") -> ReleaseError:
    return ReleaseError(f"{path}: {what}; give the {extra}PEM file of an Ed25519 {kind} key")


def _read_key(path: str | Path, kind: str) -> bytes:
    path = Path(path)
    try:
        if not path.is_file():  # before opening: opening a pipe would block
            raise _make_key_error(path, "not a file" if path.exists() else "no such file", kind)
        with path.open("rb") as file:
            data = file.read(_MAX_KEY_FILE + 1)
    except OSError as error:
        raise _make_key_error(path, f"cannot be read ({error.strerror})", kind) from None
    if len(data) > _MAX_KEY_FILE:
        raise _make_key_error(path, "too large for a key", kind)
    return data


def _write_new(path: Path, data: bytes, *, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise ReleaseError(f"{path}: exists already and is not overwritten; choose another name") from None
    except OSError as error:
        raise ReleaseError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise ReleaseError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
        raise
