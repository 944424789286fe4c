"""Attacks on peers fail. Each has a control: the same attack on a weaker protocol, or beyond the bound, succeeds."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tally.protocol.peers_group import PeersGroup

from sundog.errors import TallyError
from sundog.tally.protocol.agreement import Agreement, compute_public_key
from sundog.tally.protocol.key_directory import KeyDirectory
from sundog.tally.protocol.mask_stream import MaskStream
from sundog.tally.protocol.peers_client import PeersClient
from sundog.tally.protocol.peers_secrets import derive_mask_private_key, derive_pair_mask, derive_self_mask
from sundog.tally.protocol.shamir import ELEMENTS, Elements, reconstruct_secrets, unpack_elements
from sundog.tally.protocol.survivor_statement import hash_mask_context
from sundog.tally.wire.codecs import Members, Vector
from sundog.tally.wire.key_messages import Directory
from sundog.tally.wire.reveal_messages import RevealedShares
from sundog.tally.wire.survivor_messages import Endorsement, Endorsements, MaskedVector, Survivors

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SIZE = 10  # the threshold is 6, so fewer than 2 may collude
TARGET = 9
SECRET = np.arange(100, 100 + SIZE, dtype=np.uint32)


@pytest.fixture(autouse=True)
def _among_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield
    for name in [name for name in sys.modules if name.startswith("tally_text")]:
        del sys.modules[name]


def make_text_users(count: int) -> tuple[list[Any], dict[int, bytes]]:
    from tally_text.text_protocol import TextUser

    users = [TextUser(number) for number in range(count)]
    return users, {user.number: user.public_key for user in users}


class Tally:
    """A lying tally: what it can compute from the shares that it gets."""

    def __init__(self, group: PeersGroup, sharers: Members) -> None:
        self.directory: KeyDirectory = group.tally._directory
        self.sharers = sharers
        self.context = hash_mask_context(self.directory.digest, sharers)
        self.shares: dict[str, dict[int, Elements]] = {"mask": {}, "self": {}}

    def learn(self, helper: int, share: bytes, kind: str) -> None:
        self.shares[kind].setdefault(helper, unpack_elements(share))

    def find_secret(self, kind: str) -> Elements | None:
        """Return a secret of the target, if there are enough shares of it."""
        known = sorted(self.shares[kind].items())[: self.directory.threshold]
        if len(known) < self.directory.threshold:
            return None
        return reconstruct_secrets(np.array([helper + 1 for helper, _ in known]), np.stack([row for _, row in known]))

    def read(self, masked: Vector) -> Vector:
        """Return the target's vector as far as the secrets that are known remove its masks."""
        total, masks = masked.copy(), MaskStream(masked.size)
        names, target = self.directory.identities, self.directory.identities[TARGET]
        own = self.find_secret("self")
        if own is not None:
            masks.subtract(total, derive_self_mask(own, self.context, target))
        secret = self.find_secret("mask")
        if secret is not None:
            agreement = Agreement(derive_mask_private_key(secret, self.directory.round, target))
            for other in np.flatnonzero(self.sharers):
                if other != TARGET:  # the target is the last, so it has subtracted all pairwise masks
                    agreed = agreement.agree(self.directory.entries[other].mask_key)
                    masks.add(total, derive_pair_mask(agreed, self.context, names[other], target))
        return total


def reveal_to(tally: Tally, client: PeersClient, number: int, survivors: Members, endorsements: bytes) -> None:
    """Let a client reveal, and keep its share of the target's secret."""
    shares = RevealedShares.decode(client.reveal(endorsements)).shares
    position = int(np.flatnonzero(tally.sharers).tolist().index(TARGET))
    tally.learn(number, shares[position], "self" if survivors[TARGET] else "mask")


# --- a late message of a dropped user ---


def test_a_late_message_of_a_dropped_user_stays_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    group = PeersGroup(SIZE)
    monkeypatch.setattr(group, "vector", lambda number: SECRET)
    group.advertise()
    group.share()
    group.mask(range(TARGET))  # the target's vector comes too late
    late = MaskedVector.decode(group.clients[TARGET].mask(group.tally.get_delivered(group.name(TARGET)), SECRET)).vector
    group.endorse(range(TARGET))
    np.testing.assert_array_equal(group.reveal(range(TARGET)), TARGET * SECRET)
    tally = Tally(group, group.tally.sharers)
    for number in range(TARGET):
        share = RevealedShares.decode(group.clients[number].reply).shares[TARGET]
        tally.learn(number, share, "mask")
    assert tally.find_secret("mask") is not None, "the tally can remove all pairwise masks"
    assert (tally.read(late) != SECRET).all(), "but the self mask is left"
    tally.shares["self"] = tally.shares["mask"].copy()  # with the other secret's shares it is no use either
    assert (tally.read(late) != SECRET).all()


