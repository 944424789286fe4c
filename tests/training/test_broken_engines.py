"""Tests that can fail: every check is run on the right engine, which passes, and on one with a fault, which does not.

A check says how likely what it saw is if the engine is right: a p-value, corrected for how many were looked at. Where
an oracle knows the answer, it is one or zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import signal, stats
from tests.training.broken import (
    ActualSize,
    Engine,
    Epochs,
    ForgottenNorm,
    NoiseForEachPiece,
    Remembering,
    RepeatedNoise,
    Sampler,
    SharedNoise,
    SilentLayer,
    fixed_size,
    in_pairs,
    never_empty,
    the_first_more_often,
    with_noise,
    with_side_noise,
)
from torch import Tensor, nn

from sundog.privacy.noise import NoiseSource
from sundog.training.batches.poisson import draw_poisson_batch
from sundog.training.clipping import ClipPolicy, DPNorm, Fixed
from sundog.training.groups import Groups, group_all
from sundog.training.noise_addition import compute_gradient_multiplier
from sundog.training.step import PrivateStep

Floats = npt.NDArray[np.float64]

RIGHT, WRONG = 1e-7, 1e-10  # a false alarm once in ten million runs, and no doubt about a fault
NOISE, BATCH = 1.5, 20.0
HISTOGRAM_NOISE = 4.0  # the multiplier σ_C of the text, which DPNorm takes at this NOISE


pytestmark = pytest.mark.usefixtures("one_thread")


class Witness(Remembering):
    """A policy that notes by how much the answers it is given differ from what it measured."""

    def __init__(self, policy: ClipPolicy) -> None:
        super().__init__(policy)
        self.errors: list[Floats] = []

    def update(self, noisy: Tensor | None) -> None:
        assert noisy is not None
        self.errors.append((noisy - self._measured).double().numpy())
        self._measured = torch.zeros(())
        self._policy.update(noisy)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(30, 40), nn.Tanh(), nn.Linear(40, 30, bias=False))


def set_up(engine: Engine, module: nn.Module, groups: Groups, policy: object, **changes: Any) -> PrivateStep:
    """An engine whose private loss is zero, if nothing else is said."""
    settings = {
        "module": module,
        "private_loss": lambda x: 0.0 * module(x).sum(1),
        "groups": groups,
        "policy": policy,
        "optimizer": torch.optim.SGD(module.parameters(), lr=1.0),
        "noise": NoiseSource(),
        "noise_multiplier": NOISE,
        "expected_batch": BATCH,
    }
    return engine(**settings | changes)


def steps_taken(step: PrivateStep, batches: Sequence[Sequence[Tensor]]) -> Iterator[list[Floats]]:
    """What each step adds to the sum of the gradients, for every parameter."""
    for batch in batches:
        for parameter in step.groups.parameters:
            nn.init.zeros_(parameter)
        step(batch)
        yield [-BATCH * parameter.detach().double().flatten().numpy() for parameter in step.groups.parameters]


def correct_smallest(p_values: Sequence[float] | Floats) -> float:
    """The smallest of several p-values, corrected for their number."""
    return min(1.0, float(np.min(p_values)) * len(p_values))


# --- the noise ---


def noise_has_its_scale(engine: Engine) -> float:
    """The noise of every parameter, over batches in four pieces, against the planned normal."""
    module = network()
    step = set_up(engine, module, group_all(module), Fixed(torch.tensor([0.7])))
    drawn = steps_taken(step, [torch.split(torch.randn(8, 30), 2)] * 50)
    return correct_smallest([p_of_normals(np.concatenate(values), 0.7 * NOISE) for values in zip(*drawn, strict=True)])


def noise_is_fresh(engine: Engine) -> float:
    """No part of the noise of a few steps comes again, in another parameter, step or measurement.

    All that was drawn is written in a row, and the row is compared with itself at every distance: over m places a sum
    of products of independent normals is nearly normal with variance m.
    """
    module = network()
    witness = Witness(DPNorm(noise_multiplier=NOISE, largest=2.0, bins=200))
    step = set_up(engine, module, group_all(module), witness)
    row: list[Floats] = []
    scale = compute_gradient_multiplier(NOISE, HISTOGRAM_NOISE) * float(witness.bounds[0])
    for parts in steps_taken(step, [[torch.randn(8, 30)]] * 5):
        row += [*(part / scale for part in parts), witness.errors[-1] / HISTOGRAM_NOISE]
        scale = compute_gradient_multiplier(NOISE, HISTOGRAM_NOISE) * float(witness.bounds[0])
    values = np.concatenate(row)
    distances = np.arange(1, len(values) - 1000)
    products = signal.correlate(values, values)[len(values) :][: len(distances)]
    return correct_smallest(2 * stats.norm.sf(np.abs(products) / np.sqrt(len(values) - distances)))


def histograms_are_noised(engine: Engine) -> float:
    """What DPNorm learns of a histogram differs from the truth by its noise, once for all the pieces of a batch."""
    module = network()
    witness = Witness(DPNorm(noise_multiplier=NOISE, largest=2.0, bins=500))
    step = set_up(engine, module, group_all(module), witness)
    for _ in range(6):
        step(torch.split(torch.randn(8, 30), 4))
    return p_of_normals(np.concatenate(witness.errors), HISTOGRAM_NOISE)


def p_of_normals(values: Floats, scale: float) -> float:
    """Are they normal, and of this scale? One test for the shape, and one with more power for the scale."""
    shape = stats.kstest(values, stats.norm(scale=scale).cdf).pvalue
    law, squares = stats.chi2(len(values)), np.square(values / scale).sum()
    return correct_smallest([shape, two_sided(law.cdf(squares), law.sf(squares))])


# --- the sum ---


def sums_are_those_of_a_loop(engine: Engine) -> float:
    """Steps with hardly any noise, over batches of any size, against one example at a time."""
    torch.manual_seed(0)
    module = network()
    groups, bound = group_all(module), 0.5

    def loss(x: Tensor) -> Tensor:
        result: Tensor = module(x).square().sum(1)
        return result

    step = set_up(engine, module, groups, Fixed(torch.tensor([bound])), private_loss=loss, noise_multiplier=1e-9)
    agreed = []
    for size in (1, 13, 20, 33):
        batch = torch.randn(size, 30) * torch.logspace(-2, 1, size)[:, None]  # some are clipped, and some are not
        expected = [parameter.detach() - total / BATCH for parameter, total in one_by_one(loss, batch, groups, bound)]
        step(list(torch.split(batch, 8)))
        agreed += [
            torch.allclose(parameter.detach(), value, rtol=1e-4, atol=1e-6)
            for parameter, value in zip(groups.parameters, expected, strict=True)
        ]
    return float(all(agreed))


def one_by_one(
    loss: Callable[[Tensor], Tensor], batch: Tensor, groups: Groups, bound: float
) -> list[tuple[nn.Parameter, Tensor]]:
    """The oracle: every parameter with its sum of clipped gradients."""
    sums = [torch.zeros_like(parameter) for parameter in groups.parameters]
    for example in batch:
        gradients = torch.autograd.grad(loss(example[None]).sum(), list(groups.parameters))
        norm = float(torch.cat([gradient.flatten() for gradient in gradients]).norm())
        for total, gradient in zip(sums, gradients, strict=True):
            total.add_(gradient, alpha=min(1.0, bound / norm))
    return list(zip(groups.parameters, sums, strict=True))


# --- the sample ---


def sizes_are_binomial(sampler: Sampler, *, records: int = 400, rate: float = 0.05) -> float:
    noise = NoiseSource()
    sizes = np.array([len(sampler(records, rate, noise)) for _ in range(4000)])
    law = stats.binom(records, rate)
    cells = cells_of(law.pmf(np.arange(int(law.isf(1e-15)) + 1)))
    seen = np.bincount(cells[np.minimum(sizes, len(cells) - 1)], minlength=cells[-1] + 1)
    expected = np.bincount(cells, law.pmf(np.arange(len(cells)))) * len(sizes)
    return float(stats.chisquare(seen, expected * len(sizes) / expected.sum()).pvalue)


def cells_of(masses: Floats) -> npt.NDArray[np.int64]:
    """A cell for each size, neighbours together until a cell has five per cent: enough for a chi-square test."""
    cells, mass = [0], 0.0
    for previous in masses[:-1]:
        mass += previous
        full = mass >= 0.05
        cells.append(cells[-1] + full)
        mass = 0.0 if full else mass
    found = np.array(cells)
    rest = masses[found == found[-1]].sum()
    return np.minimum(found, found[-1] - 1) if rest < 0.05 else found


def records_are_drawn_alike(sampler: Sampler, *, records: int = 400, rate: float = 0.05, steps: int = 4000) -> float:
    """How often each record is drawn: records are independent, so that their squared deviations add up."""
    noise = NoiseSource()
    drawn = np.bincount(np.concatenate([sampler(records, rate, noise) for _ in range(steps)]), minlength=records)
    deviations = (drawn - steps * rate) ** 2 / (steps * rate * (1 - rate))
    law = stats.chi2(records)
    return float(two_sided(law.cdf(deviations.sum()), law.sf(deviations.sum())))


def records_are_independent(sampler: Sampler, *, records: int = 12, rate: float = 0.25, steps: int = 10000) -> float:
    """How often two records are drawn together, for every two: binomial, exactly, however small the rate."""
    noise = NoiseSource()
    present = np.zeros((steps, records), dtype=np.float32)
    for step in range(steps):
        present[step, sampler(records, rate, noise)] = 1
    together = (present.T @ present)[np.triu_indices(records, 1)]
    law = stats.binom(steps, rate**2)
    return correct_smallest(two_sided(law.cdf(together), law.sf(together - 1)))


def steps_are_independent(sampler: Sampler, *, records: int = 100, rate: float = 0.1) -> float:
    """How many records are in two steps that follow one another: binomial, exactly."""
    noise = NoiseSource()
    pairs = [(sampler(records, rate, noise), sampler(records, rate, noise)) for _ in range(1000)]
    both = sum(len(np.intersect1d(*pair, assume_unique=True)) for pair in pairs)
    law = stats.binom(len(pairs) * records, rate**2)
    return float(two_sided(law.cdf(both), law.sf(both - 1)))


def two_sided(at_most: Any, at_least: Any) -> Any:
    """The p-value of something as small as was seen, or as large."""
    return np.minimum(1.0, 2 * np.minimum(at_most, at_least))


FAULTS = [
    ("no noise in one layer", noise_has_its_scale, PrivateStep, SilentLayer),
    ("two thirds of the noise", noise_has_its_scale, PrivateStep, with_noise(2 / 3)),
    ("half as much noise again", noise_has_its_scale, PrivateStep, with_noise(3 / 2)),
    ("noise for every piece", noise_has_its_scale, PrivateStep, NoiseForEachPiece),
    ("two parameters with the same noise", noise_is_fresh, PrivateStep, SharedNoise),
    ("the same noise in every step", noise_is_fresh, PrivateStep, RepeatedNoise),
    ("a histogram without noise", histograms_are_noised, PrivateStep, with_side_noise(0)),
    ("a histogram with two thirds of its noise", histograms_are_noised, PrivateStep, with_side_noise(2 / 3)),
    ("a histogram with too much noise", histograms_are_noised, PrivateStep, with_side_noise(3 / 2)),
    ("the norm of one layer left out", sums_are_those_of_a_loop, PrivateStep, ForgottenNorm),
    ("division by the actual size", sums_are_those_of_a_loop, PrivateStep, ActualSize),
    ("batches of one size", sizes_are_binomial, draw_poisson_batch, fixed_size),
    ("epochs", steps_are_independent, draw_poisson_batch, Epochs()),
    ("some records more often", records_are_drawn_alike, draw_poisson_batch, the_first_more_often),
    ("neighbours together", records_are_independent, draw_poisson_batch, in_pairs),
    ("batches of one size tie records together", records_are_independent, draw_poisson_batch, fixed_size),
]


@pytest.mark.parametrize(("check", "right", "broken"), [fault[1:] for fault in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_fault_is_caught(check: Callable[[Any], float], right: Any, broken: Any) -> None:
    assert check(right) > RIGHT
    assert check(broken) < WRONG


@pytest.mark.parametrize(("records", "rate"), [(3, 0.5), (50, 0.9), (1000, 1e-3), (200_000, 1e-5)])
def test_batch_sizes_are_binomial(records: int, rate: float) -> None:
    assert sizes_are_binomial(draw_poisson_batch, records=records, rate=rate) > RIGHT


def test_a_batch_may_be_empty() -> None:
    assert sizes_are_binomial(never_empty, records=1000, rate=1e-3) < WRONG


@pytest.mark.parametrize(("records", "rate", "steps"), [(20, 0.5, 4000), (50, 0.98, 4000), (1000, 2e-3, 20000)])
def test_every_record_is_drawn_with_its_rate(records: int, rate: float, steps: int) -> None:
    assert records_are_drawn_alike(draw_poisson_batch, records=records, rate=rate, steps=steps) > RIGHT


@pytest.mark.parametrize(("records", "rate", "steps"), [(5, 0.5, 10000), (30, 0.9, 5000), (300, 0.01, 20000)])
def test_records_are_drawn_independently(records: int, rate: float, steps: int) -> None:
    assert records_are_independent(draw_poisson_batch, records=records, rate=rate, steps=steps) > RIGHT


def test_rates_of_one_and_zero_are_certain() -> None:
    noise = NoiseSource()
    for records in (0, 1, 1000):
        for _ in range(100):
            assert (draw_poisson_batch(records, 1.0, noise) == np.arange(records)).all()
            assert len(draw_poisson_batch(records, 0.0, noise)) == 0
