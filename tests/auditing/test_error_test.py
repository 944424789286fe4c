"""The test of a curve is exact: its p-values are p-values, and it has power."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from sundog.auditing.error_test import (
    Errors,
    choose_thresholds,
    compute_corrected_p_value,
    compute_p_value,
    count_errors,
)
from sundog.auditing.tradeoff_curve import TradeoffCurve, compute_tradeoff_curve, make_gaussian_curve
from sundog.privacy.events import Charge, Failure, Pure

CURVES = {
    "gaussian": make_gaussian_curve(1.0),
    "randomised response": compute_tradeoff_curve([Charge(event=Pure(epsilon=1.0), purpose="test")]),
    "failure": compute_tradeoff_curve([Charge(event=Failure(delta=0.2), purpose="test")]),
}
RUNS = 9  # few enough to go through all outcomes


@pytest.mark.parametrize("name", CURVES)
def test_no_mechanism_on_the_curve_is_accused_more_often_than_the_level(name: str) -> None:
    """All outcomes of a small game, for many pairs of errors that the curve just allows."""
    curve = CURVES[name]
    outcomes = list(itertools.product(range(RUNS + 1), range(RUNS + 1)))
    p_values = np.array([compute_p_value(Errors(a, RUNS, b, RUNS), curve) for a, b in outcomes])
    levels = np.unique(p_values)
    for alpha in np.linspace(0, 1, 41):
        beta = float(curve(np.array([alpha]))[0])
        mass = np.array([stats.binom.pmf(a, RUNS, alpha) * stats.binom.pmf(b, RUNS, beta) for a, b in outcomes])
        reached = np.array([mass[p_values <= level].sum() for level in levels])
        assert (reached <= levels * (1 + 1e-9) + 1e-12).all()


def test_a_p_value_is_the_largest_on_the_curve() -> None:
    """Beside a grid of α a hundred times as fine."""
    curve, errors = CURVES["gaussian"], Errors(20, 120, 25, 150)
    alpha = np.linspace(0, 1, 100_001)
    both = stats.binom.logcdf(20, 120, alpha) + stats.binom.logcdf(25, 150, curve(alpha))
    expected = float(np.exp(both.max()) * (1 - both.max()))
    assert expected <= compute_p_value(errors, curve) <= 1.05 * expected


def test_fewer_errors_are_less_likely() -> None:
    curve = CURVES["gaussian"]
    p_values = [compute_p_value(Errors(count, 100, count, 100), curve) for count in (40, 30, 25, 20, 10, 0)]
    assert p_values == sorted(p_values, reverse=True)
    assert p_values[0] > 0.9
    assert p_values[-1] < 1e-20


def test_no_error_at_all_of_a_guarantee_without_failure() -> None:
    assert compute_p_value(Errors(0, 2000, 0, 2000), CURVES["gaussian"]) < 1e-300
    nothing = TradeoffCurve(np.array([0.0]), np.array([1.0]), np.array([1.0]))
    assert compute_p_value(Errors(0, 2000, 0, 2000), nothing) == 1.0


def test_several_thresholds_are_corrected_for() -> None:
    errors = Errors(22, 100, 22, 100)
    alone = compute_p_value(errors, CURVES["gaussian"])
    assert compute_corrected_p_value([errors] * 3, CURVES["gaussian"]) == pytest.approx(3 * alone)


@pytest.mark.parametrize(("noise", "is_accused"), [(1.0, False), (2 / 3, True)])
def test_two_thirds_of_the_noise_are_seen_in_a_thousand_runs(noise: float, is_accused: bool) -> None:
    rng, curve = np.random.default_rng(0), make_gaussian_curve(0.927)  # ε = 4 at δ = 1e-5
    alarms = 0
    for _ in range(100):
        absent, present = rng.normal(0, 1, 500), rng.normal(0.927 / noise, 1, 500)
        thresholds = choose_thresholds(absent[:100], present[:100])
        found = [count_errors(absent[100:], present[100:], threshold) for threshold in thresholds]
        alarms += compute_corrected_p_value(found, curve) <= 0.05
    assert alarms >= 99 if is_accused else alarms <= 5


def test_a_threshold_is_in_the_middle_of_a_gap() -> None:
    """The next run without the record may score a little higher than all runs before."""
    assert choose_thresholds(np.array([0.1, 0.0, 0.2]), np.array([10.0, 9.8])) == [pytest.approx(5.0)]


@pytest.mark.parametrize(
    ("absent", "present"),
    [
        ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([0.0, 0.0, 1.0], [np.inf, 1.0, np.inf]),
        ([-np.inf, 0.0], [0.0, 0.0]),
    ],
)
def test_thresholds_of_odd_scores(absent: list[float], present: list[float]) -> None:
    thresholds = choose_thresholds(np.array(absent), np.array(present))
    assert thresholds
    assert all(np.isfinite(threshold) or threshold == -np.inf for threshold in thresholds)
    best = min(
        (errors.false_alarms / errors.absent + errors.misses / errors.present)
        for errors in (count_errors(np.array(absent), np.array(present), threshold) for threshold in thresholds)
    )
    assert best == (0 if absent == [0.0] * 3 and present[0] == 1 else best)
