"""Our privacy loss distributions against dp-accounting's, for every kind of event."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any, get_args

import numpy as np
import pytest
from tests.privacy.reference import reference_pld

from sundog.privacy import events, pld
from sundog.privacy.accountant import GRID
from sundog.privacy.event_pld import compute_pld
from sundog.privacy.events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
    Skellam,
)
from sundog.privacy.pld import GridError, LossDistribution, LossPmf

EVENTS: list[Event] = [
    Gaussian(noise_multiplier=0.6),
    Gaussian(noise_multiplier=3.0),
    Gaussian(noise_multiplier=40.0),
    SampledGaussian(noise_multiplier=0.7, sample_rate=1e-4),
    SampledGaussian(noise_multiplier=1.0, sample_rate=0.0017),
    SampledGaussian(noise_multiplier=8.0, sample_rate=0.01),
    SampledGaussian(noise_multiplier=2.0, sample_rate=0.3),
    SampledGaussian(noise_multiplier=1.0, sample_rate=0.99),
    DiscreteGaussian(sigma=0.4),
    DiscreteGaussian(sigma=1.0),
    DiscreteGaussian(sigma=7.3),
    DiscreteGaussian(sigma=31.9),
    DiscreteLaplace(rate=0.03),
    DiscreteLaplace(rate=0.2),
    DiscreteLaplace(rate=1.37),
    Skellam(sigma=0.4),
    Skellam(sigma=1.0),
    Skellam(sigma=7.3),
    Pure(epsilon=0.02),
    Pure(epsilon=1.23456),
    Failure(delta=1e-6),
]
every_event = pytest.mark.parametrize("event", EVENTS, ids=str)
# of which 3,000 runs have losses that mean something
SMALL = [event for event in EVENTS if compute_pld(event, 0.01).compute_epsilon(0.1) < 0.3]


def test_every_kind_is_covered() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(get_args(events.Event)[0]))


@every_event
@pytest.mark.parametrize("grid", [3.7e-4, 0.01])
def test_a_distribution_is_dp_accountings_own(event: Event, grid: float) -> None:
    ours, theirs = compute_pld(event, grid), reference_pld(event, grid)
    assert_same_curve(ours, theirs, rel=1e-9, abs=1e-15)
    for mine, other in ((ours.remove, theirs._pmf_remove), (ours.add, theirs._pmf_add)):
        dense = other.to_dense_pmf()
        assert mine.infinite == pytest.approx(dense._infinity_mass, abs=1e-15)
        np.testing.assert_allclose(*align(mine, dense), rtol=1e-6, atol=1e-11)


@pytest.mark.parametrize(("event", "count"), [*((e, 20) for e in EVENTS), *((e, 3000) for e in SMALL)], ids=str)
def test_self_composition_is_dp_accountings_own(event: Event, count: int) -> None:
    grid = 1e-3
    ours = compute_pld(event, grid).self_compose(count)
    theirs = reference_pld(event, grid)
    dense = [pmf.to_dense_pmf() for pmf in (theirs._pmf_remove, theirs._pmf_add)]
    for mine, other in zip((ours.remove, ours.add), dense, strict=True):
        composed = other.self_compose(count)  # its sparse form takes size to the power of count
        for epsilon in np.linspace(0, min(composed.get_epsilon_for_delta(1e-9), 500.0), 25):
            expected = composed.get_delta_for_epsilon(epsilon)
            assert mine.compute_delta(epsilon) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("first", EVENTS[::3], ids=str)
@pytest.mark.parametrize("second", EVENTS[1::4], ids=str)
def test_composition_is_dp_accountings_own(first: Event, second: Event) -> None:
    ours = compute_pld(first, 1e-3).compose(compute_pld(second, 1e-3))
    theirs = reference_pld(first, 1e-3).compose(reference_pld(second, 1e-3))
    assert_same_curve(ours, theirs, rel=1e-6, abs=1e-12)


@every_event
def test_losses_on_a_grid_are_never_less_than_on_a_finer_one(event: Event) -> None:
    coarse, fine = compute_pld(event, 0.04), compute_pld(event, 0.005)
    for epsilon in np.linspace(0, 6, 61):
        assert coarse.compute_delta(epsilon) >= fine.compute_delta(epsilon) - 1e-14


@every_event
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8])
def test_epsilon_is_the_inverse_of_delta(event: Event, delta: float) -> None:
    whole = compute_pld(event, GRID)
    epsilon = whole.compute_epsilon(delta)
    if math.isinf(epsilon):
        assert max(whole.remove.infinite, whole.add.infinite) > delta
        return
    assert whole.compute_delta(epsilon) <= delta * (1 + 1e-9) + 1e-15
    assert epsilon == 0 or whole.compute_delta(epsilon * (1 - 1e-6)) > delta


def test_losses_beyond_what_exponentials_can_hold_are_read() -> None:
    large = LossPmf(1.0, 900, np.array([0.5, 0.5]), 0.0)
    assert large.compute_epsilon(1e-5) == pytest.approx(901 + math.log((0.5 - 1e-5) / 0.5), abs=1e-9)
    assert large.compute_epsilon(0.75) == pytest.approx(900 + math.log(0.25 / (0.5 + 0.5 * math.exp(-1))), abs=1e-9)
    assert LossPmf(1.0, -2000, np.array([1.0]), 0.0).compute_epsilon(1e-5) == 0


@pytest.mark.parametrize("event", [Gaussian(noise_multiplier=0.05), Pure(epsilon=200.0), DiscreteGaussian(sigma=0.1)])
def test_a_grid_that_is_too_fine_is_refused(event: Event) -> None:
    with pytest.raises(GridError):
        compute_pld(event, 1e-5 if isinstance(event, Gaussian) else 1e-4)


def test_rounding_never_makes_a_probability_negative() -> None:
    whole = compute_pld(SampledGaussian(noise_multiplier=1.0, sample_rate=0.01), GRID).self_compose(1000)
    assert whole.compose(whole).remove.probabilities.min() >= 0


def test_the_accountant_does_without_dp_accounting() -> None:
    """Its import takes longer than checking a certificate."""
    program = "import sys, sundog.privacy.accountant; sys.exit(any('dp_accounting' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def assert_same_curve(ours: LossDistribution, theirs: Any, *, rel: float, abs: float) -> None:  # noqa: A002
    top = theirs.get_epsilon_for_delta(1e-10)
    for epsilon in np.linspace(0, min(top, 500.0), 25):
        assert ours.compute_delta(epsilon) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=rel, abs=abs)
    for delta in (1e-2, 1e-5, 1e-8):
        assert ours.compute_epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-6, abs=1e-9)


def align(ours: LossPmf, theirs: Any) -> tuple[pld.Floats, pld.Floats]:
    """Both on one range of losses."""
    first = min(ours.first, theirs._lower_loss)
    last = max(ours.first + len(ours.probabilities), theirs._lower_loss + len(theirs._probs))
    both = np.zeros((2, last - first))
    both[0, ours.first - first :][: len(ours.probabilities)] = ours.probabilities
    both[1, theirs._lower_loss - first :][: len(theirs._probs)] = theirs._probs
    return both[0], both[1]
