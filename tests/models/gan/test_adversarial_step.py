"""The two networks against each other: what each of them sees, and what it learns from."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from tests.contracts.material import KINDS, schema_of
from tests.models.gan.material import GAPS, IMAGES, TABLE, assert_clipped, draw_examples, new_game
from torch import Tensor

from sundog.data.schema import Schema
from sundog.models.gan.adversarial_step import AdversarialGame, draw_straight_through
from sundog.models.gan.critic_schedule import CriticSchedule
from sundog.models.gan.objectives import NonSaturating, Objective, Wasserstein
from sundog.models.neural.features import Compact, Features
from sundog.training.clipping import Fixed
from sundog.training.groups import group_all
from sundog.training.per_example.engine import clip_and_sum

CASES = pytest.mark.parametrize(
    ("schema", "shape"),
    [(TABLE, "mlp"), (IMAGES, "conv"), (GAPS, "conv"), (GAPS, "lstm")],
    ids=["table", "images", "series", "lstm"],
)
OBJECTIVES = pytest.mark.parametrize("objective", [Wasserstein(10.0), NonSaturating()], ids=["gp", "ns"])


def compute_seeded_loss(game: AdversarialGame, batch: Compact, seed: int = 3) -> Tensor:
    """The losses, with the same draws each time."""
    torch.manual_seed(seed)
    return game.loss(batch).detach()


def fix_draws(game: AdversarialGame, batch: Compact, monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, Tensor, Tensor]:
    """Records, one that is generated for each, and a point between the two: from now on these, in every loss."""
    torch.manual_seed(5)
    real = game.features.to_dense(batch)
    fake, places = game.generate(real[:, game.generator.condition]), torch.rand(len(real), 1)
    monkeypatch.setattr(game, "generate", lambda condition: fake)
    monkeypatch.setattr(torch, "rand", lambda *shape, device: places)
    return real, fake, places


def compute_loss(game: AdversarialGame, real: Tensor, fake: Tensor, place: Tensor) -> Tensor:
    """The critic's loss on one record, from the formulas."""
    (mine,), (other,) = game.critic(real), game.critic(fake)
    if isinstance(game.objective, NonSaturating):
        lost: Tensor = -mine.sigmoid().log() - (1 - other.sigmoid()).log()
        return lost
    between = (place * real + (1 - place) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(game.critic(between)[0], between, create_graph=True)
    loss: Tensor = other - mine + 10.0 * (slope.norm() - 1) ** 2
    return loss


def sum_gradients(
    game: AdversarialGame, real: Tensor, fake: Tensor, places: Tensor
) -> tuple[list[Tensor], Tensor, Tensor]:
    """One record after another: the sum of gradients, clipped to the median of their norms; those norms; the median."""
    weights, gradients = list(game.critic.parameters()), []
    for number in range(len(real)):
        loss = compute_loss(game, *(rows[number : number + 1] for rows in (real, fake, places)))
        gradients.append(torch.autograd.grad(loss, weights))
    norms = torch.stack([torch.cat([part.flatten() for part in gradient]).norm() for gradient in gradients])
    clip = norms.median()
    factors = (clip / norms).clamp_max(1.0)
    sums = [sum(w * part for w, part in zip(factors, parts, strict=True)) for parts in zip(*gradients, strict=True)]
    return sums, norms, clip


# --- the critic's side ---


@CASES
@OBJECTIVES
@pytest.mark.parametrize("masks", ["when needed", "always"])
def test_the_clipped_sum_is_that_of_a_loop_over_records(
    schema: Schema, shape: str, objective: Objective, masks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    game, batch = new_game(schema, shape, objective), draw_examples(schema)
    for weight in game.critic.parameters():
        weight.data *= 2.0  # so that slopes, and norms, are far from one another
    drawn = fix_draws(game, batch, monkeypatch)
    sums, norms, clip = sum_gradients(game, *drawn)
    assert norms.min() < 0.9 * clip < 1.1 * clip < norms.max()
    assert_clipped(game, batch, masks, sums, norms, clip)


@CASES
@OBJECTIVES
def test_the_loss_on_a_record_is_about_that_record_alone(schema: Schema, shape: str, objective: Objective) -> None:
    game, batch, others = new_game(schema, shape, objective), draw_examples(schema), draw_examples(schema, seed=1)
    before = compute_seeded_loss(game, batch)
    changed = {name: torch.cat([others[name][:4], rows[4:5], others[name][5:]]) for name, rows in batch.items()}
    after = compute_seeded_loss(game, changed)
    torch.testing.assert_close(before[4], after[4])
    assert (before - after).abs()[[0, 1, 2, 3, 5, 6, 7, 8]].min() > 1e-4


@CASES
def test_a_batch_may_be_empty(schema: Schema, shape: str) -> None:
    for objective in (Wasserstein(10.0), NonSaturating()):
        game = new_game(schema, shape, objective)
        nobody = {name: rows[:0] for name, rows in draw_examples(schema).items()}
        found = clip_and_sum(game.critic, game.loss, nobody, group_all(game.critic), Fixed(torch.tensor([1.0])).weigh)
        assert all(not total.any() for total in found.sums)


def test_a_record_is_judged_beside_one_of_its_own_label() -> None:
    game, batch = new_game(TABLE, "mlp"), draw_examples(TABLE, 40)
    seen: list[Tensor] = []
    game.critic.register_forward_pre_hook(lambda critic, inputs: seen.extend(inputs))
    game.loss(batch)
    real, fake = (rows[:, game.generator.condition] for rows in seen)
    assert torch.equal(real, fake)
    assert (real.sum(dim=0) > 0).all()
    assert not torch.equal(*seen)


def test_the_critics_step_leaves_nothing_in_the_generator() -> None:
    game = new_game(TABLE, "mlp", Wasserstein())
    before = [weight.clone() for weight in game.generator.parameters()]
    clip_and_sum(game.critic, game.loss, draw_examples(TABLE), group_all(game.critic), Fixed(torch.tensor([1.0])).weigh)
    for weight, old in zip(game.generator.parameters(), before, strict=True):
        assert weight.grad is None
        assert torch.equal(weight, old)


# --- the generator's side ---


def take_turns(game: AdversarialGame, count: int = 3) -> list[Tensor]:
    for number in range(count):
        torch.manual_seed(number)
        game.train_generator(number)
    return [weight.detach().clone() for weight in game.generator.parameters()]


@CASES
@OBJECTIVES
def test_the_generator_learns_from_the_critic_and_from_no_record(
    schema: Schema, shape: str, objective: Objective
) -> None:
    begun = [weight.clone() for weight in new_game(schema, shape, objective).generator.parameters()]
    ends = []
    for seed in (None, 1, 2):  # no record at all; these; those
        game = new_game(schema, shape, objective)
        if seed is not None:
            game.loss(draw_examples(schema, 5 * seed, seed)).sum().backward()  # type: ignore[no-untyped-call]
        ends.append(take_turns(game))
    for first, *rest in zip(*ends, strict=True):
        assert all(torch.equal(first, other) for other in rest)
    moved = [not torch.equal(old, new) for old, new in zip(begun, ends[0], strict=True)]
    assert sum(moved) > len(moved) / 2  # not those of the cells that it is told
    game = new_game(schema, shape, objective)
    for weight in game.critic.parameters():
        weight.data *= -1.0
    assert not torch.equal(ends[0][0], take_turns(game)[0])


def test_the_generators_turn_leaves_the_critic_as_it_was() -> None:
    game = new_game(IMAGES, "conv")
    before = [weight.clone() for weight in game.critic.parameters()]
    take_turns(game)
    for weight, old in zip(game.critic.parameters(), before, strict=True):
        assert weight.grad is None
        assert torch.equal(weight, old)


@OBJECTIVES
def test_the_generator_gets_better_at_pleasing_a_critic_that_stays(objective: Objective) -> None:
    def pleased() -> float:
        torch.manual_seed(9)
        return float(game.critic(game.generate(torch.eye(3).repeat(200, 1))).detach().mean())

    game = new_game(TABLE, "mlp", objective, batch=128)
    before = pleased()
    take_turns(game, 40)
    assert pleased() > before + 0.05


def test_the_rate_follows_the_schedule_and_the_average_the_weights() -> None:
    game = new_game(TABLE, "mlp", schedule=lambda number: 0.5 if number else 0.0)
    begun = [weight.clone() for weight in game.generator.parameters()]
    assert all(torch.equal(old, new) for old, new in zip(begun, take_turns(game, 1), strict=True))
    first = take_turns(game, 2)
    assert game.optimizer.param_groups[0]["lr"] == pytest.approx(0.005)
    weighted = [(0.9**2 * a + 0.9 * a + b) / (0.9**2 + 0.9 + 1) for a, b in zip(begun, first, strict=True)]
    torch.testing.assert_close(game.average.values, weighted)


def test_a_critic_that_recognises_few_gets_more_steps_and_else_fewer() -> None:
    for sign, recognised in ((1.0, 0.0), (-1.0, 1.0)):  # takes all for real; takes none
        game = new_game(TABLE, "mlp", critic_schedule=CriticSchedule(steps=1, target=0.6))
        for weight in game.critic.parameters():
            weight.data.zero_()
        list(game.critic.parameters())[-1].data.fill_(sign)
        take_turns(game, 1)
        assert game.critic_schedule.steps == pytest.approx(math.exp(0.05 * (0.6 - recognised)))


def test_a_generator_that_is_behind_has_several_turns() -> None:
    """Each of them moves the weights, and all of them are in the average."""
    game, single = (
        new_game(TABLE, "mlp", critic_schedule=CriticSchedule(steps=steps, target=0.0)) for steps in (0.5, 1)
    )
    moves: list[list[Tensor]] = []
    turn = game._take_step

    def noting() -> None:
        turn()
        moves.append(copy_weights(game))

    game._take_step = noting  # type: ignore[assignment]
    take_turns(game, 3)
    assert len(moves) == game.critic_schedule.taken == 6
    assert not any(torch.equal(a[0], b[0]) for a, b in pairwise(moves))
    shares = torch.tensor([0.9**age for age in reversed(range(6))])
    average = [sum(share * move[0] for share, move in zip(shares / shares.sum(), moves, strict=True))]
    torch.testing.assert_close(game.average.values[:1], average)
    take_turns(single, 3)
    assert single.critic_schedule.taken == 3


def copy_weights(game: AdversarialGame) -> list[Tensor]:
    return [weight.detach().clone() for weight in game.generator.parameters()]


# --- records from logits ---

KINDS_OF_LOGITS = pytest.mark.parametrize("kind", ["all_scalars", "mix", "labelled_images", "series", "named_set"])


def logits_of(features: Features, n: int = 6) -> Tensor:
    return torch.randn(n, features.width, generator=torch.Generator().manual_seed(1)) * 2


@KINDS_OF_LOGITS
def test_drawn_records_look_like_real_ones(kind: str) -> None:
    schema = schema_of(KINDS[kind])
    features = Features(schema)
    torch.manual_seed(0)
    x = draw_straight_through(features, logits_of(features, 500))
    levels, gaps = features.gapped
    is_level = torch.zeros(features.width, dtype=torch.bool)
    is_level[features.levels] = True
    assert torch.isin(x[:, ~is_level].round(decimals=5), torch.tensor([0.0, 1.0])).all()
    assert ((x >= -1e-6) & (x <= 1 + 1e-6)).all()
    assert (x[:, levels].abs() * (x[:, gaps] > 0.5) < 1e-6).all()
    for name, column in schema.columns.items():
        if not column.shape:
            torch.testing.assert_close(x[:, features.at(name)].sum(dim=1), torch.ones(500))


@KINDS_OF_LOGITS
def test_gradients_are_those_of_the_means(kind: str) -> None:
    features = Features(schema_of(KINDS[kind]))
    weights = torch.randn(features.width, generator=torch.Generator().manual_seed(2))

    def gradient(records: Callable[[Features, Tensor], Tensor]) -> Tensor:
        logits = logits_of(features).requires_grad_()
        (found,) = torch.autograd.grad((records(features, logits) @ weights).sum(), logits)
        return found

    found = gradient(draw_straight_through)
    torch.testing.assert_close(found, gradient(Features.means))
    assert found.abs().max() > 0.01


def test_what_is_drawn_has_the_means_on_average() -> None:
    features = Features(GAPS)
    logits = logits_of(features, 1).expand(20_000, -1)
    torch.manual_seed(0)
    found = draw_straight_through(features, logits).mean(dim=0)
    assert (found - features.means(logits[0])).abs().max() < 5 * 0.5 / 20_000**0.5


def test_what_is_said_to_be_missing_counts_for_nothing() -> None:
    features = Features(GAPS)
    levels, gaps = features.gapped
    logits = logits_of(features)
    logits[:, gaps] = 40.0
    assert draw_straight_through(features, logits)[:, levels].abs().max() < 1e-6
    logits[:, gaps] = -40.0
    torch.testing.assert_close(draw_straight_through(features, logits)[:, levels], logits[:, levels].sigmoid())
