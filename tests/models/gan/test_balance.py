"""Whose turn it is, and what both play for."""

from __future__ import annotations

import json

import pytest
import torch
from torch import Tensor

from sundog.models.gan.balance import Balance
from sundog.models.gan.objectives import NonSaturating, Wasserstein

# --- the balance ---


def test_the_generator_is_due_after_so_many_steps() -> None:
    balance = Balance(steps=3, least=0.6)
    assert [balance.due() for _ in range(9)] == [False, False, True] * 3
    assert balance.taken == 3


def test_steps_double_as_long_as_too_few_are_recognised_and_no_further_than_the_most() -> None:
    balance = Balance(steps=3, least=0.6, most=20)
    found = []
    for _ in range(5):
        balance.saw(0.1)
        found.append(balance.steps)
    assert found == [6, 12, 20, 20, 20]


def test_steps_stay_while_enough_are_recognised() -> None:
    balance = Balance(steps=3, least=0.6)
    for _ in range(100):
        balance.saw(0.61)
    assert balance.steps == 3


def test_one_bad_turn_is_not_enough_and_many_are() -> None:
    balance = Balance(steps=1, least=0.6)
    balance.saw(1.0)
    for _ in range(4):  # 0.9⁴ = 0.66
        balance.saw(0.0)
        assert balance.steps == 1
    balance.saw(0.0)
    assert balance.steps == 2
    balance.saw(1.0)  # what was before the doubling is forgotten
    balance.saw(0.0)
    assert balance.steps == 2


def test_a_balance_goes_on_from_what_was_kept() -> None:
    shares = [0.9, 0.5, 0.5, 0.4, 0.7, 0.2, 0.9, 0.1, 0.3, 0.8] * 3
    whole, first, second = (Balance(steps=1, least=0.6, most=16) for _ in range(3))
    turns: list[list[bool]] = [[], []]
    for number, share in enumerate(shares):
        if number == 17:
            second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        for balance, seen in ((whole, turns[0]), (first if number < 17 else second, turns[1])):
            seen.append(balance.due())
            if seen[-1]:
                balance.saw(share)
    assert turns[0] == turns[1]
    assert whole == second
    assert whole.steps > 1


# --- the objectives ---


def straight(slope: float) -> tuple[Tensor, Tensor]:
    """Records, and generated ones."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(5, 3, generator=generator), torch.rand(5, 3, generator=generator) * slope


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0, 3.0])
def test_the_penalty_of_a_linear_critic_is_known(slope: float) -> None:
    direction = torch.tensor([2.0, -1.0, 2.0]) / 3
    found = Wasserstein(10.0).penalty(lambda x: slope * (x @ direction), *straight(1.0))
    torch.testing.assert_close(found, torch.full((5,), 10.0 * (slope - 1) ** 2), atol=1e-4, rtol=1e-4)


def test_the_penalty_looks_between_the_two_and_nowhere_else() -> None:
    seen: list[Tensor] = []
    real, fake = straight(4.0)

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
    penalty = Wasserstein().penalty(lambda x: x @ weight, *straight(1.0))
    (gradient,) = torch.autograd.grad(penalty.sum(), weight)
    assert gradient.isfinite().all()


def test_the_games_pull_where_they_should() -> None:
    scores = torch.tensor([-30.0, 0.0, 30.0], requires_grad=True)
    for game in (NonSaturating(), Wasserstein()):
        for loss, sign in ((game.real, -1), (game.fake, 1), (game.generated, -1)):
            (gradient,) = torch.autograd.grad(loss(scores).sum(), scores)
            assert (sign * gradient >= 0).all()
            assert sign * gradient[1] > 0
    (gradient,) = torch.autograd.grad(NonSaturating().generated(scores).sum(), scores)
    assert gradient[0] == pytest.approx(-1.0)  # where the critic is sure, the generator learns most
    assert NonSaturating().real(scores).isfinite().all()
