"""Who may take part: Ed25519 identities that an operator has enrolled, and what they sign.

Without enrolment one attacker could make any number of identities (Sybils) and outvote every threshold. A credential
says that the holder of the operator's key vouches for one identity, and no more than that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sundog.errors import TallyError
from sundog.release.signing import has_small_order
from sundog.tally.wire.message import Message, SentMessage, check_round

NO_SIGNATURE = bytes(64)  # until a message is signed

_CREDENTIAL = b"sundog tally credential v1\0"
_M = TypeVar("_M", bound=Message)


@dataclass(frozen=True)
class Identity:
    """A private key and the operator's signature on its public key.

    >>> operator, member = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    >>> identity = Identity(member, issue_credential(member.public_key().public_bytes_raw(), operator))
    >>> check_credential(identity.public_key, identity.credential, operator.public_key().public_bytes_raw())
    """

    private_key: Ed25519PrivateKey
    credential: bytes

    @property
    def public_key(self) -> bytes:
        """The 32 bytes by which others know this identity."""
        return self.private_key.public_key().public_bytes_raw()


def issue_credential(identity: bytes, operator: Ed25519PrivateKey) -> bytes:
    """Enrol an identity; refuse keys for which anybody could sign.

    >>> issue_credential(bytes(32), Ed25519PrivateKey.generate())
    Traceback (most recent call last):
    ...
    sundog.errors.TallyError: an identity is a point of small order, for which anybody could sign; it was refused
    """
    _check_identity(identity)
    return operator.sign(_CREDENTIAL + identity)


def check_credential(identity: bytes, credential: bytes, operator: bytes) -> None:
    """Raise TallyError unless the operator has enrolled this identity."""
    _check_identity(identity)
    _verify(operator, credential, _CREDENTIAL + identity, "a credential was not issued by the operator")


def sign(message: _M, key: Ed25519PrivateKey) -> _M:
    """Return the message with its signature."""
    return replace(message, signature=key.sign(message.signed_part))  # type: ignore[type-var]


def check_signature(message: Message, identity: bytes) -> None:
    """Raise TallyError unless this identity signed the message."""
    _verify(identity, message.encode()[-64:], message.signed_part, "a message was not signed by its sender")


def check_sender(message: SentMessage, round_digest: bytes, members: frozenset[bytes]) -> None:
    """Raise TallyError unless a message was signed for this round by one of these members."""
    check_round(message, round_digest)
    if message.sender not in members:
        raise TallyError("a message comes from somebody who may not send it now; it was refused")
    check_signature(message, message.sender)


def _check_identity(identity: bytes) -> None:
    if has_small_order(identity):
        raise TallyError("an identity is a point of small order, for which anybody could sign; it was refused")


def _verify(key: bytes, signature: bytes, signed: bytes, what: str) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, signed)
    except (InvalidSignature, ValueError):
        raise TallyError(f"{what}; it was refused") from None
