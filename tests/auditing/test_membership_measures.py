"""Measures of membership attacks, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from sundog.auditing.membership_measures import FALSE_POSITIVE_RATES, measure_exactly, measure_membership


def find_rate_slowly(scores: np.ndarray, members: np.ndarray, rate: float) -> float:
    """Try every threshold."""
    best = 0.0
    for threshold in np.unique(scores):
        above = scores >= threshold
        if above[~members].mean() <= rate:
            best = max(best, float(above[members].mean()))
    return best


@pytest.mark.parametrize("ties", [1, 7, 1000])
def test_rates_and_area_are_those_of_brute_force(ties: int) -> None:
    rng = np.random.default_rng(ties)
    members = rng.random(600) < 0.4
    scores = np.floor(ties * (rng.random(600) + 0.2 * members))
    found = measure_membership(scores, members, rng).measures
    for rate in FALSE_POSITIVE_RATES:
        assert found[f"tpr_at_{rate:g}"].value == pytest.approx(find_rate_slowly(scores, members, rate))
    pairs = scores[members][:, None] - scores[~members][None, :]
    assert found["auc"].value == pytest.approx(float((pairs > 0).mean() + (pairs == 0).mean() / 2))


@pytest.mark.parametrize(("successes", "trials"), [(0, 9), (3, 40), (40, 40), (500, 1000)])
def test_intervals_of_shares_are_exact(successes: int, trials: int) -> None:
    found = measure_exactly(successes, trials)
    expected = binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_perfect_attack_and_none_at_all() -> None:
    members = np.arange(1000) % 2 == 0
    perfect = measure_membership(members.astype(float), members, np.random.default_rng(0)).measures
    assert [perfect[name].value for name in ("auc", "advantage", "top_accuracy", "tpr_at_0.001")] == [1.0] * 4
    nothing = measure_membership(np.zeros(1000), members, np.random.default_rng(0)).measures
    assert nothing["auc"].value == 0.5
    assert nothing["tpr_at_0.01"].value == 0
    assert nothing["top_accuracy"].low < 0.5 < nothing["top_accuracy"].high


def test_intervals_of_random_scores_hold_what_chance_gives() -> None:
    held: dict[str, int] = {"auc": 0, "advantage": 0, "top_accuracy": 0}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        members = rng.random(500) < 0.5
        found = measure_membership(rng.random(500), members, rng).measures
        for name, chance in (("auc", 0.5), ("advantage", 0.0), ("top_accuracy", float(members.mean()))):
            held[name] += found[name].low <= chance <= found[name].high
    assert all(count >= 180 for count in held.values()), held  # 95% of 200, with fixed seeds


def test_the_curve_goes_from_nothing_to_everything() -> None:
    rng = np.random.default_rng(0)
    members = rng.random(5000) < 0.3
    curve = measure_membership(rng.normal(0.5 * members), members, rng).curve
    assert (curve["fpr"][0], curve["tpr"][0]) == (0, 0)
    assert (curve["fpr"][-1], curve["tpr"][-1]) == (1, 1)
    assert (np.diff(curve["fpr"]) >= 0).all()
    assert (np.diff(curve["tpr"]) >= 0).all()
    assert len(curve["fpr"]) <= 400


@pytest.mark.parametrize("members", [[], [True], [False, False]])
def test_where_one_kind_is_missing_nothing_is_known(members: list[bool]) -> None:
    found = measure_membership(np.zeros(len(members)), np.array(members, bool), np.random.default_rng(0))
    assert all(np.isnan(measure.value) for measure in found.measures.values())
