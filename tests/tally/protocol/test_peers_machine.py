"""Random rounds of peers: drop-outs, restarts, lost, late, repeated and reordered messages.

Member k contributes 1 in cell k, so a sum says who is in it, and a 2 anywhere is a replay.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.tally.protocol.peers_group import PeersGroup

from sundog.errors import TallyError
from sundog.tally.protocol.announcement import announce_peers
from sundog.tally.protocol.peers_state import Stage
from sundog.tally.protocol.peers_tally import PeersTally, Step

SIZE = 5  # and the threshold is 3
members = st.integers(0, SIZE - 1)
ADD = {
    Stage.ADVERTISED: PeersTally.add_advertisement,
    Stage.SHARED: PeersTally.add_shares,
    Stage.MASKED: PeersTally.add_vector,
    Stage.ENDORSED: PeersTally.add_endorsement,
    Stage.REVEALED: PeersTally.add_reveal,
}
done: Counter[str] = Counter()  # over all examples: operations, and rounds that ended well and badly


class RandomRounds(RuleBasedStateMachine):
    """One group of members, whose rounds follow one another. Nothing may go wrong but a refusal."""

    def __init__(self) -> None:
        super().__init__()
        self.group = PeersGroup(SIZE)
        self.period = 1
        self.from_tally: list[tuple[int, Stage, bytes]] = []  # everything that was ever on its way, of all rounds
        self.to_tally: list[tuple[Stage, bytes]] = []
        self.begin()

    def begin(self) -> None:
        self.alive = set(range(SIZE))
        self.to_tally += [(Stage.ADVERTISED, client.reply) for client in self.group.clients]
        self.said: dict[tuple[int, Stage], set[bytes]] = {}

    @rule(number=members)
    def fetch(self, number: int) -> None:
        """A member asks for its next message, which may arrive at any time."""
        name, tally = self.group.name(number), self.group.tally
        get = {
            Step.SHARES: (Stage.SHARED, tally.get_directory),
            Step.VECTORS: (Stage.MASKED, tally.get_delivered),
            Step.ENDORSEMENTS: (Stage.ENDORSED, lambda _: tally.get_survivors()),
            Step.REVEALS: (Stage.REVEALED, lambda _: tally.get_endorsements()),
        }.get(tally.step)
        done["operations"] += 1
        if get is not None and number in self.alive:
            try:
                self.from_tally.append((number, get[0], get[1](name)))
            except TallyError:  # it did not advertise
                self.alive.discard(number)

    @rule(index=st.integers(0, 2**16), newest=st.booleans())
    def deliver(self, index: int, newest: bool) -> None:
        """A message reaches a member: the newest, or any, for the first time or again."""
        done["operations"] += 1
        if not self.from_tally:
            return
        number, stage, message = self.from_tally[-1 if newest else index % len(self.from_tally)]
        if number not in self.alive:
            return
        client = self.group.clients[number]
        act = {
            Stage.SHARED: client.share,
            Stage.MASKED: lambda data: client.mask(data, self.group.vector(number)),
            Stage.ENDORSED: client.endorse,
            Stage.REVEALED: client.reveal,
        }[stage]
        try:
            reply = act(message)
        except TallyError:
            done["refused"] += 1
            return
        self.said.setdefault((number, stage), set()).add(reply)
        self.to_tally.append((stage, reply))

    @rule(index=st.integers(0, 2**16), newest=st.booleans())
    def arrive(self, index: int, newest: bool) -> None:
        """A message reaches the tally: the newest, or any, for the first time or again."""
        done["operations"] += 1
        stage, message = self.to_tally[-1 if newest else index % len(self.to_tally)]
        try:
            ADD[stage](self.group.tally, message)
        except TallyError:
            done["refused"] += 1

    @rule(order=st.permutations(range(SIZE)))
    def go_on(self, order: list[int]) -> None:
        """All who are there do a step at once, so that rounds come to an end."""
        for number in order:
            if self.group.tally.step == Step.ADVERTISEMENTS:
                self.to_tally.append((Stage.ADVERTISED, self.group.clients[number].reply))
            else:
                self.fetch(number)
                self.deliver(0, newest=True)
            self.arrive(0, newest=True)

    @rule(number=members)
    def restart(self, number: int) -> None:
        done["operations"] += 1
        self.group.restart(number)

    @rule(number=members)
    def drop_out(self, number: int) -> None:
        done["operations"] += 1
        if len(self.alive) > SIZE - 2:
            self.alive.discard(number)

    @rule(impatience=st.integers(0, 9))
    def close(self, impatience: int) -> None:
        """A deadline passes; most are long enough."""
        done["operations"] += 1
        tally = self.group.tally
        if impatience < 9 and len(tally._senders) < 3:
            return
        try:
            if tally.step == Step.REVEALS:
                total = tally.close_reveals()
                np.testing.assert_array_equal(total, self.find_survivors())
                done["sums"] += 1
            elif tally.step == Step.ADVERTISEMENTS:
                tally.close_advertisements(self.group.log)
            else:
                {
                    Step.SHARES: tally.close_shares,
                    Step.VECTORS: tally.close_vectors,
                    Step.ENDORSEMENTS: tally.close_endorsements,
                }[tally.step]()
        except TallyError:
            assert tally.step == Step.REFUSED
            done["refusals"] += 1
        if tally.step in (Step.REFUSED, Step.DONE):
            self.open_next()

    def find_survivors(self) -> np.ndarray:
        """Return who sent a vector that the tally accepted, by cell."""
        names = self.group.tally._directory.identities
        survived = {name for name, is_in in zip(names, self.group.tally.survivors, strict=True) if is_in}
        return np.array([self.group.name(number) in survived for number in range(SIZE)], dtype=np.uint32)

    def open_next(self) -> None:
        self.period += 1
        self.group.memories = [client.memory for client in self.group.clients]
        self.group.open(announce_peers(self.group.operator.key, period=self.period, cells=SIZE, minimum=3))
        self.begin()

    @invariant()
    def a_member_says_one_thing_in_each_step(self) -> None:
        """So it has masked one vector, endorsed one set of survivors, and revealed one kind of share of each."""
        assert all(len(replies) == 1 for replies in self.said.values())


def run(examples: int, steps: int) -> Counter[str]:
    done.clear()
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(RandomRounds, settings=chosen)
    return done


def test_random_rounds_sum_their_survivors() -> None:
    run(examples=20, steps=50)


@pytest.mark.slow
def test_many_random_rounds_sum_their_survivors() -> None:
    found = run(examples=150, steps=120)
    assert found["operations"] >= 10_000
    assert found["sums"] >= 10
    assert found["refusals"] >= 10