def test_a_late_message_is_readable_in_the_protocol_of_the_text() -> None:
    users, keys = make_text_users(SIZE)
    late = users[TARGET].encrypt(SECRET, keys, b"1")
    online = range(TARGET)
    revealed = [user.recover(keys, online, SIZE, b"1") for user in users[:TARGET]]
    np.testing.assert_array_equal(late + np.sum(revealed, axis=0, dtype=np.uint32), SECRET)


# --- the tally tells clients of different survivors ---


def lie_about_survivors(group: PeersGroup, colluders: int) -> Tally:
    """Tell half of the honest that the target survived, and the others that it did not; return what the tally learns.

    Colluders are the first members. They sign both, and give the tally their shares of both secrets.
    """
    everybody = np.ones(SIZE, dtype=bool)
    without = np.arange(SIZE) != TARGET
    honest = [number for number in range(SIZE) if number not in (*range(colluders), TARGET)]
    half = (len(honest) + 1) // 2
    tally = Tally(group, everybody)
    for number in range(colluders):
        share = group.clients[number]._state.shares[TARGET]
        tally.learn(number, share[:24], "mask")
        tally.learn(number, share[24:], "self")
    for survivors, members in ((everybody, [*honest[: half - 1], TARGET]), (without, honest[half - 1 :])):
        message = Survivors(group.parameters.digest, survivors).encode()
        signatures = {number: Endorsement.decode(group.clients[number].endorse(message)) for number in members}
        statement = next(iter(signatures.values())).statement
        for number in range(colluders):
            unsigned = Endorsement(group.parameters.digest, group.name(number), statement, bytes(64))
            signature = group.identities[number].private_key.sign(unsigned.signed_part)
            signatures[number] = replace(unsigned, signature=signature)
        order = sorted(signatures)
        bits = np.isin(np.arange(SIZE), order)
        proof = Endorsements(group.parameters.digest, bits, tuple(signatures[number].signature for number in order))
        for number in members:
            with contextlib.suppress(TallyError):  # too few signatures
                reveal_to(tally, group.clients[number], number, survivors, proof.encode())
    return tally


