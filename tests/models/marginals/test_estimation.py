"""Potentials from noisy marginals, against the same fit by other means."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sundog.models.marginals.bucket_tree import Clique, eliminate
from sundog.models.marginals.estimation import COLUMN_PRIOR, PAIR_PRIOR, Measurement, estimate_potentials
from sundog.models.marginals.inference import CliqueLayout, Floats, calibrate, compute_marginals

SIZES = (3, 4, 2)
CLIQUES: list[Clique] = [(0,), (0, 1), (1, 2)]


def measure(total: float, deviation: float, seed: int = 0) -> dict[Clique, Measurement]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(24)).reshape(SIZES)
    found = {}
    for clique in CLIQUES:
        exact = total * p.sum(axis=tuple(v for v in range(3) if v not in clique))
        found[clique] = Measurement(exact + rng.normal(0, deviation, exact.shape), np.array(max(deviation, 0.1) ** 2))
    return found


def fit(measured: dict[Clique, Measurement], total: float, *, tolerance: float = 1e-9) -> dict[Clique, Floats]:
    tree = eliminate(SIZES, measured)
    found: dict[Clique, Floats] = estimate_potentials(
        tree, measured, total, fixed={}, start={}, iterations=5000, tolerance=tolerance
    )
    return found


def test_exact_marginals_are_met() -> None:
    measured = measure(10_000, 0.0)
    tree = eliminate(SIZES, CLIQUES)
    layout = CliqueLayout(tree, CLIQUES)
    model = layout.split(10_000 * compute_marginals(calibrate(tree, fit(measured, 10_000)), layout))
    for clique, each in measured.items():
        np.testing.assert_allclose(model[clique], each.counts, atol=1)


def test_the_gradient_vanishes_at_the_estimate() -> None:
    measured = measure(1000, 30.0)
    potentials = fit(measured, 1000)
    tree = eliminate(SIZES, CLIQUES)
    layout = CliqueLayout(tree, CLIQUES)
    model = layout.split(1000 * compute_marginals(calibrate(tree, potentials), layout))
    for clique, each in measured.items():
        prior = COLUMN_PRIOR if len(clique) == 1 else PAIR_PRIOR
        gradient = model[clique] - each.counts + prior * each.variance * potentials[clique]
        assert np.abs(gradient).max() < 1e-3


def test_four_times_the_iterations_hardly_move_the_default() -> None:
    measured = measure(1000, 30.0)
    tree = eliminate(SIZES, CLIQUES)
    layout = CliqueLayout(tree, CLIQUES)
    rough, fine = (
        compute_marginals(calibrate(tree, fit(measured, 1000, tolerance=tolerance)), layout)
        for tolerance in (1e-4, 1e-9)
    )
    assert np.abs(rough - fine).sum() < 1e-3


def test_a_warm_start_ends_in_the_same_place() -> None:
    measured = measure(1000, 30.0)
    tree = eliminate(SIZES, CLIQUES)
    warm = estimate_potentials(
        tree, measured, 1000, fixed={}, start=fit(measured, 1000), iterations=5000, tolerance=1e-9
    )
    for clique, potential in fit(measured, 1000).items():
        np.testing.assert_allclose(warm[clique], potential, atol=1e-3)


def test_two_measurements_are_averaged_by_precision() -> None:
    both = Measurement(np.array([10.0]), np.array(1.0)).combine(Measurement(np.array([20.0]), np.array(4.0)))
    assert both.counts[0] == pytest.approx(12.0)
    assert float(both.variance) == pytest.approx(0.8)


def test_what_is_fixed_as_impossible_stays_so() -> None:
    measured = measure(1000, 10.0)
    zeros = np.zeros((3, 2))
    zeros[0, 1] = -math.inf
    tree = eliminate(SIZES, [*CLIQUES, (0, 2)])
    potentials = estimate_potentials(
        tree, measured, 1000, fixed={(0, 2): zeros}, start={}, iterations=2000, tolerance=1e-6
    )
    layout = CliqueLayout(tree, [(0, 2)])
    assert compute_marginals(calibrate(tree, potentials, {(0, 2): zeros}), layout).reshape(3, 2)[0, 1] == 0


def test_many_records_are_met_as_nearly_as_few() -> None:
    """The tolerance is absolute, in standard deviations: with more records it is a smaller share of them."""
    total = 10_000_000.0
    measured = measure(total, 1.0)
    tree = eliminate(SIZES, CLIQUES)
    layout = CliqueLayout(tree, CLIQUES)
    potentials = fit(measured, total, tolerance=0.02)
    model = layout.split(compute_marginals(calibrate(tree, potentials), layout))
    for clique, each in measured.items():
        np.testing.assert_allclose(model[clique], each.counts / total, atol=1e-5)
