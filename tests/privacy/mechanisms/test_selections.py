"""Selections, quantiles and bounds."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.privacy.mechanisms.silence import COUNTS, Floats, Silent, make_ample_ledger

from sundog.privacy.mechanisms import (
    exponential_mechanism,
    noisy_bounds,
    noisy_max,
    noisy_quantiles,
    stable_set,
)
from sundog.privacy.mechanisms.selection import compute_stable_threshold

# --- selections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("select", [exponential_mechanism, noisy_max])
@pytest.mark.parametrize("scores", [[1e300, 0.0], [0.0, -1e300], [-1e9, -2e9], [5.0, -np.inf]])
def test_extreme_scores_are_chosen_safely(select: Callable[..., int], scores: list[float]) -> None:
    for _ in range(20):
        assert select(np.array(scores), epsilon=1.0, sensitivity=1.0, ledger=make_ample_ledger(), purpose="p") == 0


@pytest.mark.parametrize("rate", [0.01, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("contribution", [1, 2, 10])
def test_the_stability_threshold_is_the_smallest_that_holds(rate: float, delta: float, contribution: int) -> None:
    def tail(k: int) -> float:  # P(noise ≥ k) for k ≥ 1
        return math.exp(-rate * k) / (1 + math.exp(-rate))

    k = compute_stable_threshold(rate=rate, delta=delta, contribution=contribution) - contribution
    assert k >= 1
    assert tail(k) <= delta / contribution * (1 + 1e-12)
    assert k == 1 or tail(k - 1) > delta / contribution * (1 - 1e-12)


def test_stable_keys_come_in_an_order_that_says_nothing() -> None:
    counts = {"b": 900, "a": 100, "c": 500}
    for names in (["b", "a", "c"], ["c", "b", "a"]):
        found = stable_set(
            {n: counts[n] for n in names}, epsilon=1.0, delta=1e-6, ledger=make_ample_ledger(), purpose="p"
        )
        assert found == ["a", "b", "c"]
    assert stable_set(dict[str, int](), epsilon=1.0, delta=1e-6, ledger=make_ample_ledger(), purpose="p") == []


# --- quantiles and bounds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [-0.5, 1.5, math.nan])
def test_a_quantile_is_asked_for_a_probability(p: float) -> None:
    """Outside [0, 1] a record would move a score by more than one, and the charge would be too small."""
    ledger = make_ample_ledger()
    with pytest.raises(Exception, match="probabilit"):
        noisy_quantiles(COUNTS, [p], size=10, epsilon=1.0, ledger=ledger, purpose="p")
    assert ledger.entries == ()


def test_quantiles_of_nothing_and_of_codes_out_of_range() -> None:
    empty = np.array([], dtype=np.int64)
    assert 0 <= noisy_quantiles(empty, [0.5], size=10, epsilon=1.0, ledger=make_ample_ledger(), purpose="p")[0] < 10
    wild = np.array([-5, 100, 3], dtype=np.int64)
    for p in (0.0, 0.5, 1.0):
        assert 0 <= noisy_quantiles(wild, [p], size=10, epsilon=50.0, ledger=make_ample_ledger(), purpose="p")[0] < 10


@pytest.mark.parametrize("p", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_with_a_large_budget_quantiles_are_quantiles(p: float) -> None:
    codes = np.repeat(np.arange(100), 30)
    found = noisy_quantiles(codes, [p], size=100, epsilon=20.0, ledger=make_ample_ledger(), purpose="p")[0]
    assert abs(found - p * 100) <= 2


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        (np.linspace(17, 90, 2000), (16.0, 128.0)),
        (np.linspace(-90, -17, 2000), (-128.0, -16.0)),
        (np.linspace(-3, 3, 3000), (-4.0, 4.0)),
        (np.zeros(2000), (0.0, 2.0**-32)),
        (np.full(2000, 1e300), (2.0**63, 2.0**64)),
        (np.full(2000, -1e300), (-(2.0**64), -(2.0**63))),
    ],
)
def test_bounds_hold_the_values(values: Floats, bounds: tuple[float, float]) -> None:
    assert noisy_bounds(values, epsilon=2.0, ledger=make_ample_ledger(Silent()), purpose="p") == bounds


def test_too_few_values_have_no_bounds() -> None:
    for values in (np.array([]), np.array([5.0])):
        assert noisy_bounds(values, epsilon=1.0, ledger=make_ample_ledger(Silent()), purpose="p") is None


def test_missing_values_do_not_stretch_the_bounds() -> None:
    values = np.concatenate([np.linspace(17, 90, 2000), np.full(2000, np.nan)])
    assert noisy_bounds(values, epsilon=2.0, ledger=make_ample_ledger(Silent()), purpose="p") == (16.0, 128.0)
