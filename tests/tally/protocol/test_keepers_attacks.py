"""Attacks on keepers fail. Each has a control: the same attack on a weaker protocol, or beyond the bound, succeeds."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
import pytest
from tests.tally.protocol.keepers_round import KeepersRound

from sundog.errors import TallyError
from sundog.tally.protocol.keeper import Keeper, hash_contributions
from sundog.tally.protocol.mask_stream import MaskStream
from sundog.tally.protocol.seed_sealing import derive_part_mask, list_parts, open_seeds
from sundog.tally.wire.codecs import Vector
from sundog.tally.wire.keeper_messages import Contribution, MaskSums, SurvivorSeeds
from sundog.tally.wire.survivor_messages import Endorsement

SIZE = 6
TARGET = 5
SECRET = np.arange(100, 100 + SIZE, dtype=np.uint32)


def open_corrupt(game: KeepersRound, keeper: int, private_key: bytes, message: Contribution) -> dict[int, Vector]:
    """Return the masks of one contribution that a corrupt keeper knows, by part."""
    digest, name = game.parameters.digest, message.seeds.identity
    parties = name + game.names[keeper]
    seeds = open_seeds(message.seeds.seals[keeper], private_key, round_digest=digest, parties=parties)
    cells = game.parameters.cells
    return {
        part: MaskStream(cells).expand(derive_part_mask(seed, digest, part, name)).copy()
        for part, seed in zip(list_parts(keeper), seeds, strict=True)
    }


def collect_messages(game: KeepersRound) -> list[Contribution]:
    """Return everybody's contributions; the target's is the secret."""
    vectors = [SECRET if number == TARGET else game.vector(number) for number in range(SIZE)]
    return [Contribution.decode(game.contribute(number, vectors[number])) for number in range(SIZE)]


def ask(game: KeepersRound, messages: Sequence[Contribution]) -> bytes:
    members = tuple(sorted((message.seeds for message in messages), key=lambda seeds: seeds.identity))
    return SurvivorSeeds(game.parameters.digest, members).encode()


def forge_endorsement(game: KeepersRound, keeper: int, messages: Sequence[Contribution]) -> bytes:
    """Return what a corrupt keeper signs."""
    members = tuple(sorted((message.seeds for message in messages), key=lambda seeds: seeds.identity))
    statement = hash_contributions(game.parameters.digest, members)
    unsigned = Endorsement(game.parameters.digest, game.names[keeper], statement, bytes(64))
    signature = game.keys[keeper].sign(unsigned.signed_part)
    return Endorsement(game.parameters.digest, game.names[keeper], statement, signature).encode()


# --- keepers who collude ---


@pytest.mark.parametrize(("colluders", "reads"), [((0,), False), ((2,), False), ((0, 1), True), ((1, 2), True)])
def test_two_keepers_can_read_a_vector_and_one_cannot(colluders: tuple[int, ...], reads: bool) -> None:
    """The control is the same attack with two of three keepers."""
    game = KeepersRound(SIZE)
    private_keys = [keeper._state.private_key for keeper in game.keepers]
    message = collect_messages(game)[TARGET]
    known: dict[int, Vector] = {}
    for keeper in colluders:
        known |= open_corrupt(game, keeper, private_keys[keeper], message)
    total = message.vector.copy()
    for mask in known.values():
        total -= mask
    assert (total == SECRET).all() == reads
    assert (total == SECRET).any() == reads


# --- the tally and a keeper tell the two others of different survivors ---


@pytest.mark.parametrize(("quorum", "reads"), [(3, False), (2, True)])
def test_with_all_three_keepers_no_lie_about_survivors_helps_tally_and_one_keeper(quorum: int, reads: bool) -> None:
    """The control is a quorum of two, which does not protect against a tally that lies *and* a corrupt keeper."""
    game = KeepersRound(SIZE, quorum=quorum)
    private_key = game.keepers[0]._state.private_key
    messages = collect_messages(game)
    sums: list[Vector] = []
    for keeper, told in ((1, messages), (2, messages[:TARGET])):  # the part that both hold is part 0
        own = game.keepers[keeper].endorse(ask(game, told))
        endorsements = [own, forge_endorsement(game, 0, told)]
        if not reads:
            with pytest.raises(TallyError, match="2 keepers endorsed these survivors, 3 must"):
                game.keepers[keeper].reveal(endorsements)
            continue
        sums.append(MaskSums.decode(game.keepers[keeper].reveal(endorsements)).first)
    if reads:
        known = open_corrupt(game, 0, private_key, messages[TARGET])
        total = messages[TARGET].vector - known[1] - known[2] - (sums[0] - sums[1])
        np.testing.assert_array_equal(total, SECRET)


def test_a_tally_that_lies_to_honest_keepers_gets_one_sum_at_most() -> None:
    """With a quorum of two and no corrupt keeper, only one set of survivors can find two keepers."""
    game = KeepersRound(SIZE)
    messages = collect_messages(game)
    sets = [messages, messages[:TARGET], messages[1:]]
    endorsements = [keeper.endorse(ask(game, told)) for keeper, told in zip(game.keepers, sets, strict=True)]
    for keeper in game.keepers:
        with pytest.raises(TallyError, match="1 keepers endorsed these survivors, 2 must"):
            keeper.reveal(endorsements)


# --- two sets from one keeper ---


def ask_for_two_sets(*, forgets: bool) -> int:
    """Return for how many sets of survivors one keeper gives sums, each with another keeper's endorsement."""
    game = KeepersRound(SIZE)
    messages = collect_messages(game)
    stored, answered = game.keepers[1].to_bytes(), 0
    for told in (messages, messages[:TARGET]):
        game.keepers[1] = Keeper.load(game.keys[1], stored if forgets else game.keepers[1].to_bytes())
        with contextlib.suppress(TallyError):
            game.keepers[1].endorse(ask(game, told))
            game.keepers[1].reveal([forge_endorsement(game, 0, told)])
            answered += 1
    return answered


