"""Seeds of masks for three keepers, replicated so that any two have all of them and one never does.

A vector has three masks, one for each part. The seed of part i goes to the two keepers other than keeper i: two keepers
have all three seeds between them, and keeper i lacks one. Seeds are sealed with HPKE (RFC 9180).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from sundog.errors import TallyError
from sundog.extras import import_extra
from sundog.tally.protocol.agreement import check_public_key
from sundog.tally.protocol.key_derivation import derive_key, hash_parts
from sundog.tally.wire.keeper_messages import SEED_BYTES

PARTS = 3

_KEY_BYTES = 32


def list_parts(keeper: int) -> tuple[int, ...]:
    """Return the parts whose seeds a keeper holds.

    >>> [list_parts(keeper) for keeper in range(3)]
    [(1, 2), (0, 2), (0, 1)]
    """
    return tuple(part for part in range(PARTS) if part != keeper)


def derive_part_mask(seed: bytes, round_digest: bytes, part: int, identity: bytes) -> bytes:
    """Return the key of the mask that a contributor adds for one part."""
    return derive_key(seed, context=round_digest, role="part mask", parties=bytes([part]) + identity)


def commit_to_seed(seed: bytes, round_digest: bytes, part: int, identity: bytes) -> bytes:
    """Return a digest that shows both keepers of a part that they were sent the same seed."""
    return hash_parts("seed commitment", round_digest, bytes([part]), identity, seed)


def seal_seeds(seeds: tuple[bytes, ...], keeper: int, key: bytes, *, round_digest: bytes, parties: bytes) -> bytes:
    """Return the seeds that a keeper gets, of all three, such that only its private key opens them.

    >>> seeds, private = (b"0" * 32, b"1" * 32, b"2" * 32), X25519PrivateKey.generate()
    >>> sealed = seal_seeds(seeds, 1, private.public_key().public_bytes_raw(), round_digest=b"r", parties=b"p")
    >>> open_seeds(sealed, private.private_bytes_raw(), round_digest=b"r", parties=b"p") == (seeds[0], seeds[2])
    True
    """
    suite, keys = _load_suite()
    receiver = keys.from_pyca_cryptography_key(X25519PublicKey.from_public_bytes(key))
    encapsulated, sender = suite.create_sender_context(receiver, info=_make_info(round_digest))
    plain = b"".join(seeds[part] for part in list_parts(keeper))
    return bytes(encapsulated + sender.seal(plain, aad=parties))


def open_seeds(sealed: bytes, private_key: bytes, *, round_digest: bytes, parties: bytes) -> tuple[bytes, bytes]:
    """Return the two seeds of a seal; raise TallyError if it does not open."""
    check_public_key(sealed[:_KEY_BYTES])  # for which pyhpke raises an error of another class
    suite, keys = _load_suite()
    key = keys.from_pyca_cryptography_key(X25519PrivateKey.from_private_bytes(private_key))
    try:
        receiver = suite.create_recipient_context(sealed[:_KEY_BYTES], key, info=_make_info(round_digest))
        plain = receiver.open(sealed[_KEY_BYTES:], aad=parties)
    except import_extra("pyhpke", "tally").PyHPKEError:
        raise TallyError("sealed seeds do not open; they were refused") from None
    return plain[:SEED_BYTES], plain[SEED_BYTES:]


@cache
def _load_suite() -> tuple[Any, Any]:
    hpke = import_extra("pyhpke", "tally")
    kem, kdf = hpke.KEMId.DHKEM_X25519_HKDF_SHA256, hpke.KDFId.HKDF_SHA256
    return hpke.CipherSuite.new(kem, kdf, hpke.AEADId.AES256_GCM), hpke.KEMKey


def _make_info(round_digest: bytes) -> bytes:
    return b"sundog tally v1 seeds\0" + round_digest
