"""Whatever bytes arrive, a client, a keeper and the tally refuse them with a TallyError or accept a sound message."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.tally.protocol.keepers_round import KeepersRound
from tests.tally.protocol.peers_group import PeersGroup

from sundog.errors import TallyError
from sundog.tally.protocol.keeper import Keeper
from sundog.tally.protocol.keepers_tally import KeepersTally
from sundog.tally.protocol.peers_client import PeersClient
from sundog.tally.protocol.peers_tally import PeersTally

SIZE = 4


@cache
def record_peers() -> tuple[list[tuple[PeersClient, str, bytes]], list[tuple[PeersTally, str, bytes]]]:
    """Return what member 0 receives, and what the tally receives of it, each with the state before."""
    group = PeersGroup(SIZE)
    to_client, to_tally = [], []
    to_tally.append((copy.deepcopy(group.tally), "add_advertisement", group.clients[0].reply))
    group.advertise()
    for step, add, get in (
        ("share", "add_shares", group.tally.get_directory),
        ("mask", "add_vector", group.tally.get_delivered),
        ("endorse", "add_endorsement", lambda _: group.tally.get_survivors()),
        ("reveal", "add_reveal", lambda _: group.tally.get_endorsements()),
    ):
        before = PeersClient.load(group.identities[0], group.clients[0].to_bytes())
        to_client.append((before, step, get(group.name(0))))
        tally = copy.deepcopy(group.tally)
        getattr(group, step)()
        to_tally.append((tally, add, group.clients[0].reply))
    return to_client, to_tally


@cache
def record_keepers() -> tuple[Keeper, KeepersTally, list[tuple[str, bytes]], bytes]:
    """Return a keeper and a tally before anything arrived, what the tally receives, and what the keeper does."""
    game = KeepersRound(SIZE)
    keeper = Keeper.load(game.keys[0], game.keepers[0].to_bytes())
    tally = copy.deepcopy(game.tally)
    messages = [("add_contribution", game.contribute(0))]
    game.collect()
    request = game.tally.close()
    messages += [("add_endorsement", game.keepers[0].endorse(request))]
    return keeper, tally, messages, request


def change(data: st.DataObject, message: bytes) -> bytes:
    """Return the message with a few bytes changed, cut or added."""
    changed = bytearray(message)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(changed) - 1))
        changed[position] ^= data.draw(st.integers(1, 255))
    cut = bytes(changed)[: data.draw(st.sampled_from([len(message), len(message), len(message) - 1]))]
    assume(cut != message)
    return cut


def is_accepted(act: Callable[[bytes], object], message: bytes) -> bool:
    try:
        act(message)
    except TallyError:
        return False
    return True


@given(st.data())
def test_a_client_refuses_or_accepts_and_changes_nothing_if_it_refuses(data: st.DataObject) -> None:
    before, step, message = data.draw(st.sampled_from(record_peers()[0]))
    client = PeersClient.load(before._identity, before.to_bytes())

    def act(received: bytes) -> bytes:
        return client.mask(received, np.zeros(SIZE, np.uint32)) if step == "mask" else getattr(client, step)(received)

    if not is_accepted(act, change(data, message)):
        assert client.to_bytes() == before.to_bytes()
        act(message)


@given(st.data())
def test_the_tally_refuses_what_a_member_did_not_sign(data: st.DataObject) -> None:
    before, add, message = data.draw(st.sampled_from(record_peers()[1]))
    tally = copy.deepcopy(before)
    assert not is_accepted(getattr(tally, add), change(data, message))
    getattr(tally, add)(message)


@given(st.data())
def test_the_tally_refuses_what_a_contributor_or_keeper_did_not_sign(data: st.DataObject) -> None:
    _, before, messages, _ = record_keepers()
    add, message = data.draw(st.sampled_from(messages))
    assert not is_accepted(getattr(copy.deepcopy(before), add), change(data, message))


@given(st.data())
def test_a_keeper_endorses_no_changed_survivors(data: st.DataObject) -> None:
    before, _, _, request = record_keepers()
    keeper = Keeper.load(before._key, before.to_bytes())
    changed = change(data, request)
    is_accepted(keeper.find_unusable, changed)
    assert not is_accepted(keeper.endorse, changed)
    assert keeper.to_bytes() == before.to_bytes()
    keeper.endorse(request)


def test_a_state_that_is_cut_short_is_refused() -> None:
    before = record_peers()[0][0][0]
    with pytest.raises(TallyError, match="truncated"):
        PeersClient.load(before._identity, before.to_bytes()[:-1])
