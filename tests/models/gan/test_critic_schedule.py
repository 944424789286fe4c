"""Whose turn it is, and what both play for."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from sundog.models.gan.critic_schedule import FEWEST, MOST, CriticSchedule
from sundog.models.gan.objectives import NonSaturating, Wasserstein

# --- the balance ---


@pytest.mark.parametrize(
    ("steps", "each"),
    [(0.25, [4]), (0.5, [2]), (1, [1]), (2.5, [0, 0, 1, 0, 1]), (3, [0, 0, 1])],
)
def test_the_generator_has_one_turn_for_so_many_steps(steps: float, each: list[int]) -> None:
    critic_schedule = CriticSchedule(steps=steps, target=0.6)
    turns = [critic_schedule.advance() for _ in range(100)]
    assert turns == (each * 100)[:100]
    assert sum(turns) == critic_schedule.taken == math.floor(100 / steps)


@pytest.mark.parametrize("steps", [0.3, 0.7, 1.1, math.pi, 17.3])
def test_no_turn_is_lost_nor_won_whatever_the_number_of_steps(steps: float) -> None:
    critic_schedule = CriticSchedule(steps=steps, target=0.0)
    for number in range(1, 1001):
        critic_schedule.advance()
        assert abs(critic_schedule.taken - number / steps) < 1 + 1e-9
        assert -1e-9 <= critic_schedule.credit < steps + 1e-9


def test_a_critic_gets_more_steps_if_it_recognises_few_and_else_fewer() -> None:
    for recognised, direction in ((0.59, 1), (0.0, 1), (0.61, -1), (1.0, -1)):
        critic_schedule = CriticSchedule(steps=3, target=0.6)
        found = [3.0]
        for _ in range(5):
            critic_schedule.observe(recognised)
            found.append(critic_schedule.steps)
        assert all(direction * (after - before) > 0 for before, after in pairwise(found))
    near, far = CriticSchedule(steps=3, target=0.6), CriticSchedule(steps=3, target=0.6)
    near.observe(0.5)
    far.observe(0.1)
    assert far.steps > near.steps  # the further off, the faster


def test_steps_stay_where_as_many_are_recognised_as_should_be() -> None:
    critic_schedule = CriticSchedule(steps=3, target=0.6)
    for _ in range(100):
        critic_schedule.observe(0.6)
    assert critic_schedule.steps == 3
    for wrong in (0.1, -0.1) * 50:  # now more, now less
        critic_schedule.observe(0.6 + wrong)
    assert critic_schedule.steps == pytest.approx(3)


def test_steps_stay_within_their_limits_and_come_back() -> None:
    for recognised, limit in ((0.0, MOST), (1.0, FEWEST)):
        critic_schedule = CriticSchedule(steps=1, target=0.5)
        for _ in range(1000):
            critic_schedule.observe(recognised)
        assert critic_schedule.steps == limit
        critic_schedule.observe(1 - recognised)
        assert FEWEST < critic_schedule.steps < MOST
    assert (FEWEST, MOST) == (0.25, 1000.0)


def test_steps_that_become_fewer_cause_no_crowd_of_turns() -> None:
    critic_schedule = CriticSchedule(steps=40, target=0.1)
    for _ in range(5000):
        turns = critic_schedule.advance()
        assert turns <= 1 / critic_schedule.steps + 1.1
        if turns:
            critic_schedule.observe(1.0)
    assert critic_schedule.steps == FEWEST


def test_a_balance_goes_on_from_what_was_kept() -> None:
    shares = [0.9, 0.5, 0.5, 0.4, 0.7, 0.2, 0.9, 0.1, 0.3, 0.8] * 3
    whole, first, second = (CriticSchedule(steps=1.3, target=0.6) for _ in range(3))
    turns: list[list[int]] = [[], []]
    for number, share in enumerate(shares):
        if number == 17:
            second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        for critic_schedule, seen in ((whole, turns[0]), (first if number < 17 else second, turns[1])):
            seen.append(critic_schedule.advance())
            if seen[-1]:
                critic_schedule.observe(share)
    assert turns[0] == turns[1]
    assert whole == second
    assert whole.steps > 1.3
    assert whole.credit != 0


# --- the objectives ---


def draw_straight(slope: float) -> tuple[Tensor, Tensor]:
    """Records, and generated ones."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(5, 3, generator=generator), torch.rand(5, 3, generator=generator) * slope


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0, 3.0])
def test_the_penalty_of_a_linear_critic_is_known(slope: float) -> None:
    direction = torch.tensor([2.0, -1.0, 2.0]) / 3
    found = Wasserstein(10.0).penalty(lambda x: slope * (x @ direction), *draw_straight(1.0))
    torch.testing.assert_close(found, torch.full((5,), 10.0 * (slope - 1) ** 2), atol=1e-4, rtol=1e-4)


def test_the_penalty_looks_between_the_two_and_nowhere_else() -> None:
    seen: list[Tensor] = []
    real, fake = draw_straight(4.0)

    def critic(x: Tensor) -> Tensor:
        seen.append(x.detach())
        return x.sum(dim=-1)

    for _ in range(20):
        Wasserstein().penalty(critic, real, fake)
    for points in seen:
        share = (points - fake) / (real - fake)
        torch.testing.assert_close(share, share[:, :1].expand(5, 3), atol=1e-4, rtol=1e-3)
    shares = torch.stack([((points - fake) / (real - fake))[:, 0] for points in seen])
    assert ((shares > -1e-4) & (shares < 1 + 1e-4)).all()
    assert shares.std() == pytest.approx(12**-0.5, abs=0.06)  # anywhere between them


def test_a_flat_critic_has_a_gradient_all_the_same() -> None:
    weight = torch.zeros(3, requires_grad=True)
    penalty = Wasserstein().penalty(lambda x: x @ weight, *draw_straight(1.0))
    (gradient,) = torch.autograd.grad(penalty.sum(), weight)
    assert gradient.isfinite().all()


def test_the_games_pull_where_they_should() -> None:
    scores = torch.tensor([-30.0, 0.0, 30.0], requires_grad=True)
    for game in (NonSaturating(), Wasserstein()):
        for loss, sign in ((game.critic_loss_real, -1), (game.critic_loss_fake, 1), (game.generator_loss, -1)):
            (gradient,) = torch.autograd.grad(loss(scores).sum(), scores)
            assert (sign * gradient >= 0).all()
            assert sign * gradient[1] > 0
    (gradient,) = torch.autograd.grad(NonSaturating().generator_loss(scores).sum(), scores)
    assert gradient[0] == pytest.approx(-1.0)  # where the critic is sure, the generator learns most
    assert NonSaturating().critic_loss_real(scores).isfinite().all()
