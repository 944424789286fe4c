"""The secrets of a member: everything comes from one seed, so that a restored client says the same again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sundog.tally.protocol.agreement import compute_public_key
from sundog.tally.protocol.key_derivation import derive_key
from sundog.tally.protocol.shamir import ELEMENTS, Elements, expand_elements, pack_elements


@dataclass(frozen=True)
class PeersSecrets:
    """A seed from the operating system, for one identity and one round."""

    seed: bytes
    round: bytes
    identity: bytes

    @property
    def channel_private_key(self) -> bytes:
        """The X25519 key that opens shares; it is never shared itself."""
        return derive_key(self.seed, context=self.round, role="channel private key", parties=self.identity)

    @property
    def mask_private_key(self) -> bytes:
        """The X25519 key of the pairwise masks, which others can reconstruct if this member drops out."""
        return derive_mask_private_key(self._expand("mask secret"), self.round, self.identity)

    @property
    def self_secret(self) -> Elements:
        """The secret of the self mask, which others can reconstruct if this member survives."""
        return self._expand("self secret")

    @property
    def public_keys(self) -> tuple[bytes, bytes]:
        """The mask key and the channel key to advertise."""
        return compute_public_key(self.mask_private_key), compute_public_key(self.channel_private_key)

    def get_shared(self) -> Elements:
        """Return what is shared: the mask secret and then the self secret."""
        return np.concatenate([self._expand("mask secret"), self.self_secret])

    def draw_coefficients(self, context: bytes, threshold: int) -> Elements:
        """Return the coefficients of the polynomials, which differ from directory to directory."""
        key = derive_key(self.seed, context=context, role="polynomials", parties=self.identity)
        return expand_elements(key, (threshold - 1) * 2 * ELEMENTS).reshape(threshold - 1, 2 * ELEMENTS)

    def _expand(self, role: str) -> Elements:
        key = derive_key(self.seed, context=self.round, role=role, parties=self.identity)
        return expand_elements(key, ELEMENTS)


def derive_mask_private_key(secret: Elements, round_digest: bytes, identity: bytes) -> bytes:
    """Return the private mask key that belongs to a secret of shared elements."""
    return derive_key(pack_elements(secret), context=round_digest, role="mask private key", parties=identity)


def derive_self_mask(secret: Elements, mask_context: bytes, identity: bytes) -> bytes:
    """Return the key of a self mask."""
    return derive_key(pack_elements(secret), context=mask_context, role="self mask", parties=identity)


def derive_pair_mask(agreed: bytes, mask_context: bytes, lower: bytes, upper: bytes) -> bytes:
    """Return the key of the mask that the lower of two members adds and the upper one subtracts."""
    return derive_key(agreed, context=mask_context, role="pair mask", parties=lower + upper)
