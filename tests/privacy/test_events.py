"""Events and charges: immutable, exact through JSON, and nothing else gets in."""

import json
import math
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sundog.privacy import events
from sundog.privacy.events import (
    Charge,
    DiscreteGaussian,
    DiscreteLaplace,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
    Skellam,
)

KINDS = get_args(get_args(events.Event)[0])

noise = st.floats(min_value=1e-9, max_value=1e15)
loss = st.floats(min_value=1e-15, max_value=1e10)
any_event: st.SearchStrategy[events.Event] = st.one_of(
    st.builds(Gaussian, noise_multiplier=noise),
    st.builds(SampledGaussian, noise_multiplier=noise, sample_rate=st.just(0.0) | st.floats(1e-15, 1)),
    st.builds(DiscreteGaussian, sigma=noise),
    st.builds(DiscreteLaplace, rate=st.floats(1e-15, 10.0), sensitivity=st.integers(1, 10**9)),
    st.builds(Skellam, sigma=noise),
    st.integers(1, 10**9).flatmap(
        lambda l1: st.builds(Skellam, sigma=noise, l1=st.just(l1), l2_squared=st.integers(l1, l1**2))
    ),
    st.builds(Pure, epsilon=loss),
    st.builds(Failure, delta=st.floats(1e-60, 1, exclude_max=True)),
)

EXAMPLES: dict[str, dict[str, Any]] = {
    "gaussian": {"kind": "gaussian", "noise_multiplier": 2.0},
    "sampled_gaussian": {"kind": "sampled_gaussian", "noise_multiplier": 2.0, "sample_rate": 0.01},
    "discrete_gaussian": {"kind": "discrete_gaussian", "sigma": 2.0},
    "discrete_laplace": {"kind": "discrete_laplace", "rate": 0.5, "sensitivity": 3},
    "skellam": {"kind": "skellam", "sigma": 2.0, "l1": 3, "l2_squared": 5},
    "pure": {"kind": "pure", "epsilon": 0.5},
    "failure": {"kind": "failure", "delta": 1e-6},
}


def read_event(value: Any) -> events.Event:
    """Reads an event as ledgers and certificates do: as a part of a charge."""
    return Charge.model_validate({"event": value, "purpose": "p"}).event


def test_the_examples_are_all_the_kinds() -> None:
    assert {kind.model_fields["kind"].default for kind in KINDS} == set(EXAMPLES)


@settings(max_examples=200, database=None)
@given(any_event)
def test_json_round_trip_is_exact(event: events.Event) -> None:
    again = read_event(json.loads(json.dumps(event.to_dict(), allow_nan=False)))
    assert again == event
    assert type(again) is type(event)
    assert hash(again) == hash(event)


@pytest.mark.parametrize(
    "beyond",
    [
        {"kind": "gaussian", "noise_multiplier": 1e182},
        {"kind": "gaussian", "noise_multiplier": 1e-182},
        {"kind": "sampled_gaussian", "noise_multiplier": 1.0, "sample_rate": 1e-300},
        {"kind": "discrete_gaussian", "sigma": 1e182},
        {"kind": "discrete_laplace", "rate": 1e-200},
        {"kind": "discrete_laplace", "rate": 1e9, "sensitivity": 10**9},
        {"kind": "skellam", "sigma": 1e182},
        {"kind": "skellam", "sigma": 1.0, "l1": 10**9 + 1, "l2_squared": 10**10},
        {"kind": "skellam", "sigma": 1.0, "l1": 10**9, "l2_squared": 10**18 + 1},
        {"kind": "pure", "epsilon": 1e200},
        {"kind": "failure", "delta": 1e-300},
    ],
    ids=str,
)
def test_numbers_that_no_mechanism_has_are_refused(beyond: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read_event(beyond)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_the_written_form_may_never_change(example: dict[str, Any]) -> None:
    assert read_event(example).to_dict() == example


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_events_are_immutable(example: dict[str, Any]) -> None:
    event = read_event(example)
    for name in example:
        with pytest.raises(ValidationError):
            setattr(event, name, example[name])


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind in EXAMPLES for field in EXAMPLES[kind] if field != "kind"]
)
@pytest.mark.parametrize(
    "bad",
    [0, -1.0, math.nan, math.inf, -math.inf, "1", "", None, True, [1.0], {"x": 1.0}, 1e400, 10**400, b"1", 1j],
    ids=repr,
)
def test_bad_values_are_refused(kind: str, field: str, bad: Any) -> None:
    if field == "sample_rate" and bad == 0:
        pytest.skip("a sample rate of zero is a fact, and costs nothing")
    with pytest.raises(ValidationError):
        read_event({**EXAMPLES[kind], field: bad})


