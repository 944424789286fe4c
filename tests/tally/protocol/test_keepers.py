"""Keepers: any two of three unmask the sum, one does not, and everything out of place is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.tally.protocol.keepers_round import KeepersRound

from sundog.errors import TallyError
from sundog.tally.protocol.client_memory import ClientMemory
from sundog.tally.protocol.identity import sign
from sundog.tally.protocol.keeper import Keeper
from sundog.tally.protocol.keepers_client import contribute
from sundog.tally.protocol.seed_sealing import list_parts
from sundog.tally.wire.keeper_messages import Contribution, ContributionStatement, MaskSums

SIZE = 6


@pytest.mark.parametrize("keepers", [(0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_any_two_keepers_unmask_the_sum(keepers: tuple[int, ...]) -> None:
    game = KeepersRound(SIZE)
    game.collect([0, 1, 3, 4])
    np.testing.assert_array_equal(game.unmask(keepers), [1, 1, 0, 1, 1, 0])


def test_one_keeper_does_not() -> None:
    game = KeepersRound(SIZE)
    game.collect()
    game.tally.add_endorsement(game.keepers[0].endorse(game.tally.close()))
    with pytest.raises(TallyError, match="1 keepers have endorsed, 2 must"):
        game.tally.get_endorsements()
    with pytest.raises(TallyError, match="1 keepers endorsed these survivors, 2 must"):
        game.keepers[0].reveal([game.keepers[0].reply])
    with pytest.raises(TallyError, match="0 keepers gave"):
        game.tally.unmask()


def test_two_keepers_have_all_seeds_and_each_lacks_one() -> None:
    held = [set(list_parts(keeper)) for keeper in range(3)]
    assert all(parts == {0, 1, 2} - {keeper} for keeper, parts in enumerate(held))
    assert all(held[a] | held[b] == {0, 1, 2} for a, b in ((0, 1), (0, 2), (1, 2)))


@pytest.mark.parametrize("quorum", [2, 3])
def test_keepers_restart_at_any_time(quorum: int) -> None:
    game = KeepersRound(SIZE, quorum=quorum)
    for number in range(3):
        game.restart(number)
    game.collect()
    request = game.tally.close()
    for number in range(3):
        first = game.keepers[number].endorse(request)
        assert game.restart(number).endorse(request) == first
        game.tally.add_endorsement(first)
    for number in range(3):
        answer = game.keepers[number].reveal(game.tally.get_endorsements())
        assert game.restart(number).reveal(game.tally.get_endorsements()) == answer
        game.tally.add_mask_sums(answer)
    np.testing.assert_array_equal(game.tally.unmask(), np.ones(SIZE))


def test_a_contribution_counts_once_and_a_second_one_is_refused() -> None:
    game = KeepersRound(SIZE)
    first, second = game.contribute(0), game.contribute(0)
    game.tally.add_contribution(first)
    game.tally.add_contribution(first)
    with pytest.raises(TallyError, match="two different contributions"):
        game.tally.add_contribution(second)
    game.collect(range(1, SIZE))
    np.testing.assert_array_equal(game.unmask(), np.ones(SIZE))
    game.tally.add_contribution(first)  # a client that did not get the answer asks again
    with pytest.raises(TallyError, match="after the round was closed"):
        game.tally.add_contribution(second)


def test_a_client_contributes_once_in_a_period() -> None:
    game = KeepersRound(SIZE)
    arguments = (
        game.identities[0],
        game.parameters.encode(),
        [keeper.reply for keeper in game.keepers],
        game.vector(0),
    )
    _, memory = contribute(*arguments, terms=game.terms, memory=ClientMemory())
    with pytest.raises(TallyError, match="has taken part in period 1"):
        contribute(*arguments, terms=game.terms, memory=memory)


def test_a_client_insists_on_its_terms_and_on_fresh_keys_of_all_keepers() -> None:
    game, other = KeepersRound(SIZE), KeepersRound(SIZE)
    replies = [keeper.reply for keeper in game.keepers]
    cases = [
        (other.terms, replies, "another operator"),
        (replace(game.terms, keepers=frozenset(other.names)), replies, "other keepers than this client trusts"),
        (replace(game.terms, minimum=4), replies, "sums of 3 people and a quorum of 2 keepers; .* demands 4 and 2"),
        (replace(game.terms, quorum=3), replies, "demands 3 and 3"),
        (game.terms, replies[:2], "2 of 3 keepers have advertised"),
        (game.terms, [replies[0], *replies], "advertised twice"),
        (game.terms, [other.keepers[0].reply, *replies[1:]], "another round"),
    ]
    for terms, advertisements, message in cases:
        arguments = (game.identities[0], game.parameters.encode(), advertisements, game.vector(0))
        with pytest.raises(TallyError, match=message):
            contribute(*arguments, terms=terms, memory=ClientMemory())


def test_forged_and_foreign_contributions_are_refused() -> None:
    game, other = KeepersRound(SIZE), KeepersRound(SIZE)
    message = Contribution.decode(game.contribute(0))
    cases = [
        (replace(message, round=other.parameters.digest), "another round"),
        (replace(message, vector=game.vector(0)), "not the one that its contributor signed"),
        (replace(message, seeds=replace(message.seeds, identity=game.identities[1].public_key)), "credential"),
        (replace(message, seeds=replace(message.seeds, seals=message.seeds.seals[::-1])), "not signed"),
        (replace(message, seeds=replace(message.seeds, seals=message.seeds.seals[:2])), "three seals"),
    ]
    for forged, why in cases:
        with pytest.raises(TallyError, match=why):
            game.tally.add_contribution(forged.encode())
    game.tally.add_contribution(message.encode())


def corrupt(game: KeepersRound, number: int, keeper: int, *, seal: bool) -> bytes:
    """Return a contribution, signed, whose seal does not open for one keeper, or holds another seed than it says."""
    message = Contribution.decode(game.contribute(number))
    seals, commitments = list(message.seeds.seals), list(message.seeds.commitments)
    if seal:
        seals[keeper] = bytes(len(seals[keeper]))
    else:
        commitments[keeper] = bytes(32)
    changed = replace(message.seeds, seals=tuple(seals), commitments=tuple(commitments))
    unsigned = ContributionStatement(game.parameters.digest, changed)
    signature = game.identities[number].private_key.sign(unsigned.signed_part)
    return replace(message, seeds=replace(changed, signature=signature)).encode()


@pytest.mark.parametrize("seal", [True, False])
def test_a_contributor_with_bad_seals_is_left_out(seal: bool) -> None:
    game = KeepersRound(SIZE)
    game.tally.add_contribution(corrupt(game, 0, keeper=1, seal=seal))
    game.collect(range(1, SIZE))
    request = game.tally.close()
    found = [keeper.find_unusable(request) for keeper in game.keepers]
    bad = (game.identities[0].public_key,)
    assert found == ([(), bad, ()] if seal else [bad, (), bad])
    unusable = {name for names in found for name in names}
    with pytest.raises(TallyError):
        next(keeper for keeper, names in zip(game.keepers, found, strict=True) if names).endorse(request)
    request = game.tally.close(unusable)
    for keeper in game.keepers:
        game.tally.add_endorsement(keeper.endorse(request))
    for keeper in game.keepers:
        game.tally.add_mask_sums(keeper.reveal(game.tally.get_endorsements()))
    np.testing.assert_array_equal(game.tally.unmask(), [0, 1, 1, 1, 1, 1])


def test_survivors_do_not_change_once_a_keeper_endorsed_them() -> None:
    game = KeepersRound(SIZE)
    game.collect()
    game.tally.add_endorsement(game.keepers[0].endorse(game.tally.close()))
    with pytest.raises(TallyError, match="cannot change any more"):
        game.tally.close([game.identities[0].public_key])


def test_a_keeper_that_lies_is_noticed() -> None:
    game = KeepersRound(SIZE)
    game.collect()
    request = game.tally.close()
    for keeper in game.keepers:
        game.tally.add_endorsement(keeper.endorse(request))
    answers = [MaskSums.decode(keeper.reveal(game.tally.get_endorsements())) for keeper in game.keepers]
    lie = sign(replace(answers[0], first=answers[0].first + np.uint32(1)), game.keys[0])
    for answer in (lie, *answers[1:]):
        game.tally.add_mask_sums(answer.encode())
    with pytest.raises(TallyError, match="different sums for one part"):
        game.tally.unmask()


def test_too_few_contributors_end_the_round() -> None:
    game = KeepersRound(SIZE, minimum=4)
    game.collect(range(3))
    with pytest.raises(TallyError, match="3 contributed, 4 must"):
        game.tally.close()


def test_a_keeper_opens_a_period_once_and_only_its_own_rounds() -> None:
    game, other = KeepersRound(SIZE), KeepersRound(SIZE)
    with pytest.raises(TallyError, match="has taken part in period 1"):
        game.open(0, game.keepers[0].memory)
    with pytest.raises(TallyError, match="does not name this keeper"):
        Keeper.open(other.keys[0], game.parameters.encode(), operator=game.operator.public_key, memory=ClientMemory())


def test_the_key_of_a_keeper_is_deleted_when_it_endorses() -> None:
    game = KeepersRound(SIZE)
    private_key = game.keepers[0]._state.private_key
    assert private_key in game.keepers[0].to_bytes()
    game.collect()
    game.unmask()
    assert private_key not in game.keepers[0].to_bytes()


def test_a_contribution_with_the_cells_of_the_text_is_short() -> None:
    game = KeepersRound(3)
    message = Contribution.decode(game.contribute(0))
    assert len(replace(message, vector=np.zeros(4896, dtype=np.uint32)).encode()) <= 20_500