def test_a_keeper_answers_for_one_set_even_across_a_restart() -> None:
    assert ask_for_two_sets(forgets=False) == 1


def test_a_keeper_that_forgets_its_state_answers_for_two() -> None:
    """The control: a program that does not store the state before it sends."""
    assert ask_for_two_sets(forgets=True) == 2


# --- small sums, Sybils and replays ---


def test_a_keeper_sums_nobody_alone() -> None:
    game = KeepersRound(SIZE)
    messages = collect_messages(game)
    with pytest.raises(TallyError, match="1 people are in a sum, 3 must be"):
        game.keepers[0].endorse(ask(game, [messages[TARGET]]))
    game.keepers[0].endorse(ask(game, messages))  # the control: enough people


def test_a_contribution_does_not_count_twice_towards_the_minimum() -> None:
    game = KeepersRound(SIZE)
    message = collect_messages(game)[TARGET]
    with pytest.raises(TallyError, match="one is there twice"):
        game.keepers[0].endorse(ask(game, [message] * 3))


def test_strangers_do_not_count_towards_the_minimum() -> None:
    """Sybils need credentials: with those of another operator, the keepers refuse them."""
    game, sybils = KeepersRound(SIZE), KeepersRound(SIZE)
    sybils.parameters, sybils.keepers, sybils.names = game.parameters, game.keepers, game.names
    sybils.operator = game.operator  # whose rounds they join, but who has not enrolled them
    strangers = [Contribution.decode(sybils.contribute(number)) for number in range(SIZE - 1)]
    request = ask(game, [collect_messages(game)[TARGET], *strangers])
    with pytest.raises(TallyError, match="credential was not issued by the operator"):
        game.keepers[0].endorse(request)


def test_seeds_of_another_round_do_not_open() -> None:
    game = KeepersRound(SIZE)
    messages = collect_messages(game)
    later = KeepersRound(SIZE)
    with pytest.raises(TallyError, match="another round"):
        later.keepers[0].endorse(ask(game, messages))
    relabelled = SurvivorSeeds(later.parameters.digest, SurvivorSeeds.decode(ask(game, messages)).members)
    assert len(later.keepers[0].find_unusable(relabelled.encode())) == SIZE