@pytest.mark.parametrize(("colluders", "reads"), [(0, False), (1, False), (2, True)])
def test_a_lie_about_survivors_needs_a_fifth_of_the_group(
    colluders: int, reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control is the same attack with two colluders of ten: the bound is exact."""
    group = PeersGroup(SIZE)
    monkeypatch.setattr(group, "vector", lambda number: SECRET)
    group.run_until_masked()
    masked = MaskedVector.decode(group.clients[TARGET].reply).vector
    tally = lie_about_survivors(group, colluders)
    assert (tally.read(masked) == SECRET).all() == reads
    assert all(tally.find_secret(kind) is not None for kind in ("mask", "self")) == reads


# --- both shares of one user ---


def ask_for_both(group: PeersGroup, *, restarts: bool, forgets: bool) -> int:
    """Ask member 0 to endorse and reveal with and without the target; return for how many of them it does."""
    stored = group.clients[0].to_bytes()
    answered = 0
    for survivors in (np.ones(SIZE, dtype=bool), np.arange(SIZE) != TARGET):
        if forgets:
            group.clients[0] = PeersClient.load(group.identities[0], stored)
        elif restarts:
            group.restart(0)
        try:
            statement = Endorsement.decode(
                group.clients[0].endorse(Survivors(group.parameters.digest, survivors).encode())
            ).statement
            endorsers, signatures = np.arange(SIZE) < 6, []
            for number in range(6):  # as if enough others had signed it
                unsigned = Endorsement(group.parameters.digest, group.name(number), statement, bytes(64))
                signatures.append(group.identities[number].private_key.sign(unsigned.signed_part))
            group.clients[0].reveal(Endorsements(group.parameters.digest, endorsers, tuple(signatures)).encode())
            answered += 1
        except TallyError:
            assert answered == 1
    return answered


@pytest.mark.parametrize("restarts", [False, True])
def test_a_client_never_releases_both_shares_even_if_all_others_sign(restarts: bool) -> None:
    group = PeersGroup(SIZE)
    group.run_until_masked()
    assert ask_for_both(group, restarts=restarts, forgets=False) == 1


def test_a_client_that_forgets_its_state_releases_both() -> None:
    """The control: a program that does not store the state before it sends."""
    group = PeersGroup(SIZE)
    group.run_until_masked()
    assert ask_for_both(group, restarts=True, forgets=True) == 2


# --- swapped keys ---


def swap_keys(group: PeersGroup, directory: bytes) -> tuple[bytes, bytes]:
    """Return a directory in which member 1 has a mask key of the tally, and the private key."""
    private = bytes([7] * 32)
    message = Directory.decode(directory)
    entries = list(message.entries)
    entries[1] = replace(entries[1], mask_key=compute_public_key(private))
    swapped = KeyDirectory(message.round, message.group, tuple(entries))
    log = type(group.log)()
    log.append(swapped.digest)
    forged = replace(message, entries=tuple(entries), log_root=log.head.root)
    return forged.encode(), private


def test_swapped_keys_are_refused() -> None:
    group = PeersGroup(SIZE)
    group.advertise()
    directory = group.tally.get_directory(group.name(0))
    forged, _ = swap_keys(group, directory)
    with pytest.raises(TallyError, match="not signed by its sender"):
        group.clients[0].share(forged)
    group.clients[0].share(directory)  # the right one is accepted after that


def test_swapped_keys_read_a_vector_where_keys_are_not_signed() -> None:
    users, keys = make_text_users(3)
    from tally_text.text_protocol import TextUser

    tally = TextUser(1)
    lie = {0: keys[0], 1: tally.public_key, 2: tally.public_key}
    masked = users[0].encrypt(SECRET, lie, b"1")
    known = tally.recover(lie, [1, 2], SIZE, b"1")  # its factor against user 0, negative as 1 > 0
    np.testing.assert_array_equal(masked + 2 * known, SECRET)


# --- a reused round ---


def test_a_round_cannot_be_run_twice_with_one_identity() -> None:
    group = PeersGroup(SIZE)
    group.run_until_masked()
    group.memories[0] = PeersClient.load(group.identities[0], group.clients[0].to_bytes()).memory
    with pytest.raises(TallyError, match="has taken part in period 1"):
        group.join(0)


def test_a_round_that_is_run_twice_tells_what_changed_in_the_text() -> None:
    """The control: in the text the same keys and round name give the same masks."""
    users, keys = make_text_users(SIZE)
    first, second = (users[0].encrypt(vector, keys, b"1") for vector in (SECRET, SECRET + np.uint32(5)))
    assert set((second - first).tolist()) == {5}


def test_masks_of_two_rounds_differ_even_with_the_same_client_forgetting_the_first() -> None:
    group = PeersGroup(SIZE)
    masked = []
    for _ in range(2):  # nobody remembers
        group.open(group.parameters)
        group.run_until_masked()
        masked.append(MaskedVector.decode(group.clients[0].reply).vector)
    assert (masked[0] != masked[1]).all()


# --- a group of three ---


def test_a_client_joins_no_group_of_three() -> None:
    group = PeersGroup(3, minimum_group=100)
    group.advertise()
    with pytest.raises(TallyError, match="3 members, and this client joins none below 100"):
        group.clients[TARGET % 3].share(group.tally.get_directory(group.name(TARGET % 3)))


def test_two_of_three_read_the_third() -> None:
    """The control: a client whose program allows it, and two others who subtract their own vectors."""
    group = PeersGroup(3, minimum_group=3)
    group.run_until_masked()
    group.endorse()
    total = group.reveal()
    np.testing.assert_array_equal(total - group.vector(0) - group.vector(1), group.vector(2))


# --- directories ---


def test_a_member_who_is_shown_another_log_endorses_nothing_that_counts() -> None:
    """The same directory in two logs: the survivors sign the log head, so the two views come to light."""
    group = PeersGroup(SIZE)
    group.advertise()
    honest = Directory.decode(group.tally.get_directory(group.name(0)))
    log = type(group.log)([b"another group"])
    index = log.append(group.tally._directory.digest)
    place: dict[str, Any] = {"log_size": log.head.size, "log_root": log.head.root, "log_index": index}
    group.clients[0].share(replace(honest, **place, inclusion=log.prove_inclusion(index, log.head.size)).encode())
    for number in range(1, SIZE):
        group.clients[number].share(group.tally.get_directory(group.name(number)))
    for client in group.clients:
        group.tally.add_shares(client.reply)
    group.tally.close_shares()
    group.mask()
    with pytest.raises(TallyError, match="not of these survivors"):
        group.tally.add_endorsement(group.clients[0].endorse(group.tally.get_survivors()))
    group.endorse(range(1, SIZE))  # the control: those who saw one log agree


def test_a_log_that_was_rewritten_is_refused() -> None:
    group = PeersGroup(SIZE)
    for period in (1, 2):
        group.open(replace_period(group, period))
        group.advertise()
        group.share()
        group.memories = [client.memory for client in group.clients]
    honest, group.log = group.log, type(group.log)([b"x", b"y"])
    group.open(replace_period(group, 3))
    group.advertise()
    with pytest.raises(TallyError, match="does not contain the log that was seen before"):
        group.share()
    group.log = honest  # the control: with the log as it was, the next round goes on
    group.open(replace_period(group, 3))
    group.advertise()
    group.share()


def replace_period(group: PeersGroup, period: int) -> Any:
    from sundog.tally.protocol.announcement import announce_peers

    return announce_peers(group.operator.key, period=period, cells=SIZE, minimum=3)


def test_shares_have_the_size_that_the_attacks_assume() -> None:
    assert unpack_elements(bytes(24)).size == ELEMENTS
