"""DPNorm beside a loop over examples, and what it costs; bounds from public examples."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

from sundog.errors import SundogError
from sundog.privacy.noise import NoiseSource
from sundog.training.batches.examples import Padded
from sundog.training.clipping import DPNorm, PublicMean
from sundog.training.groups import group_all, group_weights_and_biases
from sundog.training.noise_addition import compute_gradient_multiplier
from sundog.training.per_example.engine import compute_norms
from sundog.training.stacked_modules import stack
from sundog.training.step import PrivateStep

NOISE, BATCH, RATE = 0.05, 20.0, 0.1
multipliers = pytest.mark.parametrize("noise_multiplier", [0.01, 0.7, 1.99, 2.0, 3.9, 4.0, 100.0])


def histogram_by_loop(norms: list[float], *, largest: float, bins: int) -> list[float]:
    """t_j = |{x : C_{j-1} < ‖g(x)‖ ≤ C_j}|, as Algorithm 3 writes it; longer gradients are in the last bin."""
    edges = [j * largest / bins for j in range(bins + 1)]
    counts = [float(sum(low < norm <= high for norm in norms)) for low, high in itertools.pairwise(edges)]
    counts[-1] += sum(norm > largest for norm in norms)
    return counts


def step_by_loop(weight: Tensor, batch: Tensor, bound: float, noise: Tensor) -> tuple[Tensor, float]:
    """One step of SGD on the loss ½‖Wx‖², and the bound for the next one."""
    gradients = [torch.outer(weight @ x, x) for x in batch]
    norms = [float(gradient.norm()) for gradient in gradients]
    total = torch.zeros_like(weight)
    for gradient, norm in zip(gradients, norms, strict=True):
        total += gradient * min(1.0, bound / norm)
    of_gradient, of_histogram = noise[: weight.numel()].view_as(weight), noise[weight.numel() :]
    total += compute_gradient_multiplier(NOISE, 4.0) * bound * of_gradient
    noisy = torch.tensor(histogram_by_loop(norms, largest=10.0, bins=100)) + 4.0 * of_histogram
    return weight - RATE * total / BATCH, 10.0 * (1 + int(noisy.argmax())) / 100


def test_dpnorm_is_algorithm_3_by_a_loop() -> None:
    """In one piece and in several, over batches large enough for the mode to stand out, and one that is empty."""
    torch.manual_seed(0)
    module = nn.Linear(5, 4, bias=False)
    policy = DPNorm(noise_multiplier=NOISE)
    step = PrivateStep(
        module=module,
        private_loss=lambda x: module(x).square().sum(dim=1) / 2,
        groups=group_all(module),
        policy=policy,
        optimizer=torch.optim.SGD(module.parameters(), lr=RATE),
        noise=NoiseSource.seeded(3),
        noise_multiplier=NOISE,
        expected_batch=BATCH,
    )
    again = NoiseSource.seeded(3)
    weight, bound = module.weight.detach().clone(), 10.0
    bounds = []
    for size in (40, 300, 0, 300, 300):
        batch = torch.randn(size, 5)
        assert float(policy.bounds[0]) == pytest.approx(bound)
        step(torch.split(batch, 70) if size == 300 else [batch])
        noise = torch.empty(20 + 100)
        again.standard_normal_(noise)
        weight, bound = step_by_loop(weight, batch, bound, noise)
        bounds.append(bound)
        torch.testing.assert_close(module.weight.detach(), weight, rtol=1e-4, atol=1e-5)
    assert len(set(bounds)) > 2


@multipliers
def test_histogram_and_gradient_together_cost_the_multiplier_of_the_plan(noise_multiplier: float) -> None:
    """Each divided by its noise, an example moves the joint vector by at most one over the planned multiplier."""
    policy = DPNorm(noise_multiplier=noise_multiplier)
    bound = float(policy.bounds[0])
    scale = compute_gradient_multiplier(noise_multiplier, policy.measurement_noise) * bound
    moved = math.hypot(bound / scale, 1.0 / policy.measurement_noise)
    assert 1 / moved == pytest.approx(noise_multiplier, rel=1e-6)
    assert scale <= 1.16 * noise_multiplier * bound  # what the histogram costs the gradient


def test_the_largest_norm_the_bins_and_the_noise_are_those_of_the_text() -> None:
    policy = DPNorm(noise_multiplier=1.0)
    assert policy.edges.tolist() == pytest.approx([j / 10 for j in range(1, 101)])
    assert policy.bounds.tolist() == [10.0]
    assert policy.measurement_noise == 4.0


@pytest.mark.parametrize("norm", [0.0, 0.1, 3.33, 9.999, 10.0, 1e9, math.inf, math.nan])
def test_an_example_adds_one_to_one_bin(norm: float) -> None:
    policy = DPNorm(noise_multiplier=1.0)
    counts = policy.measure(torch.tensor([[norm]]), torch.ones(1))
    assert sorted(counts.tolist())[-2:] == [0.0, 1.0]
    assert policy.measure(torch.tensor([[norm]]), torch.zeros(1)).tolist() == [0.0] * 100


def test_the_mode_of_the_norms_becomes_the_bound() -> None:
    policy = DPNorm(noise_multiplier=1.0)
    norms = torch.cat([torch.full((500,), 3.33), torch.rand(300) * 10])[None]
    policy.update(policy.measure(norms, torch.ones(norms.shape[1])))
    assert float(policy.bounds[0]) == pytest.approx(3.4)


def test_the_models_of_a_stack_share_one_histogram() -> None:
    """An example is in one model and adds one to one bin; the examples that fill up a batch add nothing."""
    torch.manual_seed(0)
    module = stack([nn.Linear(5, 4, bias=False) for _ in range(3)])
    policy = DPNorm(noise_multiplier=1.0)
    measured = []

    def measure(norms: Tensor, present: Tensor) -> Tensor:
        measured.append(DPNorm.measure(policy, norms, present))
        return measured[-1]

    policy.measure = measure  # type: ignore[method-assign]
    step = PrivateStep(
        module=module,
        private_loss=lambda x: module(x).square().sum(dim=-1),
        groups=group_all(module),
        policy=policy,
        optimizer=torch.optim.SGD(module.parameters(), lr=RATE),
        noise=NoiseSource(),
        noise_multiplier=1.0,
        expected_batch=torch.tensor([2.0, 4.0, 1.0]),
    )
    present = torch.arange(7) < torch.tensor([2, 7, 0])[:, None]
    step([Padded(torch.randn(3, 7, 5), present)])
    assert [float(counts.sum()) for counts in measured] == [9.0]


def test_a_bound_from_public_examples_follows_the_model() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1))
    public = torch.randn(20, 6)

    def loss(x: Tensor) -> Tensor:
        return module(x).square().sum(dim=1)  # type: ignore[no-any-return]

    groups = group_weights_and_biases(module)

    def mean_norms() -> Tensor:
        return compute_norms(module, loss, public, groups).mean(dim=1)

    policy = PublicMean(lambda: compute_norms(module, loss, public, groups), factor=2.0)
    torch.testing.assert_close(policy.bounds, 2 * mean_norms())
    step = PrivateStep(
        module=module,
        private_loss=loss,
        groups=groups,
        policy=policy,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.5),
        noise=NoiseSource(),
        noise_multiplier=1.0,
        expected_batch=4.0,
    )
    before = policy.bounds.clone()
    step([torch.randn(4, 6)])
    torch.testing.assert_close(policy.bounds, 2 * mean_norms())
    assert not torch.allclose(policy.bounds, before)
    with pytest.raises(SundogError, match="give no clipping norm"):
        PublicMean(lambda: torch.zeros(1, 5))
