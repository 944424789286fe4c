"""Dropout and weight normalisation of the critic: gradients are still those of single records, and clipped exactly."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.material import random_records
from tests.models.gan.material import GAPS, IMAGES, TABLE, assert_clipped, draw_examples, fit_gan, new_game
from torch import Tensor, nn

from sundog.data.schema import Schema
from sundog.models.gan.adversarial_step import AdversarialGame
from sundog.models.gan.networks.base import CriticUnits
from sundog.models.gan.objectives import NonSaturating, Objective, Wasserstein
from sundog.models.gan.saved_critic import Critic
from sundog.models.gan.weight_normalisation import WeightNormalised
from sundog.models.neural.features import Compact
from sundog.training.speed.compile import compile_program, has_compiler
from sundog.training.speed.options import EXACT

CASES = pytest.mark.parametrize(
    ("schema", "shape"), [(TABLE, "mlp"), (IMAGES, "conv"), (GAPS, "lstm")], ids=["table", "images", "series"]
)


# --- dropout ---


def sum_gradients(game: AdversarialGame, batch: Compact) -> tuple[list[Tensor], Tensor, Tensor]:
    """By plain autograd, record by record: clipped sums, norms, and the clip, which is their median."""
    weights, losses = list(game.critic.parameters()), game.loss(batch)
    each = [torch.autograd.grad(loss, weights, retain_graph=True) for loss in losses]
    norms = torch.stack([torch.cat([part.flatten() for part in parts]).norm() for parts in each])
    clip = norms.median()
    factors = (clip / norms).clamp_max(1.0)
    sums = [sum(w * part for w, part in zip(factors, parts, strict=True)) for parts in zip(*each, strict=True)]
    return sums, norms, clip


@CASES
@pytest.mark.parametrize("objective", [Wasserstein(10.0), NonSaturating()], ids=["gp", "ns"])
def test_with_dropout_the_clipped_sum_is_that_of_a_loop_over_records(
    schema: Schema, shape: str, objective: Objective
) -> None:
    game, batch = new_game(schema, shape, objective, dropout=0.5), draw_examples(schema)
    for weight in game.critic.parameters():
        weight.data *= 2.0  # so that norms are far from one another
    torch.manual_seed(3)
    sums, norms, clip = sum_gradients(game, batch)
    assert norms.min() < 0.9 * clip < 1.1 * clip < norms.max()
    torch.manual_seed(3)  # the same masks
    assert_clipped(game, batch, "when needed", sums, norms, clip)
    with pytest.raises(AssertionError):  # other masks are noticed
        assert_clipped(game, batch, "when needed", sums, norms, clip)


@CASES
def test_a_mask_is_about_one_record(schema: Schema, shape: str) -> None:
    game, batch, others = new_game(schema, shape, dropout=0.5), draw_examples(schema), draw_examples(schema, seed=1)
    changed = {name: torch.cat([others[name][:4], rows[4:5], others[name][5:]]) for name, rows in batch.items()}
    losses = []
    for examples in (batch, changed):
        torch.manual_seed(3)
        losses.append(game.loss(examples).detach())
    torch.testing.assert_close(losses[0][4], losses[1][4])
    assert (losses[0] - losses[1]).abs()[[0, 1, 2, 3, 5, 6, 7, 8]].min() > 1e-4


def test_each_record_has_a_mask_of_its_own_with_the_share_that_was_set() -> None:
    units, x = CriticUnits(dropout=0.3), torch.ones(400, 50)
    torch.manual_seed(0)
    y = units(x)
    assert set(y.flatten().tolist()) == {0.0, float(torch.tensor(1 / 0.7))}
    assert abs(float((y == 0).float().mean()) - 0.3) < 5 * (0.21 / y.numel()) ** 0.5
    assert len(np.unique(y.numpy(), axis=0)) == len(y)
    assert torch.equal(units.eval()(-x), -0.2 * x)


@pytest.mark.slow
@pytest.mark.skipif(not has_compiler(), reason="torch.compile needs a C++ compiler")
def test_a_compiled_program_draws_a_mask_in_each_call() -> None:
    units, x = CriticUnits(dropout=0.5), torch.ones(30, 40)
    program = compile_program(lambda x: [units(x)], x, EXACT, fixed_size=False)
    first, second = (program(x)[0] for _ in range(2))
    assert not torch.equal(first, second)
    assert len(np.unique(first.numpy(), axis=0)) == len(first)


def test_the_critic_that_is_kept_scores_without_dropout() -> None:
    records = random_records(TABLE, 60)
    model = fit_gan(records, shape="mlp", dropout=0.5, condition="label")
    assert model.private is not None
    critic = Critic(TABLE, model.private)
    assert np.array_equal(critic.score(records), critic.score(records))


# --- weight normalisation ---


def train(module: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 5) -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        module(torch.randn(8, 2, 6, 6, generator=generator)).square().sum().backward()
        optimizer.step()


def new_network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64, 3))


def test_weights_are_those_of_torchs_weight_normalisation() -> None:
    ours, theirs, plain = (new_network() for _ in range(3))
    for place in (0, 3):
        nn.utils.parametrizations.weight_norm(theirs[place])
    options: dict[str, Any] = {"lr": 0.05, "betas": (0.0, 0.99)}
    train(ours, WeightNormalised(ours.parameters(), **options))
    train(theirs, torch.optim.Adam(theirs.parameters(), **options))
    train(plain, torch.optim.Adam(plain.parameters(), **options))
    x = torch.randn(8, 2, 6, 6)
    torch.testing.assert_close(ours(x), theirs(x))
    assert (ours(x) - plain(x)).abs().max() > 0.1


def test_a_state_that_was_saved_goes_on_as_if_nothing_had_happened() -> None:
    ours = new_network()
    optimizer = WeightNormalised(ours.parameters(), lr=0.05)
    train(ours, optimizer)
    again, saved = copy.deepcopy(ours), copy.deepcopy(optimizer.state_dict())
    resumed = WeightNormalised(again.parameters(), lr=0.05)
    resumed.load_state_dict(saved)
    train(ours, optimizer)
    train(again, resumed)
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), again.parameters(), strict=True))


def test_units_without_weights_are_left_alone() -> None:
    weight = nn.Parameter(torch.zeros(2, 3))
    weight.grad = torch.zeros(2, 3)
    WeightNormalised([weight], lr=0.1).step()
    assert not weight.any()


def test_a_fit_uses_it() -> None:
    records = random_records(TABLE, 60)
    with_it, without = (fit_gan(records, shape="mlp", weight_norm=on).private for on in (True, False))
    assert with_it is not None
    assert without is not None
    assert with_it.tensors.keys() == without.tensors.keys()
    assert any(not np.array_equal(with_it.tensors[name], without.tensors[name]) for name in without.tensors)
