"""Gradient canaries: their clipped gradients are their own, and what is observed is noise and the canary alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sundog.auditing.canaries.gradient_canaries import CanaryExamples, CanaryStep, GradientCanaries, Weights
from sundog.errors import SundogError
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.training.batches.stacked_examples import StackedExamples
from sundog.training.clipping import DPNorm, Fixed
from sundog.training.groups import group_all, group_weights_and_biases
from sundog.training.per_example.engine import clip_and_sum
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer
from sundog.training.training_plan import TrainingPlan

CANARIES, CLIP = 60, 0.5

pytestmark = pytest.mark.usefixtures("one_thread")


class Rows:
    """Records that are vectors."""

    device = torch.device("cpu")

    def __init__(self, count: int) -> None:
        self.values = torch.randn(count, 8, generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: Any) -> Tensor:
        return self.values[torch.from_numpy(index)]


def new_module() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4, bias=False))


def new_step(plan: TrainingPlan, policy: Any = None, grouping: Any = group_all) -> PrivateStep:
    module = new_module()
    groups = grouping(module)
    return PrivateStep(
        module=module,
        private_loss=lambda batch: module(batch).square().sum(dim=1),
        groups=groups,
        policy=policy or Fixed(torch.full((groups.count,), CLIP)),
        optimizer=torch.optim.SGD(module.parameters(), lr=0.01),
        noise=NoiseSource.seeded(0),
        noise_multiplier=plan.noise_multiplier,
        expected_batch=plan.expected_batch,
    )


def train(plan: TrainingPlan, *, seed: int = 0, **settings: Any) -> tuple[GradientCanaries, np.ndarray[Any, Any]]:
    """Train with canaries, and return what was observed of them, and which were included."""
    rng = np.random.default_rng(seed)
    included = rng.random(CANARIES) < 0.5
    planted = GradientCanaries(included, rng)
    step, examples = planted.install(new_step(plan, **settings), Rows(20), plan)
    ledger = Ledger(epsilon=1e6, delta=1e-5, noise=NoiseSource.seeded(seed))
    Trainer(step, examples, plan, ledger, seed=seed, block=plan.steps).run()
    return planted, included


def new_plan(*, noise: float, rate: float = 1.0, steps: int = 1) -> TrainingPlan:
    return TrainingPlan(rate, steps, noise, expected_batch=20.0 * rate)


def test_each_canary_is_clipped_to_a_direction_of_its_own() -> None:
    module = new_module()
    groups = group_all(module)
    weights = Weights.draw(module, groups, CANARIES, np.random.default_rng(0))
    assert len(set(zip(*(each.tolist() for each in (weights.layer, weights.row, weights.column)), strict=True))) == 60
    policy = Fixed(torch.tensor([CLIP]))
    for canary in range(CANARIES):
        chosen = torch.tensor([canary])
        found = clip_and_sum(
            module, lambda b: weights.take(b).compute_losses(torch.full((len(b),), 5.0)), chosen, groups, policy.weigh
        )
        assert found.norms.item() == pytest.approx(5.0, rel=2e-4)
        entries = weights.select(found.sums, groups)
        assert entries[canary].item() == pytest.approx(CLIP, rel=2e-4)
        entries[canary] = 0
        assert entries.abs().max().item() == 0
        whole = torch.cat([each.flatten() for each in found.sums])
        assert whole.norm().item() == pytest.approx(CLIP, rel=2e-4)


@pytest.mark.parametrize("canaries_in", ["all", "none", "some"])
def test_the_sum_of_records_is_subtracted_exactly(canaries_in: str) -> None:
    plan = new_plan(noise=1e-6)
    chosen = {"all": np.arange(CANARIES), "none": np.arange(0), "some": np.arange(0, CANARIES, 3)}[canaries_in]
    step = new_step(plan)
    weights = Weights.draw(step.module, step.groups, CANARIES, np.random.default_rng(0))
    seen: list[Tensor] = []
    settings = {name: getattr(step, name) for name in PrivateStep.__dataclass_fields__}
    canary_step = CanaryStep(**settings, weights=weights, observe=seen.append)
    examples = CanaryExamples(Rows(20), chosen)
    canary_step([examples.take(np.arange(15)), examples.take(np.arange(15, len(examples)))])
    expected = torch.zeros(CANARIES)
    expected[chosen] = CLIP
    assert seen[0].numpy() == pytest.approx(expected.numpy(), abs=2e-4)


def test_the_optimiser_receives_records_canaries_and_noise() -> None:
    """The step with canaries is the production step on their joint batch."""
    plan = new_plan(noise=1e-6)
    plain, step = new_step(plan), new_step(plan)
    weights = Weights.draw(step.module, step.groups, CANARIES, np.random.default_rng(0))
    settings = {name: getattr(step, name) for name in PrivateStep.__dataclass_fields__}
    with_canaries = CanaryStep(**settings, weights=weights, observe=lambda _: None)
    examples = CanaryExamples(Rows(20), np.array([3]))
    plain([Rows(20).values])
    with_canaries([examples.take(np.arange(21))])
    moved = [a.detach() - b.detach() for a, b in zip(plain.module.parameters(), step.module.parameters(), strict=True)]
    entries = weights.select(moved, step.groups)
    assert entries[3].item() == pytest.approx(0.01 * CLIP / 20, rel=1e-2)
    entries[3] = 0
    assert entries.abs().max().item() < 1e-7


@pytest.mark.parametrize("grouping", [group_all, group_weights_and_biases])
def test_scores_are_the_log_likelihood_ratios_of_a_gaussian_sum(grouping: Any) -> None:
    plan = new_plan(noise=2.0)
    shift = 1 / 2 if grouping is group_all else None
    z = []
    for seed in range(30):
        planted, included = train(plan, seed=seed, grouping=grouping)
        if shift is None:  # the share of the group of weights in the privacy of both
            groups = grouping(new_module())
            roots = np.sqrt(groups.sizes)
            shift = 1 / 2 * np.sqrt(roots[0] / roots.sum())
        z.append((planted.scores + shift**2 / 2) / shift - shift * included)
    drawn = np.concatenate(z)
    assert abs(drawn.mean()) < 5 / np.sqrt(len(drawn))
    assert abs(drawn.std() - 1) < 5 / np.sqrt(2 * len(drawn))


def test_scores_of_sampled_steps_tell_canaries_apart() -> None:
    planted, included = train(new_plan(noise=0.5, rate=0.25, steps=40))
    assert planted.steps == 40
    assert ((planted.scores > 0) == included).mean() > 0.9


def test_measured_norms_include_canaries() -> None:
    plan = new_plan(noise=1.0, steps=3)
    planted, _ = train(plan, policy=DPNorm(noise_multiplier=1.0))
    assert planted.steps == 3
    assert np.isfinite(planted.scores).all()


def test_what_canaries_cannot_be_planted_in_is_refused() -> None:
    plan = new_plan(noise=1.0)
    step, rows = new_step(plan), Rows(20)
    many = GradientCanaries(np.ones(1000, bool), np.random.default_rng(0))
    with pytest.raises(SundogError, match="192 weights in linear layers"):
        many.install(step, rows, plan)
    few = GradientCanaries(np.ones(10, bool), np.random.default_rng(0))
    with pytest.raises(SundogError, match="mixture of networks"):
        few.install(step, StackedExamples(rows, np.zeros(20, np.int64), 2), plan)
    with pytest.raises(SundogError, match="device cpu"):
        few.install(object(), rows, plan)  # type: ignore[arg-type]