@pytest.mark.parametrize(
    "bad",
    [
        None,
        1,
        "gaussian",
        [],
        {},
        {"kind": None},
        {"kind": "gaussian"},
        {"kind": "unheard of", "epsilon": 1.0},
        {"kind": ["pure"], "epsilon": 1.0},
        {"epsilon": 1.0},
        {"kind": "pure", "epsilon": 1.0, "delta": 0.0},
        {"kind": "sampled_gaussian", "noise_multiplier": 1.0, "sample_rate": 1.0000001},
        {"kind": "sampled_gaussian", "noise_multiplier": 1.0, "sample_rate": -1e-9},
        {"kind": "discrete_laplace", "rate": 1.0, "sensitivity": 1.5},
        {"kind": "discrete_laplace", "rate": 1.0, "sensitivity": 10**9 + 1},
        {"kind": "skellam", "sigma": 1.0, "l1": 3, "l2_squared": 2},
        {"kind": "skellam", "sigma": 1.0, "l1": 3, "l2_squared": 10},
        {"kind": "skellam", "sigma": 1.0, "l1": 1.0},
        {"kind": "failure", "delta": 1.0},
        {1: 2},
    ],
    ids=repr,
)
def test_malformed_dicts_are_refused(bad: Any) -> None:
    with pytest.raises(ValidationError):
        read_event(bad)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_missing_or_added_field_is_refused(kind: str) -> None:
    whole = EXAMPLES[kind]
    required = [name for name in whole if name not in ("kind", "sensitivity", "l1", "l2_squared")]
    for name in required:
        with pytest.raises(ValidationError):
            read_event({key: value for key, value in whole.items() if key != name})
    with pytest.raises(ValidationError):
        read_event({**whole, "note": "x"})


def test_a_sample_rate_of_zero_and_of_one_are_allowed() -> None:
    for rate in (0, 1, 0.0, 1.0):
        assert SampledGaussian(noise_multiplier=1.0, sample_rate=rate).sample_rate == rate


@pytest.mark.parametrize("count", [0, -1, 1.0, "1", True, 10**12 + 1])
def test_a_charge_counts_whole_positive_times(count: Any) -> None:
    with pytest.raises(ValidationError):
        Charge(event=Pure(epsilon=1.0), count=count, purpose="x")


@pytest.mark.parametrize("purpose", ["", " \n", None, 1])
def test_a_charge_has_a_purpose(purpose: Any) -> None:
    with pytest.raises(ValidationError):
        Charge(event=Pure(epsilon=1.0), purpose=purpose)


@settings(max_examples=100, database=None)
@given(any_event, st.integers(1, 10**12), st.text(min_size=1, max_size=200).filter(str.strip))
def test_charges_round_trip(event: events.Event, count: int, purpose: str) -> None:
    charge = Charge(event=event, count=count, purpose=purpose)
    assert Charge.model_validate(json.loads(json.dumps(charge.model_dump()))) == charge


def test_the_epsilon_of_discrete_laplace_is_rate_times_sensitivity() -> None:
    assert DiscreteLaplace(rate=0.25, sensitivity=4).epsilon == 1.0
