"""The Skellam distribution: its probabilities, its Rényi divergences, and the table that noise is drawn from."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from dp_accounting.pld import privacy_loss_distribution as plds
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from tests.privacy.accounting import compute_spent
from tests.privacy.charges import charge
from tests.privacy.reference import compute_skellam_pmf

from sundog.errors import ArgumentError
from sundog.privacy import renyi
from sundog.privacy.accountant import compute_delta, is_within_budget
from sundog.privacy.event_pld import compute_pld, has_distribution
from sundog.privacy.events import Gaussian, Pure, Skellam
from sundog.privacy.noise import NoiseSource
from sundog.privacy.pld import GridError
from sundog.privacy.skellam import LARGEST_VARIANCE, TABLE_DISTANCE, UNIT, SkellamTable, compute_masses

Words = npt.NDArray[np.uint64]
ONE = int(1 / UNIT)
VARIANCES = [1, 4295, ONE // 100, ONE // 3, ONE, 7 * ONE + 12345, 100 * ONE, 4000 * ONE]
every_variance = pytest.mark.parametrize("units", VARIANCES)


def compute_exact_magnitudes(units: int, count: int) -> list[mpmath.mpf]:
    """P(|X| = k) by the definition, at 80 digits."""
    variance = mpmath.mpf(units) / ONE
    return [mpmath.exp(-variance) * mpmath.besseli(k, variance) * (2 if k else 1) for k in range(count)]


# --- probabilities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [1e-24, 1e-4, 0.3, 1.0, 50.0, 1e4, 2.0**28])
def test_masses_are_those_of_the_definition(variance: float) -> None:
    masses = compute_masses(variance)
    assert masses[0] + 2 * masses[1:].sum() == pytest.approx(1, abs=1e-13)
    with mpmath.workdps(60):
        for k in np.unique(np.linspace(0, min(len(masses) - 1, 3000), 7).astype(int)):
            exact = mpmath.exp(-mpmath.mpf(variance)) * mpmath.besseli(int(k), mpmath.mpf(variance))
            assert masses[k] == pytest.approx(float(exact), rel=1e-11)


def test_masses_are_those_of_a_difference_of_poisson_variates() -> None:
    reference = compute_skellam_pmf(2.5)
    middle = len(reference) // 2
    np.testing.assert_allclose(compute_masses(6.25)[:30], reference[middle : middle + 30], rtol=1e-12)


# --- privacy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [0.05, 0.3, 1.0, 4.0, 25.0, 100.0, 900.0])
@pytest.mark.parametrize("shift", [1, 2, 3, 10])
def test_the_published_bound_is_above_the_divergence(variance: float, shift: int) -> None:
    event = Skellam(sigma=math.sqrt(variance), l1=shift, l2_squared=shift**2)
    bound = renyi._compute_divergences_at(event, renyi._RDP_ORDERS)
    reach = int(40 * math.sqrt(variance)) + 60 + shift
    k = np.arange(-reach, reach + 1)
    with np.errstate(divide="ignore"):
        logs = [np.log(special.ive(np.abs(k - by), variance)) for by in (0, shift)]
    seen = np.isfinite(logs[0]) & np.isfinite(logs[1])
    for order, at_most in zip(renyi._RDP_ORDERS[:20], bound[:20], strict=True):
        exact = special.logsumexp(order * logs[0][seen] + (1 - order) * logs[1][seen]) / (order - 1)
        assert exact <= at_most * (1 + 1e-9)
    if variance >= 25:
        assert bound[0] <= 1.2 * shift**2 / variance * (1 + 3 / shift)  # and not far above that of a Gaussian


@pytest.mark.parametrize("sigma", [0.7, 3.0, 11.0])
def test_dp_accountings_distribution_of_two_mass_functions_is_never_exceeded(sigma: float) -> None:
    """It rounds every loss up, so that it is above ours by a point of the grid at most."""
    masses = compute_skellam_pmf(sigma)
    logs = dict(enumerate(np.log(masses).tolist()))
    shifted = {place + 1: value for place, value in logs.items()}
    both = [place for place in logs if place in shifted and logs[place] > -70 and shifted[place] > -70]
    theirs = plds.from_two_probability_mass_functions(
        {place: shifted[place] for place in both}, {place: logs[place] for place in both}
    )
    for delta in (1e-3, 1e-6, 1e-9):
        ours = compute_spent(charge(Skellam(sigma=sigma)), delta=delta)
        assert ours <= theirs.get_epsilon_for_delta(delta) + 1e-9
        assert ours >= theirs.get_epsilon_for_delta(delta) - 1.1e-4


def compute_vector_delta(sigma: float, changes: tuple[int, ...], epsilon: float) -> float:
    """Σ max(0, P − e^ε·Q) over all outcomes of the changed cells."""
    p = q = np.ones(1)
    masses = compute_skellam_pmf(sigma)
    for change in changes:
        here, there = np.append(masses, np.zeros(change)), np.append(np.zeros(change), masses)
        p, q = np.multiply.outer(p, here).ravel(), np.multiply.outer(q, there).ravel()
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


@pytest.mark.parametrize("changes", [(2,), (4,), (1, 1), (2, 1), (3, 2)])
@pytest.mark.parametrize("sigma", [1.5, 3.0])
def test_a_vector_costs_no_less_than_brute_force_says(changes: tuple[int, ...], sigma: float) -> None:
    l1, l2_squared = sum(changes), sum(change**2 for change in changes)
    event = Skellam(sigma=sigma, l1=l1, l2_squared=l2_squared)
    for delta in (1e-2, 1e-4, 1e-6):
        epsilon = compute_spent(charge(event), delta=delta)
        assert compute_vector_delta(sigma, changes, epsilon) <= delta
        gaussian = compute_spent(charge(Gaussian(noise_multiplier=sigma / math.sqrt(l2_squared))), delta=delta)
        assert epsilon > 0.8 * gaussian


@pytest.mark.parametrize("changes", [(2,), (3,), (2, 1)])
def test_a_cell_that_changes_by_m_costs_no_more_than_m_cells_with_an_mth_of_the_noise(changes: tuple[int, ...]) -> None:
    sigma, largest = 2.5, max(changes)
    slots = charge(Skellam(sigma=sigma / math.sqrt(largest)), sum(changes))
    for epsilon in (0.0, 0.5, 1.5, 3.0):
        assert compute_vector_delta(sigma, changes, epsilon) <= compute_delta([slots], epsilon=epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("event", [Skellam(sigma=5.0, l1=2, l2_squared=4), Skellam(sigma=1e5)], ids=str)
def test_where_only_divergences_are_known_they_are_the_claim(event: Skellam) -> None:
    assert not has_distribution(event)
    with pytest.raises(GridError):
        compute_pld(event, 1e-4)
    alone, beside = [charge(event, 3)], [charge(event, 3), charge(Pure(epsilon=0.1))]
    for charges in (alone, beside):
        spent = compute_spent(*charges, delta=1e-6)
        assert spent == pytest.approx(min(compute_spent(*charges, delta=1e-6, method="rdp"), spent))
        assert is_within_budget(charges, epsilon=spent, delta=1e-6)
        assert not is_within_budget(charges, epsilon=0.99 * spent, delta=1e-6)
    assert compute_spent(*beside, delta=1e-6) > compute_spent(*alone, delta=1e-6)


# --- the table ------------------------------------------------------------------------------------------------------


@every_variance
def test_thresholds_are_rounded_correctly(units: int) -> None:
    """Against the definition at 80 digits: no threshold is off by more than half, or the last bit in a tie."""
    table = SkellamTable.build(units)
    with mpmath.workdps(80):
        below = mpmath.mpf(0)
        exact = compute_exact_magnitudes(units, min(len(table.thresholds), 150))
        for mass, threshold in zip(exact, table.thresholds, strict=False):
            below += mass
            assert abs(threshold - below * 2**127) < 0.5 + 1e-6
    assert list(table.thresholds) == sorted(table.thresholds)
    assert table.to_bytes()[:16] == table.thresholds[0].to_bytes(16, "little")


@every_variance
def test_a_draw_is_as_near_to_the_distribution_as_is_charged(units: int) -> None:
    """The exact distance, where the definition can be summed; elsewhere the bound by the number of thresholds."""
    table = SkellamTable.build(units)
    assert (len(table.thresholds) + 1) * 2.0**-128 < TABLE_DISTANCE
    if len(table.thresholds) > 150:
        return
    with mpmath.workdps(80):
        exact = compute_exact_magnitudes(units, len(table.thresholds) + 20)
        steps = [0, *table.thresholds, 2**127]
        drawn = [mpmath.mpf(b - a) / 2**127 for a, b in itertools.pairwise(steps)]
        drawn += [mpmath.mpf(0)] * (len(exact) - len(drawn))
        distance = sum(abs(a - b) for a, b in zip(drawn, exact, strict=True)) / 2
    assert distance < TABLE_DISTANCE


def test_the_widest_table_is_near_enough_too() -> None:
    table = SkellamTable.build(LARGEST_VARIANCE * ONE)
    assert (len(table.thresholds) + 1) * 2.0**-128 < TABLE_DISTANCE
    assert 13_000 < len(table.thresholds) < 14_000


def read_words(*words: int) -> Callable[[int], Words]:
    """Hand out these words, first to last."""
    waiting = list(words)

    def draw(size: int) -> Words:
        taken, waiting[:size] = waiting[:size], []
        assert len(taken) == size
        return np.array(taken, np.uint64)

    return draw


def draw_slowly(table: SkellamTable, draw_words: Callable[[int], Words], size: int) -> list[int]:
    """One number at a time, by whole numbers of 127 bits."""
    words = [int(word) for word in draw_words(size)]
    first = {threshold >> 64 for threshold in table.thresholds}
    found = []
    for word in words:
        bits = (word >> 1) << 64
        if word >> 1 in first:
            bits += int(draw_words(1)[0])
        magnitude = bisect.bisect_right(table.thresholds, bits)
        found.append(-magnitude if word & 1 else magnitude)
    return found


@settings(max_examples=200, deadline=None, database=None)
@given(st.sampled_from(VARIANCES), st.lists(st.integers(0, 2**64 - 1), max_size=20), st.data())
def test_draws_are_those_of_a_slow_loop(units: int, words: list[int], data: st.DataObject) -> None:
    """With words that begin like a threshold, whose other bits decide."""
    table = SkellamTable.build(units)
    near = data.draw(st.lists(st.tuples(st.sampled_from(table.thresholds), st.integers(-1, 1), st.integers(0, 1))))
    words += [max(0, ((threshold >> 64) + by) << 1 | sign) % 2**64 for threshold, by, sign in near]
    last = data.draw(
        st.lists(st.integers(0, 2**64 - 1), min_size=len(words), max_size=len(words))
        | st.just([threshold % 2**64 for threshold, _, _ in near] + [0] * len(words))
    )
    whole = [*words, *last]
    expected = draw_slowly(table, read_words(*whole), len(words))
    assert table.draw(read_words(*whole), len(words)).tolist() == expected


def test_the_last_bits_of_a_tie_decide() -> None:
    table = SkellamTable.build(ONE)
    for place, threshold in enumerate(table.thresholds[:15]):
        word, rest = (threshold >> 64) << 1, threshold % 2**64
        assert table.draw(read_words(word, rest - 1), 1).tolist() == [place]
        assert table.draw(read_words(word, rest), 1).tolist() == [place + 1]
        assert table.draw(read_words(word + 1, rest), 1).tolist() == [-place - 1]


@pytest.mark.parametrize("units", [0, -1, LARGEST_VARIANCE * ONE + 1])
def test_a_variance_without_a_table_is_refused(units: int) -> None:
    with pytest.raises(ArgumentError, match="a table of noise has a variance from"):
        SkellamTable.build(units)


def test_seeded_noise_repeats_and_private_noise_does_not() -> None:
    table = SkellamTable.build(9 * ONE)
    draws = [source.skellam(table, (3, 40)) for source in map(NoiseSource.seeded, (1, 1, 2))]
    assert draws[0].shape == (3, 40)
    assert (draws[0] == draws[1]).all()
    assert (draws[0] != draws[2]).any()
    assert (NoiseSource().skellam(table, 200) != NoiseSource().skellam(table, 200)).any()
