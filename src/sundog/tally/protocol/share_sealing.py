"""Sealing the shares that one member sends to another: AES-256-GCM, bound to sender, receiver and directory."""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sundog.errors import TallyError
from sundog.tally.protocol.key_derivation import derive_key

_NONCE = bytes(12)  # each key seals one message, and a client that is restored seals the same again


def seal_shares(shares: bytes, agreed: bytes, *, directory: bytes, sender: bytes, receiver: bytes) -> bytes:
    """Return shares that only the receiver opens, under a secret that both have agreed.

    >>> parties = {"directory": b"d", "sender": b"a", "receiver": b"b"}
    >>> open_shares(seal_shares(b"shares", bytes(32), **parties), bytes(32), **parties)
    b'shares'
    """
    key = _derive_channel_key(agreed, directory, sender, receiver)
    return AESGCM(key).encrypt(_NONCE, shares, directory + sender + receiver)


def open_shares(sealed: bytes, agreed: bytes, *, directory: bytes, sender: bytes, receiver: bytes) -> bytes:
    """Return the shares; raise TallyError unless this sender sealed them to this receiver in this directory."""
    key = _derive_channel_key(agreed, directory, sender, receiver)
    try:
        return AESGCM(key).decrypt(_NONCE, sealed, directory + sender + receiver)
    except InvalidTag:
        raise TallyError(f"the shares of member {sender.hex()[:8]} do not open; the round ends") from None


def _derive_channel_key(agreed: bytes, directory: bytes, sender: bytes, receiver: bytes) -> bytes:
    return derive_key(agreed, context=directory, role="channel", parties=sender + receiver)
