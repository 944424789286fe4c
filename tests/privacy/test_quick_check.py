"""The quick check of a ledger agrees with the accountant."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.charges import DELTA, charge, charge_pure

from sundog.errors import BudgetExceededError
from sundog.privacy.accountant import compute_epsilon, is_within_budget
from sundog.privacy.calibration import find_noise_multiplier
from sundog.privacy.events import (
    Charge,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
)
from sundog.privacy.ledger import Ledger, merge_blocks

noises = st.floats(0.7, 50)
events = st.one_of(
    st.builds(SampledGaussian, noise_multiplier=noises, sample_rate=st.floats(1e-4, 1.0)),
    st.builds(Gaussian, noise_multiplier=st.floats(2, 200)),
    st.builds(DiscreteGaussian, sigma=st.floats(2, 200)),
    st.builds(DiscreteLaplace, rate=st.floats(0.01, 0.5)),
    st.builds(Pure, epsilon=st.floats(0.01, 0.5)),
    st.builds(Failure, delta=st.floats(1e-9, 1e-6)),
)
charged = st.builds(Charge, event=events, count=st.integers(1, 200), purpose=st.just("test"))


@settings(max_examples=60, database=None)
@given(st.lists(charged, min_size=1, max_size=3), st.floats(0.5, 1.5))
def test_the_quick_check_says_what_the_accountant_says(charges: list[Charge], part: float) -> None:
    spent = compute_epsilon(charges, delta=DELTA)
    if not 0 < spent < 50:
        return
    for epsilon in (spent * part, spent * (1 - 1e-9), spent * (1 + 1e-9)):
        assert is_within_budget(charges, epsilon=epsilon, delta=DELTA) == (spent <= epsilon)


@pytest.mark.parametrize(
    ("event", "count", "delta"),
    [
        (Pure(epsilon=0.007078227424552142), 385, 4.210618745070551e-06),
        (Pure(epsilon=0.0064676724219588), 472, 7.688808526393598e-07),
        (DiscreteGaussian(sigma=2.3846604566670466), 39, 4.882698718304304e-09),
        (SampledGaussian(noise_multiplier=17.01706125076355, sample_rate=0.0061273385070053565), 2548, 3.329e-07),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_grid_that_is_finer_by_chance_does_not_say_yes(event: Event, count: int, delta: float) -> None:
    """It would be right, but the certificate would then be found to be above its claim."""
    spent = compute_epsilon([charge(event, count)], delta=delta)
    assert not is_within_budget([charge(event, count)], epsilon=spent * (1 - 1e-8), delta=delta)
    assert is_within_budget([charge(event, count)], epsilon=spent, delta=delta)


def test_the_quick_check_of_a_training_never_says_yes_too_early() -> None:
    """At every block of a training, in a budget that some number of its steps uses up."""
    for rate, noise, steps in ((0.01, 5.8, 18_000), (0.002, 0.8, 3_000), (0.2, 4.0, 100), (1.0, 30.0, 50)):
        event = SampledGaussian(noise_multiplier=noise, sample_rate=rate)
        whole = compute_epsilon([charge(event, steps)], delta=DELTA)
        for share in (0.5, 0.9, 0.99, 0.999, 1.0, 1.001, 1.01):
            found = [charge(event, max(1, int(share * steps) // 2))] * 2
            assert is_within_budget(found, epsilon=whole, delta=DELTA) == (compute_epsilon(found, delta=DELTA) <= whole)


def test_a_calibrated_training_can_be_paid_for_in_blocks_to_the_last_step() -> None:
    noise = find_noise_multiplier(epsilon=1.0, delta=DELTA, sample_rate=0.01, steps=1000)
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    block = charge(SampledGaussian(noise_multiplier=noise, sample_rate=0.01), 50)
    for _ in range(20):
        ledger.spend(block)
    assert 0.998 < ledger.compute_spent() <= 1.0
    with pytest.raises(BudgetExceededError, match="would bring ε to"):
        ledger.spend(block)


def test_blocks_of_a_training_are_one_charge() -> None:
    first, second = (SampledGaussian(noise_multiplier=noise, sample_rate=0.1) for noise in (1.0, 2.0))
    blocks = [
        charge(first, 3, "a"),
        charge_pure(0.1),
        charge(second, 4, "a"),
        charge(first, 5, "b"),
        charge(first, 6, "a"),
        charge_pure(0.1),
        charge(second, 7, "a"),
    ]
    assert merge_blocks(blocks) == [
        charge(first, 9, "a"),
        charge_pure(0.1),
        charge(second, 11, "a"),
        charge(first, 5, "b"),
        charge_pure(0.1),
    ]
    assert merge_blocks([]) == []
    assert compute_epsilon(merge_blocks(blocks), delta=DELTA) == compute_epsilon(blocks, delta=DELTA)
