"""X25519 key agreement, with keys of one round."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from sundog.errors import TallyError

# The u-coordinates of small order on the curve and on its twist (RFC 7748); larger encodings are not canonical.
_PRIME = 2**255 - 19
_SMALL_ORDER = frozenset(
    {
        0,
        1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
        _PRIME - 1,
    }
)


def check_public_key(raw: bytes) -> None:
    """Raise TallyError for a key that fixes the shared secret (small order), or a second encoding of another key.

    >>> check_public_key(bytes(32))
    Traceback (most recent call last):
    ...
    sundog.errors.TallyError: an X25519 key is of small order or not canonical; it was refused
    """
    u = int.from_bytes(raw, "little")
    if u >= _PRIME or u in _SMALL_ORDER:
        raise TallyError("an X25519 key is of small order or not canonical; it was refused")


def compute_public_key(private_key: bytes) -> bytes:
    """Return the public key of a private one.

    >>> len(compute_public_key(bytes(32)))
    32
    """
    return X25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


class Agreement:
    """A private key, ready for agreements with many others.

    >>> a, b = bytes([1] * 32), bytes([2] * 32)
    >>> Agreement(a).agree(compute_public_key(b)) == Agreement(b).agree(compute_public_key(a))
    True
    """

    def __init__(self, private_key: bytes) -> None:
        self._key = X25519PrivateKey.from_private_bytes(private_key)

    def agree(self, public_key: bytes) -> bytes:
        """Return the secret shared with the holder of a public key, as raw bytes: derive keys from it, never use it."""
        return self._key.exchange(X25519PublicKey.from_public_bytes(public_key))
