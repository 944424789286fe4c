"""Hashes and keys, each for one role: what is derived for one purpose can never serve another."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32


def hash_parts(role: str, *parts: bytes) -> bytes:
    """Return SHA-256 of a role and of parts, each with its length before it.

    >>> hash_parts("test", b"ab", b"c") == hash_parts("test", b"a", b"bc")
    False
    """
    state = hashlib.sha256(_name(role))
    for part in parts:
        state.update(len(part).to_bytes(4, "little"))
        state.update(part)
    return state.digest()


def derive_key(secret: bytes, *, context: bytes, role: str, parties: bytes = b"") -> bytes:
    """Return a key of 32 bytes by HKDF-SHA256, bound to a context (of round and group), a role, and who uses it.

    >>> a = derive_key(bytes(32), context=b"round 1", role="test")
    >>> b = derive_key(bytes(32), context=b"round 2", role="test")
    >>> len(a), a == b
    (32, False)
    """
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=context, info=_name(role) + parties).derive(secret)


def _name(role: str) -> bytes:
    return f"sundog tally v1 {role}\0".encode()
