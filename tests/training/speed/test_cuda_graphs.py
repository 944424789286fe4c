"""Steps replayed as CUDA graphs: the same steps, with noise that is new every time. Needs a GPU."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from tests.privacy.chacha_reference import reference_normals
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from sundog.privacy.chacha import DeviceNormals
from sundog.privacy.noise import NoiseSource
from sundog.training.batches.examples import Padded
from sundog.training.clipping import ClipPolicy, DPNorm, Fixed
from sundog.training.groups import group_all
from sundog.training.speed.cuda_graphs import GraphedStep, ReplayedWork, choose_capacity
from sundog.training.stacked_modules import stack
from sundog.training.step import PrivateStep

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.filterwarnings("ignore"),  # of torch about itself
]


def step_on(device: str, policy: ClipPolicy, noise: float, source: NoiseSource | None = None) -> PrivateStep:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 50), nn.Tanh(), nn.Linear(50, 6)).to(device)

    def loss(x: Tensor) -> Tensor:
        error: Tensor = (module(x) - x).square().sum(dim=1)
        return error

    return PrivateStep(
        module=module,
        private_loss=loss,
        groups=group_all(module),
        policy=policy,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1, foreach=True),
        noise=source or NoiseSource(),
        noise_multiplier=noise,
        expected_batch=8.0,
    )


class NoisyMean(DPNorm):
    """Bounds at the mean of the histogram that DPNorm measures: where counts tie, noise alone decides on the mode."""

    def update(self, noisy: Tensor | None) -> None:
        assert noisy is not None
        self.bounds.copy_(((noisy * self.edges).sum() / (noisy.sum() + 1)).clamp_min(1.0))


def almost_exact_mean(device: str) -> NoisyMean:
    policy = NoisyMean(noise_multiplier=1e-6, largest=20.0, bins=10, device=device)
    policy.measurement_noise = 1e-5
    return policy


@pytest.mark.parametrize("fused", [True, False])
def test_a_graph_takes_the_steps_that_the_host_would(fused: bool) -> None:
    """Empty batches, batches above the capacity and bad examples included."""
    data = torch.randn(100, 6)
    data[7] = torch.inf
    rng = np.random.default_rng(0)
    plain, steps = (step_on(device, almost_exact_mean(device), 1e-6) for device in ("cpu", "cuda"))
    graphed = GraphedStep(steps, data.cuda(), capacity=16, fused=fused)
    for number in range(12):
        index = rng.choice(100, [5, 8, 0, 40, 16, 3, 7, 1, 12, 0, 33, 9][number], replace=False)
        graphed(index)
        plain([data[index]])
    for ours, expected in zip(graphed.step.groups.parameters, plain.groups.parameters, strict=True):
        torch.testing.assert_close(ours.cpu(), expected, rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(graphed.step.policy.bounds.cpu(), plain.policy.bounds, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("fused", [True, False])
def test_a_graph_trains_a_stack_as_the_host_would(fused: bool) -> None:
    """Three models with shares of unequal size, none at all for one of them, and more than fit for another."""
    data, owner = torch.randn(90, 6), np.repeat([0, 1, 2], [20, 60, 10])
    plain, steps = make_stacked_step("cpu"), make_stacked_step("cuda")
    graphed = GraphedStep(steps, data.cuda(), capacity=8, owner=owner, fused=fused)
    rng = np.random.default_rng(0)
    for size in (5, 0, 9, 30, 12, 3):
        index = np.sort(rng.choice(70, size, replace=False)) if size < 12 else rng.choice(90, size, replace=False)
        graphed(index)
        shares = [data[index[owner[index] == model]] for model in range(3)]
        present = torch.arange(max(map(len, shares))) < torch.tensor([len(share) for share in shares])[:, None]
        plain([Padded(pad_sequence(shares, batch_first=True), present)])
    for ours, expected in zip(steps.groups.parameters, plain.groups.parameters, strict=True):
        torch.testing.assert_close(ours.cpu(), expected, rtol=1e-2, atol=1e-3)


def make_stacked_step(device: str) -> PrivateStep:
    torch.manual_seed(0)
    module = stack([nn.Sequential(nn.Linear(6, 50), nn.Tanh(), nn.Linear(50, 6)) for _ in range(3)]).to(device)

    def loss(x: Tensor) -> Tensor:
        error: Tensor = (module(x) - x).square().sum(dim=-1)
        return error

    return PrivateStep(
        module=module,
        private_loss=loss,
        groups=group_all(module),
        policy=Fixed(torch.ones(1, device=device)),
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1, foreach=True),
        noise=NoiseSource(),
        noise_multiplier=1e-6,
        expected_batch=torch.tensor([3.0, 8.0, 2.0], device=device),
    )


@pytest.mark.parametrize("count", [1, 9, 10, 1000, 316_001])
def test_the_kernel_gives_what_the_reference_does(count: int) -> None:
    stream = DeviceNormals("cuda", bytes(range(32)))
    for message in (1, 2):
        found = stream.fill(torch.empty(count, device="cuda"))
        expected = reference_normals(stream.key.cpu(), torch.tensor(message), count)
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)


def take_empty_step(graphed: GraphedStep) -> Tensor:
    """Return the gradient of a step without records: its noise."""
    graphed(np.empty(0, dtype=np.int64))
    found = torch.cat([p.grad.flatten() for p in graphed.step.groups.parameters if p.grad is not None])
    return found.cpu()


def new_graph(source: NoiseSource) -> GraphedStep:
    step = step_on("cuda", Fixed(torch.ones(1, device="cuda")), 2.0, source)
    return GraphedStep(step, torch.randn(100, 6, device="cuda"), capacity=choose_capacity(8))


@pytest.mark.parametrize(
    "source",
    [NoiseSource(), NoiseSource(fast_gradients=True), NoiseSource.seeded(0)],
    ids=["secure", "fast", "seeded"],
)
def test_every_replay_has_noise_of_its_own(source: NoiseSource) -> None:
    """The source of each step is derived as `Trainer` does: with a seed, it is another one."""
    graphed, drawn = new_graph(source), []
    for number in range(8):
        graphed.step.noise = source.derive_stream("gradient", number)
        drawn.append(take_empty_step(graphed))
    noise = torch.stack(drawn)
    torch.testing.assert_close(noise.std(dim=1), torch.full((8,), 2 / 8), rtol=0.15, atol=0.0)
    assert float((torch.corrcoef(noise) - torch.eye(8)).abs().max()) < 0.25


def test_a_graph_refuses_noise_that_it_would_not_draw() -> None:
    graphed = new_graph(NoiseSource())
    take_empty_step(graphed)
    graphed.step.noise = NoiseSource()
    with pytest.raises(RuntimeError, match="create a new GraphedStep"):
        take_empty_step(graphed)


def test_a_graph_is_recorded_while_that_of_another_training_is_garbage() -> None:
    """Python would collect it in the midst, and the device then refuses to go on."""
    total = torch.zeros(3, device="cuda")

    def work() -> None:
        litter = [[number] for number in range(1000)]
        total.add_(len(litter))

    def forgotten() -> None:
        replayed = ReplayedWork(work, total.device)
        for _ in range(4):
            replayed()
        replayed._work = lambda: replayed()  # noqa: PLW0108 - a cycle, which only the collector can break

    thresholds = gc.get_threshold()
    again = ReplayedWork(work, total.device)
    again()
    again()
    forgotten()
    gc.set_threshold(1)
    try:
        again()
    finally:
        gc.set_threshold(*thresholds)
    assert gc.isenabled()
    torch.testing.assert_close(total.cpu(), torch.full((3,), 7000.0))
