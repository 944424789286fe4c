"""Keys: bound to their round, role and parties; low-order, non-canonical and repeated ones are refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from tests.tally.protocol.peers_group import Operator, PeersGroup

from sundog.errors import TallyError
from sundog.tally.protocol.agreement import check_public_key, compute_public_key
from sundog.tally.protocol.identity import check_credential
from sundog.tally.protocol.key_derivation import derive_key, hash_parts
from sundog.tally.protocol.key_directory import KeyDirectory
from sundog.tally.protocol.peers_secrets import PeersSecrets, derive_pair_mask, derive_self_mask
from sundog.tally.protocol.share_sealing import open_shares, seal_shares
from sundog.tally.wire.key_messages import Advertisement, Entry

PRIME = 2**255 - 19
LOW_ORDER = [
    0,
    1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
    PRIME - 1,
    PRIME,
    PRIME + 1,
]


@pytest.mark.parametrize("u", [*LOW_ORDER, *(u + 2**255 for u in LOW_ORDER)])
def test_keys_of_small_order_are_refused_in_every_encoding(u: int) -> None:
    raw = u.to_bytes(32, "little")
    with pytest.raises(ValueError, match="shared key"):  # OpenSSL agrees that they have small order
        X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(raw))
    with pytest.raises(TallyError, match="small order or not canonical"):
        check_public_key(raw)


def test_a_second_encoding_of_a_key_is_refused() -> None:
    check_public_key((9).to_bytes(32, "little"))
    for u in (PRIME + 9, 2**255 + 9):
        with pytest.raises(TallyError, match="not canonical"):
            check_public_key(u.to_bytes(32, "little"))


def make_entries(group: PeersGroup) -> list[Entry]:
    return [Advertisement.decode(client.reply).entry for client in group.clients]


def test_a_key_that_stands_twice_in_a_directory_is_refused_also_in_another_role() -> None:
    group = PeersGroup(4)
    entries = make_entries(group)
    KeyDirectory(group.parameters.digest, 0, tuple(entries))
    for copy in (
        {"mask_key": entries[0].mask_key},
        {"channel_key": entries[0].mask_key},
        {"channel_key": entries[1].mask_key},
    ):
        changed = [entries[0], replace(entries[1], **copy), *entries[2:]]  # type: ignore[arg-type]
        with pytest.raises(TallyError, match="a key twice"):
            KeyDirectory(group.parameters.digest, 0, tuple(changed))


def test_members_are_sorted_and_there_once() -> None:
    group = PeersGroup(4)
    entries = make_entries(group)
    for wrong in ([entries[1], entries[0]], [entries[0], entries[0]]):
        with pytest.raises(TallyError, match="not sorted or has a member twice"):
            KeyDirectory(group.parameters.digest, 0, tuple(wrong))


def test_a_member_that_copies_anothers_key_cannot_advertise() -> None:
    group = PeersGroup(4)
    group.tally.add_advertisement(group.clients[0].reply)
    entries = make_entries(group)
    copied = replace(entries[1], mask_key=entries[0].mask_key)
    unsigned = Advertisement(group.parameters.digest, copied)
    signature = group.identities[1].private_key.sign(unsigned.signed_part)
    with pytest.raises(TallyError, match="a key twice"):
        group.tally.add_advertisement(replace(unsigned, entry=replace(copied, signature=signature)).encode())
    group.tally.add_advertisement(group.clients[1].reply)  # its own keys are accepted after that


def test_an_identity_of_small_order_has_no_credential() -> None:
    with pytest.raises(TallyError, match="small order"):
        check_credential(bytes(32), bytes(64), Operator().public_key)


def test_a_derived_key_depends_on_everything_that_it_is_bound_to() -> None:
    keys = {
        derive_key(secret, context=context, role=role, parties=parties)
        for secret in (b"a" * 32, b"b" * 32)
        for context in (b"a" * 32, b"b" * 32)
        for role in ("one", "two")
        for parties in (b"ab", b"ba")
    }
    assert len(keys) == 16


def test_roles_have_different_keys() -> None:
    secrets = PeersSecrets(bytes(32), bytes(32), bytes(32))
    element, same = secrets.self_secret, bytes(32)
    keys = [
        secrets.mask_private_key,
        secrets.channel_private_key,
        derive_self_mask(element, same, same),
        derive_pair_mask(same, same, same, same),
        derive_key(same, context=same, role="channel", parties=same + same),
        derive_key(same, context=same, role="polynomials", parties=same),
    ]
    assert all(a != b for a, b in combinations(keys, 2))
    assert compute_public_key(keys[0]) == secrets.public_keys[0]


def test_sealed_shares_open_only_for_their_sender_receiver_and_directory() -> None:
    right = {"directory": b"d" * 32, "sender": b"a" * 32, "receiver": b"b" * 32}
    sealed = seal_shares(b"shares", bytes(32), **right)
    assert open_shares(sealed, bytes(32), **right) == b"shares"
    reflected = {"directory": right["directory"], "sender": right["receiver"], "receiver": right["sender"]}
    for wrong in (reflected, *({**right, name: b"c" * 32} for name in right)):
        with pytest.raises(TallyError, match="do not open"):
            open_shares(sealed, bytes(32), **wrong)


def test_the_parts_of_a_hash_cannot_be_moved() -> None:
    assert len({hash_parts("r", b"ab", b"c"), hash_parts("r", b"a", b"bc"), hash_parts("ra", b"b", b"c")}) == 3


def test_polynomials_differ_from_directory_to_directory() -> None:
    """A client that is set back before it shared would otherwise reuse them for another group."""
    secrets = PeersSecrets(bytes(32), bytes(32), bytes(32))
    a, b = (secrets.draw_coefficients(context * 32, threshold=4) for context in (b"a", b"b"))
    assert a.shape == (3, 12)
    assert (a != b).all()
