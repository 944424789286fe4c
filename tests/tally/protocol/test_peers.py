"""Peers: the sum is that of the survivors, whoever drops out when; everything out of place is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.tally.protocol.peers_group import Operator, PeersGroup

from sundog.errors import TallyError
from sundog.tally.protocol.announcement import announce_peers
from sundog.tally.protocol.client_memory import ClientMemory
from sundog.tally.protocol.identity import Identity, sign
from sundog.tally.protocol.peers_client import PeersClient
from sundog.tally.protocol.peers_tally import PeersTally, Step
from sundog.tally.thresholds import compute_threshold
from sundog.tally.wire.share_messages import DeliveredShares
from sundog.tally.wire.survivor_messages import Endorsements, MaskedVector, Survivors

SIZE = 10  # and the threshold is 6


@pytest.mark.parametrize("phase", ["nobody", "share", "mask", "endorse", "reveal"])
def test_four_in_ten_may_drop_out_at_any_phase(phase: str) -> None:
    group = PeersGroup(SIZE)
    rest = [0, 2, 3, 5, 8, 9]
    group.advertise()
    steps = ["share", "mask", "endorse", "reveal"]
    last = steps.index(phase) if phase in steps else len(steps)
    group.share(rest if last <= 0 else None)
    group.mask(rest if last <= 1 else None)
    group.endorse(rest if last <= 2 else None)
    total = group.reveal(rest if last <= 3 else None)
    expected = np.isin(np.arange(SIZE), rest) if last <= 1 else np.ones(SIZE)
    np.testing.assert_array_equal(total, expected)


def test_members_may_drop_out_at_every_phase_of_one_round() -> None:
    group = PeersGroup(20)
    group.advertise()
    group.share(range(18))
    group.mask(range(1, 17))
    group.endorse(range(2, 16))
    total = group.reveal(range(3, 15))
    np.testing.assert_array_equal(total, np.isin(np.arange(20), range(1, 17)))


@pytest.mark.parametrize("step", ["share", "mask", "endorse", "reveal"])
def test_one_member_too_few_ends_the_round_for_good(step: str) -> None:
    group = PeersGroup(SIZE)
    group.advertise()
    for name in ["share", "mask", "endorse", "reveal"]:
        if name == step:
            with pytest.raises(TallyError, match=r"5 of 10 members sent .*, 6 must"):
                getattr(group, name)(range(5))
            break
        getattr(group, name)()
    assert group.tally.step == Step.REFUSED
    with pytest.raises(TallyError, match="refused"):
        group.tally.close_reveals()


def test_the_sum_wraps_around_at_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    group = PeersGroup(SIZE)
    monkeypatch.setattr(group, "vector", lambda number: np.full(SIZE, 2**31 + number, dtype=np.uint32))
    group.run_until_masked()
    group.endorse()
    assert set(group.reveal().tolist()) == {sum(2**31 + number for number in range(SIZE)) % 2**32}


def test_what_the_tally_receives_says_nothing_about_a_vector() -> None:
    """Of equal vectors, every masked one differs in every cell: masks are there, and fresh in each round."""
    seen = []
    for _ in range(2):
        group = PeersGroup(SIZE)
        group.advertise()
        group.share()
        for number in group.everybody:
            data = group.clients[number].mask(group.tally.get_delivered(group.name(number)), np.zeros(SIZE, np.uint32))
            seen.append(MaskedVector.decode(data).vector)
    assert len(np.unique(np.concatenate(seen))) > 0.99 * 2 * SIZE * SIZE


@pytest.mark.parametrize("step", range(5))
def test_a_member_restarts_after_any_step_and_says_the_same(step: int) -> None:
    group = PeersGroup(SIZE)
    for number, act in enumerate([group.advertise, group.share, group.mask, group.endorse, group.reveal]):
        result = act()
        if number == step:
            for member in group.everybody:
                before = group.clients[member].reply
                assert group.restart(member).reply == before
    np.testing.assert_array_equal(result, np.ones(SIZE))


def test_a_message_that_comes_twice_is_answered_alike_and_counts_once() -> None:
    group = PeersGroup(SIZE)
    group.advertise()
    group.tally.add_advertisement(group.clients[0].reply)
    for act, messages, add in _steps(group):
        for number in group.everybody:
            message = messages(number)
            replies = {act(number, message), act(number, message)}
            assert len(replies) == 1
            for _ in range(2):
                add(group.tally, next(iter(replies)))
        _close(group)
        add(group.tally, act(0, messages(0)))  # after the step, too
    np.testing.assert_array_equal(group.total, np.ones(SIZE))  # type: ignore[attr-defined]


def _steps(group: PeersGroup) -> list[tuple[Callable[..., bytes], Callable[[int], bytes], Callable[..., None]]]:
    tally, clients = group.tally, group.clients
    return [
        (lambda k, m: clients[k].share(m), lambda k: tally.get_directory(group.name(k)), type(tally).add_shares),
        (
            lambda k, m: clients[k].mask(m, group.vector(k)),
            lambda k: tally.get_delivered(group.name(k)),
            type(tally).add_vector,
        ),
        (lambda k, m: clients[k].endorse(m), lambda k: tally.get_survivors(), type(tally).add_endorsement),
        (lambda k, m: clients[k].reveal(m), lambda k: tally.get_endorsements(), type(tally).add_reveal),
    ]


def _close(group: PeersGroup) -> None:
    tally = group.tally
    closes: dict[Step, Callable[[], object]] = {
        Step.SHARES: tally.close_shares,
        Step.VECTORS: tally.close_vectors,
        Step.ENDORSEMENTS: tally.close_endorsements,
        Step.REVEALS: tally.close_reveals,
    }
    group.total = closes[tally.step]()  # type: ignore[attr-defined]


def test_a_tally_that_counts_a_replay_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    has_accepted, keep = PeersTally._has_accepted, PeersTally._keep

    def forget(self: PeersTally, data: bytes) -> bool:
        forgets = self.step == Step.VECTORS and data[1] == MaskedVector.KIND
        return not forgets and has_accepted(self, data)

    def keep_again(self: PeersTally, sender: bytes, data: bytes, content: object) -> None:
        self._senders.pop(sender, None)
        keep(self, sender, data, content)

    monkeypatch.setattr(PeersTally, "_has_accepted", forget)
    monkeypatch.setattr(PeersTally, "_keep", keep_again)
    with pytest.raises(AssertionError):
        test_a_message_that_comes_twice_is_answered_alike_and_counts_once()


def test_a_second_different_vector_of_a_member_is_refused() -> None:
    group = PeersGroup(SIZE)
    group.advertise()
    group.share()
    first = group.clients[0].mask(group.tally.get_delivered(group.name(0)), group.vector(0))
    group.tally.add_vector(first)
    other = replace(MaskedVector.decode(first), vector=group.vector(0))
    with pytest.raises(TallyError, match="two different messages"):
        group.tally.add_vector(sign(other, group.identities[0].private_key).encode())


def test_late_foreign_and_forged_messages_are_refused_by_the_tally() -> None:
    operator = Operator()
    group, other = PeersGroup(SIZE, operator=operator), PeersGroup(SIZE, operator=operator)
    for each in (group, other):
        each.advertise()
        each.share()
    vectors = [each.clients[0].mask(each.tally.get_delivered(each.name(0)), each.vector(0)) for each in (group, other)]
    with pytest.raises(TallyError, match="another round"):
        group.tally.add_vector(vectors[1])
    forged = replace(MaskedVector.decode(vectors[0]), sender=group.name(1))
    with pytest.raises(TallyError, match="not signed by its sender"):
        group.tally.add_vector(forged.encode())
    stranger = operator.enrol(1)[0]
    foreign = replace(MaskedVector.decode(vectors[0]), sender=stranger.public_key)
    with pytest.raises(TallyError, match="may not send"):
        group.tally.add_vector(sign(foreign, stranger.private_key).encode())
    group.mask(range(1, SIZE))
    with pytest.raises(TallyError, match="vectors came during endorsements"):
        group.tally.add_vector(vectors[0])


def test_only_the_enrolled_may_advertise() -> None:
    group = PeersGroup(SIZE)
    stranger = Identity(group.identities[0].private_key, group.identities[1].credential)
    client = PeersClient.join(
        stranger, group.parameters.encode(), operator=group.operator.public_key, memory=ClientMemory()
    )
    with pytest.raises(TallyError, match="credential was not issued"):
        group.tally.add_advertisement(client.reply)


def test_an_identity_advertises_once() -> None:
    group = PeersGroup(SIZE)
    group.tally.add_advertisement(group.clients[0].reply)
    with pytest.raises(TallyError, match="two different messages"):
        group.tally.add_advertisement(group.join(0).reply)


def test_the_tally_says_nothing_before_its_time() -> None:
    group = PeersGroup(SIZE)
    for get in (group.tally.get_directory, group.tally.get_delivered):
        with pytest.raises(TallyError, match="at advertisements, not yet"):
            get(group.name(0))
    group.advertise()
    group.tally.get_directory(group.name(0))
    for ask in (group.tally.get_survivors, group.tally.get_endorsements):
        with pytest.raises(TallyError, match="at shares, not yet"):
            ask()


def test_a_client_insists_on_the_order_of_steps() -> None:
    group, everybody = PeersGroup(SIZE), np.ones(SIZE, dtype=bool)
    group.advertise()
    with pytest.raises(TallyError, match="masked came after this client had advertised"):
        group.clients[0].mask(DeliveredShares(group.parameters.digest, everybody, ()).encode(), group.vector(0))
    group.share()
    with pytest.raises(TallyError, match="revealed came after this client had shared"):
        group.clients[0].reveal(Endorsements(group.parameters.digest, everybody, ()).encode())


def test_a_client_enforces_the_threshold_whatever_the_tally_says() -> None:
    group = PeersGroup(SIZE)
    group.run_until_masked()
    client, few = group.clients[0], np.arange(SIZE) < 5
    with pytest.raises(TallyError, match="5 of 10 members survived, 6 must"):
        client.endorse(Survivors(group.parameters.digest, few).encode())
    client.endorse(group.tally.get_survivors())
    with pytest.raises(TallyError, match="5 of 10 members endorsed, 6 must"):
        client.reveal(Endorsements(group.parameters.digest, few, (bytes(64),) * 5).encode())


def test_a_client_refuses_survivors_without_itself_or_from_outside() -> None:
    group = PeersGroup(SIZE)
    group.advertise()
    group.share(range(8))
    group.mask(range(8))
    client = group.clients[0]
    with pytest.raises(TallyError, match="not among the members who survived"):
        client.endorse(Survivors(group.parameters.digest, np.isin(np.arange(SIZE), range(1, 8))).encode())
    with pytest.raises(TallyError, match="not of this group"):
        client.endorse(Survivors(group.parameters.digest, np.ones(SIZE, dtype=bool)).encode())
    with pytest.raises(TallyError, match="not of this group"):
        client.endorse(Survivors(group.parameters.digest, np.ones(SIZE - 1, dtype=bool)).encode())


def test_a_refused_message_changes_nothing() -> None:
    group = PeersGroup(SIZE)
    group.run_until_masked()
    before = group.clients[0].to_bytes()
    with pytest.raises(TallyError):
        group.clients[0].endorse(Survivors(group.parameters.digest, np.zeros(SIZE, dtype=bool)).encode())
    assert group.clients[0].to_bytes() == before


def test_the_secrets_of_a_client_leave_its_state_with_its_vector() -> None:
    group = PeersGroup(SIZE)
    seed = group.clients[0]._state.seed
    group.advertise()
    group.share()
    assert seed in group.clients[0].to_bytes()
    group.mask()
    assert seed not in group.clients[0].to_bytes()


def test_a_wrong_vector_is_refused_and_can_be_corrected() -> None:
    group = PeersGroup(SIZE)
    group.advertise()
    group.share()
    delivered = group.tally.get_delivered(group.name(0))
    for wrong in (np.zeros(SIZE + 1, np.uint32), np.zeros(SIZE, np.int64)):
        with pytest.raises(TallyError, match="10 cells of type uint32"):
            group.clients[0].mask(delivered, wrong)  # type: ignore[arg-type]
    group.mask()


def test_a_share_that_does_not_open_names_its_sender() -> None:
    group = PeersGroup(SIZE)
    group.advertise()
    group.share()
    message = DeliveredShares.decode(group.tally.get_delivered(group.name(0)))
    swapped = replace(message, sealed=(message.sealed[1], message.sealed[0], *message.sealed[2:]))
    with pytest.raises(TallyError, match=f"member {group.name(1).hex()[:8]} do not open"):
        group.clients[0].mask(swapped.encode(), group.vector(0))


@pytest.mark.parametrize("size", [3, 4, 5, 10, 299, 300, 1024])
def test_no_two_disjoint_honest_thresholds_exist_below_a_fifth_of_colluders(size: int) -> None:
    threshold = compute_threshold(size)
    assert threshold == np.ceil(size * 6 / 10)
    colluders = max(0, -(-size // 5) - 1)  # fewer than a fifth
    honest = size - colluders
    assert 2 * (threshold - colluders) > honest


def test_announcements_of_others_are_refused() -> None:
    group = PeersGroup(SIZE)
    forged = replace(announce_peers(group.operator.key, period=2, cells=SIZE, minimum=3), period=3)
    for parameters in (announce_peers(Operator().key, period=2, cells=SIZE, minimum=3), forged):
        group.parameters = parameters
        with pytest.raises(TallyError, match=r"another operator|not signed"):
            group.join(0)
