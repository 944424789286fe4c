"""Unmasking a group's sum: survivors' self masks, and the pairwise masks between survivors and dropped users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sundog.errors import TallyError
from sundog.tally.protocol.agreement import Agreement, compute_public_key
from sundog.tally.protocol.key_directory import KeyDirectory
from sundog.tally.protocol.mask_stream import MaskStream
from sundog.tally.protocol.peers_secrets import derive_mask_private_key, derive_pair_mask, derive_self_mask
from sundog.tally.protocol.shamir import Elements, reconstruct_secrets
from sundog.tally.protocol.survivor_statement import hash_mask_context
from sundog.tally.wire.codecs import Members, Vector


@dataclass(frozen=True)
class Unmasking:
    """What is known of a group when its shares have been revealed."""

    directory: KeyDirectory
    sharers: Members
    survivors: Members

    def unmask(self, masked: Vector, helpers: npt.NDArray[np.int64], shares: Elements) -> Vector:
        """Return the sum of the survivors' vectors.

        Args:
            masked: the sum of their masked vectors.
            helpers: the positions of the members whose shares are used.
            shares: of each helper one share for each sharer: (helpers, sharers, elements).
        """
        threshold = self.directory.threshold
        secrets = reconstruct_secrets(helpers[:threshold] + 1, shares[:threshold])
        context = hash_mask_context(self.directory.digest, self.sharers)
        masks, total = MaskStream(masked.size), masked.copy()
        for position, secret in zip(np.flatnonzero(self.sharers), secrets, strict=True):
            if self.survivors[position]:
                identity = self.directory.entries[position].identity
                masks.subtract(total, derive_self_mask(secret, context, identity))
            else:
                self._remove_pair_masks(total, masks, context, int(position), secret)
        return total

    def _remove_pair_masks(
        self, total: Vector, masks: MaskStream, context: bytes, dropped: int, secret: Elements
    ) -> None:
        """Remove what the survivors have added or subtracted for one dropped user."""
        entry = self.directory.entries[dropped]
        private_key = derive_mask_private_key(secret, self.directory.round, entry.identity)
        if compute_public_key(private_key) != entry.mask_key:
            raise TallyError(
                f"the shares of member {entry.identity.hex()[:8]} do not give its key; the round is refused"
            )
        agreement = Agreement(private_key)
        for position in np.flatnonzero(self.survivors):
            other = self.directory.entries[position]
            agreed = agreement.agree(other.mask_key)
            if position < dropped:  # the survivor has added it
                masks.subtract(total, derive_pair_mask(agreed, context, other.identity, entry.identity))
            else:
                masks.add(total, derive_pair_mask(agreed, context, entry.identity, other.identity))
