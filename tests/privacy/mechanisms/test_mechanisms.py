"""Mechanisms charge what they declare before they draw, and sums have the sensitivity that they state."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.privacy.mechanisms.silence import COUNTS, DELTA, Floats, Silent, make_ample_ledger

from sundog.errors import BudgetExceededError
from sundog.privacy.events import Charge, DiscreteGaussian, DiscreteLaplace, Event, Failure, Gaussian, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import (
    Histogram,
    exponential_mechanism,
    gaussian_group_sums,
    gaussian_moments,
    gaussian_sum,
    noisy_bounds,
    noisy_count,
    noisy_histogram,
    noisy_histograms,
    noisy_max,
    noisy_quantiles,
    stable_set,
)
from sundog.privacy.noise import NoiseSource


class Drawn(Exception):  # noqa: N818
    """Noise was drawn."""


class Untouchable(NoiseSource):
    """A source that cannot be drawn from."""

    @property
    def _rng(self) -> np.random.Generator:
        raise Drawn


class Case(NamedTuple):
    call: Callable[[Ledger], Any]
    charges: Sequence[tuple[Event, int]]


SCORES = np.array([0.0, 1.0, 5.0])

CASES: dict[str, Case] = {
    "count": Case(
        lambda ledger: noisy_count(9, epsilon=0.3, ledger=ledger, purpose="p"),
        [(DiscreteLaplace(rate=0.3, sensitivity=1), 1)],
    ),
    "count of units": Case(
        lambda ledger: noisy_count(9, epsilon=0.3, ledger=ledger, purpose="p", contribution=4),
        [(DiscreteLaplace(rate=0.3 / 4, sensitivity=4), 1)],
    ),
    "histogram": Case(
        lambda ledger: noisy_histogram(COUNTS, sigma=9.0, ledger=ledger, purpose="p"),
        [(DiscreteGaussian(sigma=9.0), 1)],
    ),
    "histogram that a record touches thrice": Case(
        lambda ledger: noisy_histogram(COUNTS, sigma=9.0, ledger=ledger, purpose="p", touched=3),
        [(DiscreteGaussian(sigma=9.0), 3)],
    ),
    "histogram of units": Case(
        lambda ledger: noisy_histogram(COUNTS, sigma=9.0, ledger=ledger, purpose="p", touched=3, contribution=5),
        [(DiscreteGaussian(sigma=9.0), 15)],
    ),
    "histograms": Case(
        lambda ledger: noisy_histograms(
            [Histogram(COUNTS, 9.0, "p"), Histogram(COUNTS, 8.0, "p", touched=2)], ledger=ledger
        ),
        [(DiscreteGaussian(sigma=9.0), 1), (DiscreteGaussian(sigma=8.0), 2)],
    ),
    "sum": Case(
        lambda ledger: gaussian_sum(np.ones((4, 3)), clip_norm=2.0, noise_multiplier=8.0, ledger=ledger, purpose="p"),
        [(Gaussian(noise_multiplier=8.0), 1)],
    ),
    "sum of units": Case(
        lambda ledger: gaussian_sum(
            np.ones((4, 3)), clip_norm=2.0, noise_multiplier=32.0, ledger=ledger, purpose="p", contribution=4
        ),
        [(Gaussian(noise_multiplier=8.0), 1)],
    ),
    "sums of groups": Case(
        lambda ledger: gaussian_group_sums(
            [(COUNTS % 2, np.eye(3))],
            groups=2,
            width=3,
            clip_norm=2.0,
            noise_multiplier=8.0,
            ledger=ledger,
            purpose="p",
        ),
        [(Gaussian(noise_multiplier=8.0), 1)],
    ),
    "moments": Case(
        lambda ledger: gaussian_moments(
            [np.eye(3)], width=3, clip_norm=2.0, noise_multiplier=8.0, ledger=ledger, purpose="p"
        ),
        [(Gaussian(noise_multiplier=8.0), 1)],
    ),
    "exponential mechanism": Case(
        lambda ledger: exponential_mechanism(SCORES, epsilon=0.4, sensitivity=2.0, ledger=ledger, purpose="p"),
        [(Pure(epsilon=0.4), 1)],
    ),
    "noisy max": Case(
        lambda ledger: noisy_max(SCORES, epsilon=0.4, sensitivity=2.0, ledger=ledger, purpose="p"),
        [(Pure(epsilon=0.4), 1)],
    ),
    "stable set": Case(
        lambda ledger: stable_set({"a": 9}, epsilon=0.4, delta=1e-6, ledger=ledger, purpose="p"),
        [(DiscreteLaplace(rate=0.4), 1), (Failure(delta=1e-6), 1)],
    ),
    "stable set of units": Case(
        lambda ledger: stable_set({"a": 9}, epsilon=0.4, delta=1e-6, ledger=ledger, purpose="p", contribution=2),
        [(Pure(epsilon=0.4), 1), (Failure(delta=1e-6), 1)],
    ),
    "quantiles": Case(
        lambda ledger: noisy_quantiles(COUNTS, [0.1, 0.5], size=10, epsilon=0.4, ledger=ledger, purpose="p"),
        [(Pure(epsilon=0.2), 1), (Pure(epsilon=0.2), 1)],
    ),
    "quantiles of units": Case(
        lambda ledger: noisy_quantiles(
            COUNTS, [0.1, 0.5], size=10, epsilon=0.4, ledger=ledger, purpose="p", contribution=3
        ),
        [(Pure(epsilon=0.2), 1), (Pure(epsilon=0.2), 1)],
    ),
    "bounds": Case(
        lambda ledger: noisy_bounds(SCORES, epsilon=0.4, ledger=ledger, purpose="p"), [(DiscreteLaplace(rate=0.4), 1)]
    ),
    "bounds of units": Case(
        lambda ledger: noisy_bounds(SCORES, epsilon=0.4, ledger=ledger, purpose="p", contribution=3),
        [(Pure(epsilon=0.4), 1)],
    ),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def list_declared(charges: Sequence[Charge]) -> list[tuple[Event, int]]:
    """Events and how often, with equal ones put together."""
    totals: dict[Event, int] = {}
    for part in charges:
        totals[part.event] = totals.get(part.event, 0) + part.count
    return sorted(totals.items(), key=repr)


def list_expected(case: Case) -> list[tuple[Event, int]]:
    return list_declared([Charge(event=event, count=count, purpose="p") for event, count in case.charges])


@every_case
def test_it_charges_exactly_what_it_declares(case: Case) -> None:
    ledger = make_ample_ledger()
    case.call(ledger)
    assert list_declared(ledger.charges) == list_expected(case)
    assert {part.purpose for part in ledger.charges} == {"p"}


@every_case
def test_it_is_refused_before_it_draws(case: Case) -> None:
    ledger = Ledger(epsilon=1e-6, delta=1e-9, noise=Untouchable())
    with pytest.raises(BudgetExceededError):
        case.call(ledger)
    assert ledger.entries == ()


@every_case
def test_it_is_charged_before_it_draws(case: Case) -> None:
    ledger = make_ample_ledger(Untouchable())
    with pytest.raises(Drawn):
        case.call(ledger)
    whole, charged = dict(list_expected(case)), dict(list_declared(ledger.charges))
    assert charged
    assert all(charged[event] <= whole[event] for event in charged)


@every_case
def test_a_run_pays_from_both_budgets(case: Case) -> None:
    ledger = make_ample_ledger()
    run = ledger.run(epsilon=100.0, delta=DELTA)
    case.call(run)
    assert run.charges == ledger.charges
    with pytest.raises(BudgetExceededError):
        case.call(ledger.run(epsilon=1e-6, delta=1e-9))
    assert run.charges == ledger.charges


@every_case
def test_seeded_noise_marks_the_ledger(case: Case) -> None:
    ledger = make_ample_ledger(NoiseSource.seeded(1))
    again = make_ample_ledger(NoiseSource.seeded(1))
    assert repr(case.call(ledger)) == repr(case.call(again))
    assert not ledger.private
    assert all(not entry.private for entry in ledger.entries)


def test_quantiles_are_all_or_none() -> None:
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    with pytest.raises(BudgetExceededError):
        noisy_quantiles(COUNTS, [0.1, 0.5, 0.9], size=10, epsilon=1.2, ledger=ledger, purpose="p")
    assert ledger.entries == ()


def test_several_histograms_are_all_or_none() -> None:
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    with pytest.raises(BudgetExceededError):
        noisy_histograms([Histogram(COUNTS, 8.0, "a"), Histogram(COUNTS, 1.0, "b")], ledger=ledger)
    assert ledger.entries == ()


# --- what noise hides is what is there ------------------------------------------------------------------------------


def test_without_noise_the_answers_are_exact() -> None:
    assert noisy_count(9, epsilon=0.3, ledger=make_ample_ledger(Silent()), purpose="p", contribution=3) == 9
    np.testing.assert_array_equal(
        noisy_histogram(COUNTS, sigma=9.0, ledger=make_ample_ledger(Silent()), purpose="p", contribution=3), COUNTS
    )


def test_answers_have_plain_types() -> None:
    assert type(noisy_count(9, epsilon=0.3, ledger=make_ample_ledger(), purpose="p")) is int
    assert noisy_histogram(np.zeros((4, 5), np.int64), sigma=2.0, ledger=make_ample_ledger(), purpose="p").shape == (
        4,
        5,
    )
    assert type(noisy_max(SCORES, epsilon=1.0, sensitivity=1.0, ledger=make_ample_ledger(), purpose="p")) is int
    assert (
        type(exponential_mechanism(SCORES, epsilon=1.0, sensitivity=1.0, ledger=make_ample_ledger(), purpose="p"))
        is int
    )
    quantiles = noisy_quantiles(COUNTS, [0.9, 0.1], size=8, epsilon=1.0, ledger=make_ample_ledger(), purpose="p")
    assert [type(code) for code in quantiles] == [int, int]
    assert quantiles == sorted(quantiles)


def test_a_standard_deviation_is_that_of_its_draws() -> None:
    assert Histogram(COUNTS, 3.0, "p").standard_deviation == 3.0
    assert Histogram(COUNTS, 3.0, "p", touched=7, contribution=4).standard_deviation == 6.0


# --- sums -----------------------------------------------------------------------------------------------------------


def silent_sum(vectors: Floats, *, clip_norm: float, noise_multiplier: float) -> Floats:
    return gaussian_sum(
        vectors, clip_norm=clip_norm, noise_multiplier=noise_multiplier, ledger=make_ample_ledger(Silent()), purpose="p"
    )


def lattice_step(clip_norm: float, noise_multiplier: float, width: int) -> float:
    return min(clip_norm, clip_norm * noise_multiplier) * 2.0**-20 / math.sqrt(width)


HOSTILE = {
    "zero": [0.0, 0.0, 0.0],
    "ordinary": [0.1, -0.2, 0.3],
    "long": [30.0, -20.0, 50.0],
    "huge": [1e300, -1e300, 1e300],
    "largest": [np.finfo(float).max] * 3,
    "subnormal": [5e-324, 0.0, -5e-324],
    "NaN": [np.nan, 1.0, 1.0],
    "infinite": [np.inf, 1.0, 1.0],
    "minus infinite": [1.0, -np.inf, np.nan],
    "one coordinate": [0.0, 1e5, 0.0],
}


@pytest.mark.parametrize("row", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("clip_norm", [1.0, 0.003, 50.0])
@pytest.mark.parametrize("noise_multiplier", [0.1, 1.0, 30.0])
def test_one_row_moves_the_sum_by_no_more_than_the_clip_norm(
    row: list[float], clip_norm: float, noise_multiplier: float
) -> None:
    others = np.random.default_rng(1).normal(size=(200, 3)) * clip_norm
    scales = {"clip_norm": clip_norm, "noise_multiplier": noise_multiplier}
    without = silent_sum(others, **scales)
    for where in (0, 100, 200):
        with_row = silent_sum(np.insert(others, where, row, axis=0), **scales)
        assert np.isfinite(with_row).all()
        assert np.linalg.norm(with_row - without) <= clip_norm


@pytest.mark.parametrize("width", [1, 2, 1000])
def test_the_rounding_of_many_coordinates_is_within_the_clip_norm(width: int) -> None:
    generator = np.random.default_rng(width)
    for _ in range(20):
        others = generator.normal(size=(3, width))
        row = generator.normal(size=(1, width)) * 100
        difference = silent_sum(np.vstack([others, row]), clip_norm=1.0, noise_multiplier=0.5) - silent_sum(
            others, clip_norm=1.0, noise_multiplier=0.5
        )
        assert np.linalg.norm(difference) <= 1.0
        assert np.linalg.norm(difference) >= 1 - 1e-5


# Floating sums round after each row, and one row more can tip every rounding that follows it. Here the sum hovers about
# a power of two: above it half a million roundings go one way, below it they do not happen.
def test_a_long_sum_does_not_amplify_one_row() -> None:
    clip_norm, k = 1.0, 19
    ulp = 2.0 ** (k - 53)  # of floats just below 2^k
    steady = np.full(2 * (2**k - 1), 0.5)
    tipping = np.tile([0.25 - ulp, -0.25], 2**19)
    column = np.concatenate([[1 - 2.0**-19], steady, [0.0625], tipping])
    vectors = np.column_stack([column, np.zeros_like(column)])
    scales = {"clip_norm": clip_norm, "noise_multiplier": 1.0}
    difference = silent_sum(vectors, **scales) - silent_sum(vectors[1:], **scales)
    assert np.linalg.norm(difference) <= clip_norm


@pytest.mark.parametrize("width", [1, 3, 4, 100])
@pytest.mark.parametrize(("clip_norm", "noise_multiplier"), [(1.0, 0.3), (0.7, 5.0), (1e-6, 1.0), (1e9, 2.0)])
def test_sums_lie_on_the_lattice(width: int, clip_norm: float, noise_multiplier: float) -> None:
    vectors = np.random.default_rng(width).normal(size=(50, width)) * clip_norm
    total = gaussian_sum(
        vectors, clip_norm=clip_norm, noise_multiplier=noise_multiplier, ledger=make_ample_ledger(), purpose="p"
    )
    step = lattice_step(clip_norm, noise_multiplier, width)
    np.testing.assert_array_equal(np.rint(total / step) * step, total)


def test_short_rows_are_summed_and_long_rows_clipped() -> None:
    vectors = np.array([[0.3, 0.4], [3.0, 4.0], [-0.1, 0.0]])
    total = silent_sum(vectors, clip_norm=1.0, noise_multiplier=1.0)
    np.testing.assert_allclose(total, [0.3 + 0.6 - 0.1, 0.4 + 0.8], atol=1e-5)


def test_no_rows_and_no_columns() -> None:
    assert silent_sum(np.zeros((0, 3)), clip_norm=1.0, noise_multiplier=1.0).tolist() == [0.0, 0.0, 0.0]
    assert silent_sum(np.zeros((3, 0)), clip_norm=1.0, noise_multiplier=1.0).shape == (0,)
